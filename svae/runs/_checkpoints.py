"""checkpoints/step-00000100: named arrays under seal; the newest three are kept, and the best model.

Before the first of them there is checkpoints/warm-0: the model of a restart with warm networks, and perhaps its states.
"""

import contextlib
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from svae import _sealed, store
from svae._sealed import StoreError
from svae.fitting.warm_up import Warm
from svae.runs._folder import RunError, writing
from svae.store import named_now

FOLDER, BEST, WARM = "checkpoints", "best", "warm-"
KEPT = 3


class Checkpoint(NamedTuple):
    """A state of a fit as named arrays, the step it was taken after, and the JSON values beside it."""

    step: int
    arrays: dict[str, np.ndarray]
    body: dict


def save(run: Path, point: Checkpoint) -> None:
    """Write one, then remove what is too old; when this returns the checkpoint is on the disk."""
    with writing(run):
        _sealed.write(_folder(run, point.step), point.arrays, {"step": point.step, "state": point.body})
        _sealed.sync_folder(run)
        kept = [_folder(run, step) for step in steps(run)[-KEPT:]]
        for old in (run / FOLDER).glob("step-*"):  # too old, or never finished
            if old not in kept:
                _remove(old)
        for old in (run / FOLDER).glob(f"{WARM}*"):
            _remove(old)


def save_warm(run: Path, restart: int, warm: Warm) -> None:
    """How far the warm-up of a restart has come; when this returns it is on the disk."""
    with writing(run):
        store.save(warm.model, run / FOLDER / f"{WARM}{restart}", extra={"has_states": warm.has_states})


def warm(run: Path, like: Any = None) -> list[Warm]:
    """The restarts that are warm, in order; what is damaged is passed over, and computed again."""
    found: list[Warm] = []
    with contextlib.suppress(StoreError):
        for number in range(warm_restarts(run)):
            folder = run / FOLDER / f"{WARM}{number}"
            found.append(Warm(store.load_model(folder, like=like), store.load_extra(folder).get("has_states") is True))
    return found


def newest(run: Path) -> Checkpoint | None:
    """The newest whole checkpoint, and none newer than it is left; None if there never was one."""
    found = steps(run)
    for step in reversed(found):
        try:
            arrays, manifest = _sealed.read(_folder(run, step))
            _sealed.require(_folder(run, step), manifest, {"step": int, "state": dict})
        except StoreError:
            continue
        for later in [other for other in found if other > step]:
            _remove(_folder(run, later))
        return Checkpoint(manifest["step"], named_now(arrays, manifest["format"]), manifest["state"])
    if found:
        raise RunError(f"no checkpoint in {run / FOLDER} is whole; restore one from a copy or start a new run")
    return None


def steps(run: Path) -> list[int]:
    """The steps that have a finished checkpoint, ascending."""
    folders = (run / FOLDER).glob("step-*")
    return sorted(int(f.name[5:]) for f in folders if f.name[5:].isdigit() and (f / _sealed.MANIFEST).exists())


def warm_restarts(run: Path) -> int:
    """How many restarts are warm."""
    number = 0
    while (run / FOLDER / f"{WARM}{number}" / _sealed.MANIFEST).exists():
        number += 1
    return number


def written(run: Path, step: int) -> int:
    """When a checkpoint was written, in nanoseconds."""
    return (_folder(run, step) / _sealed.MANIFEST).stat().st_mtime_ns


def _folder(run: Path, step: int) -> Path:
    return run / FOLDER / f"step-{step:08d}"


def _remove(folder: Path) -> None:
    """The manifest first: without it a folder is no checkpoint. What cannot be removed now is no harm."""
    with contextlib.suppress(OSError):
        (folder / _sealed.MANIFEST).unlink(missing_ok=True)
        shutil.rmtree(folder)
