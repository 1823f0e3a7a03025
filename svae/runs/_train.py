"""A fit in a run folder: each step is told, states are kept, and whatever stops it can go on exactly.

All that is computed is computed in another thread, and all that is written is written in this one. So a signal, or the
end of the time, is answered at once, and what is in the middle of something after a few seconds is left behind.
"""

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from svae import store
from svae.data import Recordings, recordings
from svae.devices import ProcessError, part
from svae.fitting import loop
from svae.fitting.loop import FitState, Step, Warm
from svae.model import SVAE
from svae.runs import _checkpoints
from svae.runs._apply import write_answers
from svae.runs._attended import GRACE, Left, Watch, attended, done, watching
from svae.runs._folder import MODEL, RunError, append_metrics, locked, log, sync_metrics, writing
from svae.runs._null import keep_null
from svae.runs._processes import decide, gathered, new_model
from svae.runs._quality import read_all_qualities, write_quality
from svae.runs._reserve import labelling_seconds
from svae.runs._restarts import write_restarts
from svae.runs._run import Run
from svae.runs._saved import saved
from svae.runs._scree import keep_scree
from svae.runs._session import Begin, Session, begin, close, require
from svae.runs._signals import leave, say
from svae.runs._stability import Stability, keep_starts, stability

LABELLED = 2000  # frames of a held-out stretch whose states are told at each measurement
SAVE_EVERY = 60.0  # seconds between checkpoints at most, beside those at each measurement
SEARCHED = 0.6  # of the time that is left when a fit begins, at which its search for states hurries
OVERTIME = 4.0  # seconds after its time that answers may take when they need longer than was measured
LAST_GRACE = 2.0  # seconds for the window that is then being labelled


class Ended(NamedTuple):
    """What is left when a fit ends."""

    model: SVAE | None  # None where the time was over before there was one
    status: str
    state: FitState | None = None  # None where there was a warm-up only


def _plain(steps: Iterator, title: str) -> Iterator:
    yield from steps


def train(
    run: Run, data: Any, *, max_time: float | None = None, resume: bool = False, progress: Callable = _plain
) -> Run:
    """Fit the model of a run folder to its recordings and write its answers; returns the same run.

    `max_time` (seconds) is the time for all of it: the fit ends as early as its answers need. With `resume` it goes on
    from the newest checkpoint. Ctrl-C and SIGTERM save and leave with KeyboardInterrupt and SystemExit(143).
    `progress(steps, title)` passes the steps on.

    Args:
        run: What `start` gave.
        data: The recordings that it was started with.
        max_time: Seconds for all of it.
        resume: Whether to go on from the newest checkpoint.
        progress: Passes steps on, such as `svae.progress.bar`.

    Returns:
        The same run.
    """
    data = recordings(data)
    with locked(run.path), watching(max_time) as watch:
        model = _model(run, data, resume, watch)
        session, start = begin(run, model, watch)
        try:
            ended = _fitted(session, run, data, model, start, progress)
            part()
            status = _finish(session, run, ended, data, progress)
        except BaseException as error:
            close(session, _why(error))
            raise
        close(session, status)
    return run


def _model(run: Run, data: Recordings, resume: bool, watch: Watch) -> SVAE:
    """The model before its fit, once every file has been compared with what the run was started with."""

    def checked():
        require(run, data, resume)
        return new_model(data, run.config) if run.like is None else _own(run)

    try:
        return done(checked, watch)
    except Left:
        raise RunError(f"the time was over before the fit began: {saved(run)}; give it more") from None


def _own(run: Run) -> SVAE:
    """The model of one's own that the run is of."""
    if run.like.config != run.config:
        raise RunError(f"{run.path} was started with another configuration than that of the model in like=")
    return run.like


def _why(error: BaseException) -> str:
    return "stopped" if isinstance(error, KeyboardInterrupt | SystemExit) else f"failed: {error}"


# --- the fit ------------------------------------------------------------------------------------------------------


class _Kept:
    """The newest state and the newest model that can label, and what of them is on the disk."""

    def __init__(self, session: Session, start: Begin):
        self.session = session
        self.step: Step | None = None  # the newest with a state
        self.model: SVAE | None = None if start.state is None else loop.final_model(start.state)
        self.state = start.state
        self.restart = 0  # of which the warm-up is going on
        self.saved = time.monotonic()

    def take(self, step: Step) -> None:
        """Write down what a step tells, and save it if it is time to."""
        watch = self.session.watch
        decide(watch, step)
        if step.state is not None:
            self.step, self.state, self.model = step, step.state, step.model
            if watch.over or watch.agreed or time.monotonic() - self.saved > SAVE_EVERY or _is_landmark(step):
                self.save()
        elif step.share in (0.0, 1.0):
            self._warm(step)

    def _warm(self, step: Step) -> None:
        """A restart has come to its states, or found them."""
        has_states = step.share == 1.0
        if step.starts is not None:
            keep_starts(self.session.path, self.restart, step.starts)
        if step.scree is not None:
            keep_scree(self.session.path, step.scree)
        if step.null is not None:
            keep_null(self.session.path, step.null)
        if jax.process_count() == 1:
            _checkpoints.save_warm(self.session.path, self.restart, Warm(step.model, has_states))
        if has_states:
            self.model, self.restart = step.model, self.restart + 1

    def save(self) -> None:
        """A checkpoint of the newest state, unless it has one."""
        if self.step is not None and self.step.step not in _checkpoints.steps(self.session.path)[-1:]:
            _save(self.session, self.step)
            self.saved = time.monotonic()


def _fitted(session: Session, run: Run, data: Recordings, model: SVAE, start: Begin, progress: Callable) -> Ended:
    """All steps until the fit ends, somebody asks, the time is over, or another process is gone."""
    kept, watch = _Kept(session, start), session.watch
    work = _steps(run, data, model, start, watch)
    grace = GRACE if jax.process_count() == 1 else math.inf
    try:
        with contextlib.closing(progress(attended(work, watch, grace), run.path.name)) as steps:
            _reserve(session, kept, data)
            for step in steps:
                _tell(session, step)
                kept.take(step)
                leave(watch.agreed)
                if step.phase == "end":
                    return Ended(step.model, "time over", step.state)
                if watch.over and step.state is None:
                    return Ended(kept.model, "time over")
                _reserve(session, kept, data)
    except Left:
        kept.save()
        watch.stop.leave()
        return _left_behind(session, kept, run)
    except ProcessError:
        kept.save()
        raise
    if kept.state is None and kept.model is None:
        raise RunError(f"{session.path} has nothing to fit: warmup_steps and steps are both 0")
    return Ended(_last(kept), "finished", kept.state)


def _left_behind(session: Session, kept: _Kept, run: Run) -> Ended:
    """The time was over in the middle of something: what there was before it."""
    taken = 0 if kept.state is None else int(kept.state.done)
    told = f"the time is over after {taken} of {run.config.steps} steps; what was going on is left behind"
    log(session.path, told)
    say(told)
    return Ended(None if kept.model is None else _last(kept), "time over", kept.state)


def _last(kept: _Kept) -> SVAE:
    return kept.model if kept.state is None else loop.final_model(kept.state)


def _steps(run: Run, data: Recordings, model: SVAE, start: Begin, watch: Watch) -> Iterator[Step]:
    state = gathered(data, run.config, model, start.state)
    left = watch.left()

    def hurries():
        return left is not None and watch.left() < SEARCHED * left

    yield from loop.fit(model, data, resume=state, warm=start.warm, is_over=lambda: watch.over, hurries=hurries)


def _reserve(session: Session, kept: _Kept, data: Recordings) -> None:
    """Once there is a model that can label, and a limit, keep the time that its answers need."""
    watch = session.watch
    if watch.end is not None and not watch.reserve and kept.model is not None:
        watch.reserve = done(lambda: labelling_seconds(kept.model, data, session.path), watch)
        log(session.path, f"the answers will take about {watch.reserve:.0f} s, which are kept for them")


def _is_landmark(step: Step) -> bool:
    """The state before the first step, the first step, and each that measured the held-out bound."""
    return step.phase == "start" or int(step.state.done) == 1 or step.held_out == step.held_out


def _tell(session: Session, step: Step) -> None:
    if step.note:
        log(session.path, f"step {step.step}: {step.note}")
    if step.phase == "states":
        return  # no step of its own
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
    if len(step.blocks):
        found["blocks"] = list(step.blocks)
    if step.labels is not None and len(step.labels) and step.model.pgm.discrete:
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


# --- the answers --------------------------------------------------------------------------------------------------


def _finish(session: Session, run: Run, ended: Ended, data: Recordings, progress: Callable) -> str:
    """model/, posterior/, bouts.csv and restarts.json; a run stopped here writes them again when it is resumed.

    Gives the status of the run.
    """
    watch = session.watch
    if ended.model is None:
        log(run.path, f"the time was over before there was a model to label with: {saved(run)}")
        return ended.status
    with writing(run.path):
        store.save(ended.model, run.path / MODEL)
    watch.reserve = -OVERTIME
    try:
        with contextlib.closing(progress(_labelling(ended, run, data, watch), run.path.name)) as steps:
            for _ in steps:
                watch.stop.leave()
                if watch.is_over():
                    raise Left
    except Left:
        watch.stop.leave()
        log(run.path, f"the time was over before all was labelled: {saved(run)}")
        return "time over"
    return ended.status


def _labelling(ended: Ended, run: Run, data: Recordings, watch: Watch) -> Iterator[Step]:
    """A step for each window that is labelled, and for each restart that is compared."""

    def attend(work):
        return attended(work, watch, LAST_GRACE)

    told = Step(0, data.frames, "labels", ended.model, np.nan, np.nan, 0, np.nan, "")
    for frames in write_answers(ended.model, data, run.path, attend):
        yield told._replace(step=frames)
    if ended.state is not None and run.config.restarts > 1:
        for done in write_restarts(run, ended.state, data, attend):
            yield told._replace(phase="restarts", step=done, total=run.config.restarts)
    _complete_states(run)


def _complete_states(run: Run) -> None:
    """states.csv with how well each state is found again, where that is known."""
    seen, known = read_all_qualities(run.path), stability(run.path, run.config.restarts)
    if seen and isinstance(known, Stability):
        write_quality(run.path, seen, known.again)
