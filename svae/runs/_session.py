"""One process's part of a run: from the newest checkpoint on, under the eyes of provenance.json and log.txt."""

import contextlib
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx

from svae import _fit, _program, store
from svae._fit import FitState
from svae._model import SVAE
from svae.data import Recordings
from svae.runs import _checkpoints, _provenance
from svae.runs._folder import PROVENANCE, RunError, cut_metrics, log, read_json, write_json, writing
from svae.runs._run import Run
from svae.runs._signals import Stop


class Session(NamedTuple):
    """The folder, when this process began, and what may end it."""

    path: Path
    began: float  # of the monotonic clock
    before: float  # seconds that earlier sessions have taken
    stop: Stop = Stop()
    max_time: float | None = None

    def seconds(self) -> float:
        """Since the run began, pauses left out."""
        return round(self.before + time.monotonic() - self.began, 3)

    def is_over(self) -> bool:
        """Whether this session has taken its time."""
        return self.max_time is not None and time.monotonic() - self.began >= self.max_time


def begin(run: Run, data: Recordings, model: SVAE, resume: bool) -> tuple[Session, FitState | None]:
    """Check that the run can go on here, and cut it back to its newest checkpoint."""
    provenance = run.provenance()
    if provenance.get("status") != "started" and not resume:
        raise RunError(f"{run.path} has been trained before; resume it, or start a new run")
    _provenance.require_same(provenance["data"], data, run.path)
    point = _checkpoints.newest(run.path)
    state = None if point is None else _restored(run, model, point)
    _tell(run.path, provenance, 0 if point is None else point.step)
    cut_metrics(run.path, 0 if point is None else point.step)
    return Session(run.path, time.monotonic(), 0.0 if point is None else float(point.body["seconds"])), state


def _restored(run: Run, model: SVAE, point: _checkpoints.Checkpoint) -> FitState:
    """The state of a fit, bit for bit."""
    if point.body.get("config") != run.config.to_dict():
        raise RunError(f"{run.path / 'config.toml'} was changed after the run began; undo it, or start a new run")
    skeleton = eqx.filter_eval_shape(lambda: _fit.start(_program.stack([model] * model.config.restarts)))
    store.compare(store.signature(point.arrays), skeleton, f"the checkpoint of step {point.step}")
    return store.filled(skeleton, point.arrays)


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
