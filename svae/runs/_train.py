"""A fit in a run folder: each step is told, states are kept, and whatever stops it can go on exactly."""

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from svae import _fit, store
from svae._fit import FitState, Step
from svae._model import SVAE
from svae._sharding import ProcessError, part
from svae.data import Recordings, recordings
from svae.runs import _checkpoints
from svae.runs._apply import write_answers
from svae.runs._folder import MODEL, RunError, append_metrics, locked, log, sync_metrics, writing
from svae.runs._restarts import SWITCHING, write_restarts
from svae.runs._run import Run
from svae.runs._session import Session, begin, close
from svae.runs._signals import stopping
from svae.runs._together import decided, gathered, new_model

LABELLED = 2000  # frames of a held-out stretch whose states are told at each measurement
SAVE_EVERY = 60.0  # seconds between checkpoints at most, beside those at each measurement


class Ended(NamedTuple):
    """What is left when a fit ends."""

    model: SVAE
    status: str
    state: FitState | None  # None where there was a warm-up only


def _plain(steps: Iterator, title: str) -> Iterator:
    yield from steps


def train(
    run: Run, data: Any, *, max_time: float | None = None, resume: bool = False, progress: Callable = _plain
) -> Run:
    """Fit the model of a run folder to its recordings and write its answers; returns the same run.

    `max_time` (seconds) ends the fit after the step in which it has passed, but not before the warm-up is over; the
    answers are written all the same. With `resume` it goes on from the newest checkpoint. Ctrl-C and SIGTERM save one
    and leave with KeyboardInterrupt and SystemExit(143). `progress(steps, title)` passes the steps on.
    """
    data = recordings(data)
    with locked(run.path), stopping() as stop:
        model = new_model(data, run.config)
        session, state = begin(run, data, model, resume)
        try:
            state = gathered(data, run.config, model, state)
            steps = progress(_fit.fit(model, data, resume=state), run.path.name)
            with contextlib.closing(steps):
                ended = _consume(session._replace(stop=stop, max_time=max_time), steps, state)
            part()
            _finish(run, ended, data, stop)
        except BaseException as error:
            close(session, _why(error))
            raise
        close(session, ended.status)
    return run


def _why(error: BaseException) -> str:
    return "stopped" if isinstance(error, KeyboardInterrupt | SystemExit) else f"failed: {error}"


def _consume(session: Session, steps: Iterator[Step], state: FitState | None) -> Ended:
    """All steps until the fit ends, somebody asks, the time is over, or another process is gone."""
    model, saved, status = None if state is None else _fit.final_model(state), time.monotonic(), "finished"
    for step, over in _kept(session, steps):
        _tell(session, step)
        late = time.monotonic() - saved > SAVE_EVERY
        if step.state is not None and (over or late or session.stop.asked or _is_landmark(step)):
            _save(session, step)
            saved = time.monotonic()
        session.stop.leave()
        model, state = step.model, step.state
        if over and not _fit.finished(step.state):
            model, status = _fit.final_model(step.state), "time over"
            break
    if model is None:
        raise RunError(f"{session.path} has nothing to fit: warmup_steps and steps are both 0")
    return Ended(model, status, state)


def _kept(session: Session, steps: Iterator[Step]) -> Iterator[tuple[Step, bool]]:
    """Each step, and whether the time is over; when another process is gone, the last step before that is saved."""
    last = None
    try:
        for step in steps:
            over = decided(session.stop, step.state is not None and session.is_over())
            last = step
            yield step, over
    except ProcessError:
        if last is not None and last.state is not None and last.step not in _checkpoints.steps(session.path):
            _save(session, last)
        raise


def _is_landmark(step: Step) -> bool:
    """The first step after the warm-up, and each that measured the held-out bound."""
    return int(step.state.done) == 1 or step.held_out == step.held_out


def _tell(session: Session, step: Step) -> None:
    if step.note:
        log(session.path, f"step {step.step}: {step.note}")
    if step.state is None and step.bound != step.bound:
        return  # the end of a warm-up is no step of its own
    line = {
        "step": step.step,
        "phase": step.phase,
        "bound": step.bound,
        "held_out": step.held_out,
        "states_in_use": step.states_in_use,
        "frames_per_second": step.frames_per_second,
        "seconds": session.seconds(),
        "note": step.note,
    }
    append_metrics(session.path, line | _details(step))


def _details(step: Step) -> dict[str, Any]:
    """The parts of the bound; of a measurement, each restart and the states of a held-out stretch by the best."""
    found = {} if step.parts is None else step.parts._asdict()
    if len(step.restarts) > 1:
        found["restarts"] = [bound if math.isfinite(bound) else None for bound in step.restarts]
    if step.labels is not None and len(step.labels) and step.model.config.model in SWITCHING:
        found["labels"] = run_lengths(step.labels[:LABELLED])
    return found


def run_lengths(labels: np.ndarray) -> list[list[int]]:
    """[state, frames] of each run of equal labels."""
    edges = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1], True])
    return [[int(labels[first]), int(last - first)] for first, last in itertools.pairwise(edges)]


def _save(session: Session, step: Step) -> None:
    """A checkpoint, and the best model where it is a new one; the lines of all steps before it are on the disk."""
    state = step.state
    sync_metrics(session.path)
    body = {"config": state.models.config.to_dict(), "seconds": session.seconds()}
    _checkpoints.save(session.path, _checkpoints.Checkpoint(step.step, store.arrays_of(state), body))
    save_best(session.path, state)
    log(session.path, f"step {step.step}: checkpoint saved")


def save_best(run: Path, state: FitState) -> None:
    """checkpoints/best: the model with the highest held-out bound so far, unless it is there already."""
    best = run / _checkpoints.FOLDER / _checkpoints.BEST
    now = {"done": int(state.best_done), "held_out": float(state.best_bound)}
    with contextlib.suppress(store.StoreError):
        if store.load_extra(best) == now:
            return
    if now["done"] > 0:
        with writing(run):
            store.save(state.best, best, extra=now)


def _finish(run: Run, ended: Ended, data: Recordings, stop) -> None:
    """model/, posterior/, bouts.csv and restarts.json; a run stopped here writes them again when it is resumed."""
    with writing(run.path):
        store.save(ended.model, run.path / MODEL)
    for _ in write_answers(ended.model, data, run.path):
        stop.leave()
    if ended.state is not None and run.config.restarts > 1:
        for _ in write_restarts(run, ended.state, data):
            stop.leave()
