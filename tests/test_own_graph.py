"""A latent graph of one's own through the library: made, fitted, asked, saved and loaded."""

import jax
import numpy as np
import pytest

import svae
from svae import ConfigError
from svae.pgm import Dynamics, Markov, Normal, graph
from svae.store import StoreError

OPTIONS = {"hidden": (4,), "steps": 2, "warmup_steps": 1, "batch_size": 2, "held_out": 0.0}


def own_graph():
    """States of states, and two latents of which one has offsets that add."""
    return graph(
        mood=Markov(2),
        z=Markov(3, given="mood"),
        x=Dynamics(2, given="z"),
        w=Normal(1, add=("mood", "z")),
    )


@pytest.mark.slow
def test_a_fit_ends_and_answers_questions():
    rng = np.random.default_rng(0)
    data = [np.cumsum(rng.normal(size=(30, 4)), 0) for _ in range(2)]
    model = list(svae.fit(svae.make((4,), pgm=own_graph(), **OPTIONS), data))[-1].model
    found = svae.infer(model, data)
    assert found.mean[0].shape == (30, 3) and found.states[0].shape == (30, 3)
    assert svae.segment(model, data).labels[0].max() < 3
    ahead = svae.forecast(model, data, horizon=4, samples=2, key=jax.random.key(0))
    assert ahead.samples[0].shape == (2, 4, 4) and ahead.states[0].shape == (2, 4)
    assert np.isfinite(svae.score(model, data, key=jax.random.key(1), importance_samples=2).importance_bound)
    gaps = [np.where(np.arange(30)[:, None] // 5 == 2, np.nan, y) for y in data]
    assert np.isfinite(svae.impute(model, gaps, key=jax.random.key(2), samples=2, starts=2).frames[0]).all()


def test_it_is_saved_and_loaded_like_another(tmp_path):
    model = svae.make((4,), pgm=own_graph(), key=jax.random.key(9), **OPTIONS)
    svae.save(model, tmp_path / "m")
    assert svae.load_model(tmp_path / "m").pgm.nodes == own_graph().nodes
    fresh = svae.make((4,), pgm=own_graph(), preprocess=model.preprocess, **OPTIONS)
    again = svae.load_model(tmp_path / "m", like=fresh)
    for a, b in zip(jax.tree.leaves(again), jax.tree.leaves(model), strict=True):
        np.testing.assert_array_equal(a, b)
    other = svae.make((4,), pgm=graph(z=Markov(3), x=Dynamics(3, given="z")), preprocess=model.preprocess, **OPTIONS)
    with pytest.raises(StoreError, match="another config"):
        svae.load_model(tmp_path / "m", like=other)
    shorter = svae.make((4,), pgm=own_graph(), preprocess=model.preprocess, **OPTIONS | {"steps": 3})
    with pytest.raises(StoreError, match="another config"):
        svae.load_model(tmp_path / "m", like=shorter)


@pytest.mark.parametrize("option", ["model", "states", "latent_dim", "stickiness", "concentration"])
def test_what_the_graph_says_is_not_said_twice(option):
    with pytest.raises(ConfigError, match=f"{option} is said by the graph"):
        svae.make((4,), pgm=own_graph(), **{option: 2})


def test_a_duration_that_nothing_follows_is_refused():
    with pytest.raises(ConfigError, match="target_duration is followed by a chain without parents"):
        svae.make((4,), pgm=own_graph(), target_duration=10.0)


def test_a_graph_and_a_configuration_agree():
    with pytest.raises(ConfigError, match='needs a config with model = "own" and latent_dim = 3'):
        svae.make((4,), svae.Config(), pgm=own_graph())
    with pytest.raises(ConfigError, match="give it to make as pgm="):
        svae.make((4,), model="own")


def test_ordinary_parameters_are_fitted_saved_and_loaded(tmp_path):
    """Of a recurrent model: they move from where the search for states leaves them."""
    data = svae.data.switching_rotations(bouts=6, bout_length=20, seed=0)
    model = svae.make(data.y.shape[-1:], model="rslds", states=2, latent_dim=2, **OPTIONS | {"window": 60})
    steps = [step.model for step in svae.fit(model, [data.y]) if step.phase == "fit"]
    fitted = steps[-1]
    assert np.any(fitted.pgm.ordinary.z.R != steps[0].pgm.ordinary.z.R)
    svae.save(fitted, tmp_path / "m")
    again = svae.load_model(tmp_path / "m")
    np.testing.assert_array_equal(again.pgm.ordinary.z.R, fitted.pgm.ordinary.z.R)
    ahead = svae.forecast(again, [data.y], horizon=3, samples=2, key=jax.random.key(0))
    assert np.isfinite(ahead.samples[0]).all()
