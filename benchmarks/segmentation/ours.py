"""Our states: what the command `svae fit DATA --states K` writes, and nothing else."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.segmentation.sets import Part


def segmented(part: Part, states: int | None, seed: int, options: list[str], scratch: Path):
    """States (T_i,) of each recording, and what the run says of itself. `states` None: the number is not given."""
    data = part.source or _written(part.sequences, scratch / "data")
    line = [sys.executable, "-m", "svae", "fit", str(data), "--out", str(scratch / "run"), "--seed", str(seed)]
    line += [] if states is None else ["--states", str(states)]
    line += [] if part.fps is None else ["--fps", str(part.fps)]
    subprocess.run([*line, *options], check=True, capture_output=True, text=True)
    return _answers(scratch / "run")


def _written(sequences, folder):
    folder.mkdir()
    for number, y in enumerate(sequences):
        np.save(folder / f"recording_{number:04d}.npy", np.asarray(y))
    return folder


def _answers(path):
    from svae.runs import Run

    run = Run(path)
    steps = run.metrics()
    measured = [line["held_out"] for line in steps if line.get("held_out") is not None]
    facts = {
        "steps": sum(line["phase"] == "fit" for line in steps),
        "held_out": run.held_out(),
        "held_out_last": measured[-1] if measured else None,
        "target": run.config.target_duration,
        "latent_dim": run.config.latent_dim,
        "plain": (run.baselines() or {}).get("baselines"),
    }
    return [np.asarray(run.states(name)) for name in sorted(run.recordings())], facts
