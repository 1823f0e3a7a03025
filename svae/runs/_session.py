"""One process's part of a run: from the newest checkpoint on, under the eyes of provenance.json and log.txt."""

import contextlib
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax

from svae import store
from svae.config import with_split_seed
from svae.data import Recordings
from svae.fitting import loop, program
from svae.fitting.loop import FitState
from svae.model import SVAE
from svae.runs import _checkpoints, _provenance
from svae.runs._attended import Watch
from svae.runs._folder import PROVENANCE, RunError, cut_metrics, log, read_json, write_json, writing
from svae.runs._run import Run


class Session(NamedTuple):
    """The folder, when this process began, and what may end it."""

    path: Path
    began: float  # of the monotonic clock
    before: float  # seconds that earlier sessions have taken
    watch: Watch

    def seconds(self) -> float:
        """Since the run began, pauses left out."""
        return round(self.before + time.monotonic() - self.began, 3)


class Begin(NamedTuple):
    """Where a session goes on from: a state of the fit, or restarts that are warm; neither where it begins."""

    state: FitState | None
    warm: list[_checkpoints.Warm]


def require(run: Run, data: Recordings, resume: bool) -> None:
    """Check that the run can go on with these recordings; every file of them is read."""
    provenance = run.provenance()
    if provenance.get("status") != "started" and not resume:
        raise RunError(f"{run.path} has been trained before; resume it, or start a new run")
    _provenance.require_same(provenance["data"], data, run.path)


def begin(run: Run, model: SVAE, watch: Watch) -> tuple[Session, Begin]:
    """Cut the run back to its newest checkpoint, and go on from there."""
    point, warm = _checkpoints.newest(run.path), []
    if point is None and jax.process_count() == 1:  # other processes would have to begin there as well
        warm = _checkpoints.warm(run.path, run.like)[: model.config.restarts]
    step = len(warm) * model.config.warmup_steps if point is None else point.step
    state = None if point is None else _restored(run, model, point)
    _tell(run.path, run.provenance(), step)
    cut_metrics(run.path, step)
    before = 0.0 if point is None else float(point.body["seconds"])
    return Session(run.path, time.monotonic(), before, watch), Begin(state, warm)


def _restored(run: Run, model: SVAE, point: _checkpoints.Checkpoint) -> FitState:
    """The state of a fit, bit for bit."""
    if with_split_seed(point.body.get("config") or {}) != run.config.to_dict():
        raise RunError(f"{run.path / 'config.toml'} was changed after the run began; undo it, or start a new run")
    skeleton = eqx.filter_eval_shape(lambda: loop.start(program.stack([model] * model.config.restarts)))
    arrays = point.arrays | store.since_format_1(point.arrays, skeleton)
    store.compare(store.signature(arrays), skeleton, f"the checkpoint of step {point.step}")
    return store.filled(skeleton, arrays)


def _tell(run: Path, provenance: dict[str, Any], step: int) -> None:
    """Write down who goes on from where; a difference from the session before gets one sentence."""
    now = {"versions": _provenance.versions(), "machine": _provenance.machine()}
    differ = [
        text
        for kind in now
        if provenance["sessions"]
        for text in _provenance.differences(provenance.get(kind) or {}, now[kind])
    ]
    if differ:
        warnings.warn(
            f"the end may differ in its last bits from a run never stopped: {'; '.join(differ)}", stacklevel=4
        )
        log(run, f"warning: changed since the last session: {'; '.join(differ)}")
    session = {"began": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "after_step": step} | now
    with writing(run):
        write_json(
            run / PROVENANCE,
            provenance | now | {"status": "running", "sessions": [*provenance["sessions"], session]},
        )
    log(run, "the fit begins" if step == 0 else f"the fit goes on after step {step}")


def close(session: Session, status: str) -> None:
    """The last words of a session; where even they cannot be written, the folder is good as it is."""
    with contextlib.suppress(RunError, OSError):
        log(session.path, status)
        provenance = read_json(session.path / PROVENANCE)
        peaks = [peak for peak in (provenance.get("peak_memory_bytes"), _provenance.peak_memory()) if peak]
        ended = {"status": status, "wall_seconds": session.seconds(), "peak_memory_bytes": max(peaks, default=None)}
        write_json(session.path / PROVENANCE, provenance | ended)
