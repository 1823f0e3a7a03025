"""What verbs share about recordings, runs and models."""

import collections
import statistics
from pathlib import Path
from typing import Any

from svae.cli._machine import use_compilation_cache

IN_USE = 0.01  # of all frames that a state in use has at least


def frame_rate(recordings: Any) -> float | None:
    """Frames per second: as given, else from the times of the frames; None where neither is known."""
    import numpy as np

    if recordings.fps is not None:
        return recordings.fps
    steps = [np.median(np.diff(t)) for t in recordings.times if t is not None and len(t) > 1]
    return float(1 / np.median(steps)) if steps and np.median(steps) > 0 else None


def open_model(path: Path) -> Any:
    """The model of a run folder, or of a folder that `svae.save` wrote."""
    from svae.runs import Run, is_run
    from svae.store import load_model

    use_compilation_cache()
    if not is_run(path) and (path / "manifest.json").exists():
        return load_model(path)
    return Run(path).model()


def open_data(path: Path, data: str, fps: float | None, dataset: str | None) -> Any:
    """Recordings to ask the model of `path` about; what is left open is as it was in its run."""
    from svae.data import load

    before = _source(path)
    found = load(data, fps=fps, dataset=dataset or before.get("dataset"))
    timed = found.fps is not None or any(t is not None for t in found.times)
    return found if timed else found._replace(fps=before.get("fps"))


def _source(path: Path) -> dict[str, Any]:
    """fps and dataset of the data that a run was fitted to; nothing for a model without a run."""
    from svae.runs import Run, is_run

    if not is_run(path):
        return {}
    provenance = Run(path).provenance()
    return {"fps": provenance.get("fps"), "dataset": (provenance.get("source") or {}).get("dataset")}


def random_key(seed: int) -> Any:
    """The key of everything random in one command."""
    import jax

    from svae.config import ConfigError

    if not 0 <= seed < 2**32:
        raise ConfigError(f"--seed must be at least 0 and below 2**32, not {seed}")
    return jax.random.key(seed)


def labels_of(path: Path) -> Any:
    """The names and merges that people have given to the states of a run; None for a model without a run."""
    from svae.runs import Run, is_run

    return Run(path).labels() if is_run(path) else None


def stem(data: str) -> str:
    """A short name for what a path or a pattern points to."""
    from svae.data import safe_names

    path = Path(data)
    return safe_names([path.stem.rstrip("*._- ") or path.parent.name or "data"])[0]


def new_folder(wanted: Path) -> Path:
    """The folder, or the first of folder-2, folder-3, ... that does not exist."""
    number, found = 2, wanted
    while found.exists():
        number, found = number + 1, wanted.with_name(f"{wanted.name}-{number}")
    return found


def summary(run: Any) -> dict[str, Any]:
    """How a run stands, in a few values."""
    provenance, lines, config = run.provenance(), run.metrics(), run.config
    last = lines[-1] if lines else {}
    return {
        "run": str(run.path),
        "status": provenance["status"],
        "model": config.model,
        "states": config.states,
        "latent_dim": config.latent_dim,
        "recordings": len(provenance["data"]),
        "frames": sum(entry["frames"] for entry in provenance["data"]),
        "frames_per_second": provenance.get("fps"),
        "steps": last.get("step", 0),
        "bound": last.get("bound"),
        "held_out": run.held_out(),
        "states_in_use": last.get("states_in_use"),
        "seconds": last.get("seconds"),
        **_bouts(run),
        **_trust(run),
    }


def _bouts(run):
    if not (run.path / "bouts.csv").exists():
        return {}
    found = run.bouts()
    lengths = [bout.stop_s - bout.start_s for bout in found]
    used, total = collections.Counter(), sum(lengths)
    for bout, length in zip(found, lengths, strict=True):
        used[bout.state] += length
    return {
        "states_in_use": sum(time >= IN_USE * total for time in used.values()),
        "bouts": len(lengths),
        "median_bout_s": statistics.median(lengths) if lengths else None,
        "target_duration_s": _target(run),
    }


def _target(run):
    """The mean duration of a bout that was asked for, on the clock of the run."""
    frames = run.config.target_duration
    return None if frames is None else frames / (run.provenance().get("fps") or 1.0)


def _trust(run):
    """How far restarts agree, and what plain models reach on the same split; nothing where it is not known."""
    restarts, found = run.restarts(), run.baselines()
    agree = {} if restarts is None else {"restart_agreement": restarts.get("mean_ari")}
    return agree | ({} if found is None else compared(found))


def compared(found: dict[str, Any]) -> dict[str, Any]:
    """Baselines as a list for programs, and as a line for people."""
    values = {name: value for name, value in (found.get("baselines") or {}).items() if isinstance(value, int | float)}
    words = ", ".join(f"{name} {value:.2f}" for name, value in values.items())
    rows = [{"name": name, "held_out": value} for name, value in values.items()]
    return {"held_out_of_others": words or found.get("note") or None, "baselines": rows}
