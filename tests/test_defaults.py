"""Shell, Python and scikit-learn give the same fit."""

import jax
import numpy as np
import pytest

import svae
from svae.cli import main
from svae.sklearn import SLDS

OPTIONS = {"states": 3, "latent_dim": 2, "hidden": (8,), "steps": 4, "warmup_steps": 2, "seed": 3}


def leaves(model):
    return [np.asarray(leaf) for leaf in jax.tree.leaves((model.q, model.recognize, model.observe, model.places))]


@pytest.mark.parametrize("length", [90, 700])
def test_the_same_model_bit_for_bit(tmp_path, length):
    y = np.cumsum(np.random.default_rng(0).normal(size=(length, 3)), 0).astype(np.float32)
    np.save(tmp_path / "walk.npy", y)
    settings = [f"--set={name}={list(v) if isinstance(v, tuple) else v}" for name, v in OPTIONS.items()]
    assert main(["fit", str(tmp_path / "walk.npy"), "--out", str(tmp_path / "run"), *settings]) == 0
    shell = svae.load_model(tmp_path / "run" / "model")
    for step in svae.fit(svae.model_for(y, **OPTIONS), y):
        library = step.model
    estimator = SLDS(**OPTIONS, held_out=0.1).fit(y).model_
    for other in (library, estimator):
        assert all(np.array_equal(a, b) for a, b in zip(leaves(shell), leaves(other), strict=True))


def test_given_options_win():
    model = svae.model_for(np.zeros((600, 3)) + np.arange(600)[:, None], window=50, patience=None, target_duration=7.0)
    assert (model.config.window, model.config.patience, model.config.target_duration) == (50, None, 7.0)
