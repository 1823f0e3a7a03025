"""Shell, Python and scikit-learn give the same fit."""

import jax
import numpy as np
import pytest

import svae
from svae.cli import main
from svae.fitting.defaults import dimensions
from svae.sklearn import LDS, SLDS

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


@pytest.mark.parametrize(("P", "rank", "found"), [(12, 3, 3), (6, 6, 6), (12, 12, 12), (40, 30, 8)])
def test_as_many_dimensions_as_hold_the_variance_and_no_more_than_most(P, rank, found):
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(4000, rank)) @ rng.normal(size=(rank, P)) * 10.0 ** rng.uniform(-3, 3, P)
    assert dimensions(frames, 4000) == found  # whatever the units of the columns
    frames[rng.random(frames.shape) < 1e-4] = np.nan
    assert dimensions(frames, 900) >= min(found, 8)
    assert dimensions(frames, 900) <= 9


def test_large_frames_share_a_unit_and_few_of_them_are_enough():
    rng = np.random.default_rng(0)
    frames = (rng.normal(size=(3000, 4)) @ rng.normal(size=(4, 1200))).reshape(3000, 30, 40)
    frames[:, 0, 0] = 1e-6 * rng.normal(size=3000)  # a pixel that hardly changes
    assert dimensions(frames, 3000) == 4
    assert dimensions(np.ones((50, 3)), 50) <= 3


def test_eight_dimensions_are_a_choice_in_scikit_learn_too():
    y = np.cumsum(np.random.default_rng(0).normal(size=(60, 3)), 0)
    few = {"hidden": (), "steps": 1, "warmup_steps": 0}
    assert LDS(latent_dim=8, **few).fit(y).model_.config.latent_dim == 8
    assert LDS(**few).fit(y).model_.config.latent_dim == 3


def test_given_options_win():
    model = svae.model_for(np.zeros((600, 3)) + np.arange(600)[:, None], window=50, patience=None, target_duration=7.0)
    assert (model.config.window, model.config.patience, model.config.target_duration) == (50, None, 7.0)
