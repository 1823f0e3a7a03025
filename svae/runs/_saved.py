"""What a run folder holds, in one sentence: for who has stopped a run, or finds one that was stopped."""

from pathlib import Path

from svae.config import Config
from svae.runs import _checkpoints
from svae.runs._folder import BOUTS, MODEL, POSTERIOR
from svae.runs._run import Run


def saved(run: Run) -> str:
    """How far the run has come and what of it is on the disk.

    Args:
        run: A run.

    Returns:
        A sentence.
    """
    config, path = run.config, run.path
    warm = config.warmup_steps * config.restarts
    steps = _checkpoints.steps(path)
    if not steps:
        return _before_the_start(run, config)
    modelled = _written(path / MODEL / "manifest.json")
    if modelled <= _checkpoints.written(path, steps[-1]):
        at = f"step {steps[-1] - warm} of {config.steps}" if steps[-1] > warm else "the start, before the first step,"
        return f"{at} is saved in {path}"
    labelled = sum(_written(file) > modelled for file in (path / POSTERIOR).glob("*.nc"))
    if labelled < len(run.recordings()) or _written(path / BOUTS) < modelled:
        return f"the model is saved in {path}, with the answers for {labelled} of {len(run.recordings())} recordings"
    return f"the model and all its answers are saved in {path}"


def _written(file: Path) -> int:
    """When, in nanoseconds; 0 where it never was."""
    return file.stat().st_mtime_ns if file.exists() else 0


def _before_the_start(run: Run, config: Config) -> str:
    found = _checkpoints.warm_restarts(run.path)
    if not found:
        return f"{run.path} has no checkpoint yet, and the warm-up begins again"
    which = f"of {found} of {config.restarts} restarts " if config.restarts > 1 else ""
    return f"the warm-up {which}is saved in {run.path}, and a search for states that was cut begins again"
