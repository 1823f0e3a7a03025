"""One small run that nobody disturbs; every other run must end as it did."""

import hashlib
import json

import numpy as np
import pytest

from svae import runs
from svae.config import Config
from svae.data import recordings

CONFIG = Config(
    model="gmm", network="affine", states=3, latent_dim=2, steps=20, warmup_steps=3, batch_size=2, held_out=0.2, seed=5
)


def walks():
    """Five random walks with a gap, at 10 frames a second."""
    data = {f"walk {i}": np.random.default_rng(i).normal(size=(30 + i, 3)).cumsum(0) for i in range(5)}
    data["walk 1"][7:9] = np.nan
    return recordings(data, fps=10.0)


def begin(path):
    return runs.start(path, walks(), CONFIG, command=["svae", "fit", "walks"])


def fingerprint(run):
    """What must be the same, bit for bit, at the end of every run: parameters, answers, the numbers of every step."""
    manifest = json.loads((run.path / "model" / "manifest.json").read_text())
    steps = [[m[k] for k in ("step", "phase", "bound", "held_out", "states_in_use")] for m in run.metrics()]
    answers = [hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted((run.path / "posterior").iterdir())]
    return manifest["arrays"], steps, answers, (run.path / "bouts.csv").read_text()


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    return runs.train(begin(tmp_path_factory.mktemp("runs") / "whole"), walks())


@pytest.fixture(scope="session")
def several(tmp_path_factory):
    """Three restarts."""
    config = Config.make(CONFIG.to_dict() | {"restarts": 3, "seed": 2, "warmup_steps": 0, "steps": 10})
    return runs.train(runs.start(tmp_path_factory.mktemp("several") / "run", walks(), config), walks())
