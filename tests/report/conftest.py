"""Runs on recordings in a file, so that they can be read again."""

import json

import numpy as np
import pytest

from svae import runs
from svae.config import Config
from svae.data import find_preprocess, load
from svae.model import make
from svae.runs._apply import write_answers
from svae.store import save

FPS = 10.0


def begun(folder, model, shape=(3,)):
    """A run folder for three recordings with frames of `shape`, levels of ten frames each; and the recordings."""
    rng = np.random.default_rng(0)
    levels = 3 * rng.normal(size=(3, int(np.prod(shape))))[np.arange(60) // 10 % 3]
    data = {f"walk {i}": levels + 0.3 * rng.normal(size=levels.shape) for i in range(3)}
    folder.mkdir()
    np.savez(folder / "walks.npz", **{name: y.reshape(-1, *shape).astype(np.float32) for name, y in data.items()})
    known = {"network": "affine", "states": 3, "latent_dim": 2, "steps": 8, "warmup_steps": 5, "batch_size": 2}
    config = Config(model=model, target_duration=10.0 if model == "hmm" else None, **known)
    recordings = load(folder / "walks.npz", fps=FPS)
    source = {"path": str(folder / "walks.npz"), "fps": FPS}
    run = runs.start(folder / "run", recordings, config, source=source, command=["svae", "fit", "<walks> & more"])
    return run, recordings


def line(step, bound, held_out):
    """Of metrics.jsonl."""
    known = {"step": step, "phase": "fit", "bound": bound, "held_out": held_out, "states_in_use": 3, "seconds": 1.0}
    return json.dumps(known) + "\n"


def answered(folder, model, shape=(3,)):
    """As a fit would leave it, but with the model that a fit begins with: nothing here depends on how good it is."""
    run, recordings = begun(folder, model, shape)
    before = find_preprocess(recordings, run.config)
    made = make(before.shape(shape), run.config, preprocess=before)
    save(made, run.path / "model")
    list(write_answers(made, recordings, run.path))
    (run.path / "metrics.jsonl").write_text(
        "".join(line(s, float(s), s - 1.0 if s % 3 == 0 else None) for s in range(9))
    )
    return run


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    return answered(tmp_path_factory.mktemp("report") / "hmm", "hmm")
