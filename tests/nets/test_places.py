"""Potentials on states: the density of a Gaussian, and what a latent model makes of them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

import svae
from svae import expfam
from svae.nets import Places, no_places

P, D, K, T = 4, 2, 3, 9


def places(share=0.5, missing=False):
    rng = np.random.default_rng(0)
    root = np.stack([np.linalg.inv(np.linalg.cholesky(np.cov(rng.normal(size=(D, 20))))) for _ in range(K)])
    values = rng.normal(size=(P, D)), rng.normal(size=P), 1e-9, np.full(D, 0.5), rng.normal(size=(K, D)), root, share
    return Places(*(jnp.asarray(a, float) for a in values), missing)


@pytest.mark.parametrize("missing", [False, True])
def test_a_share_of_the_log_density_of_the_place(x64, missing):
    found = places(missing=missing)
    x = np.random.default_rng(1).normal(size=(T, D))
    y = jnp.asarray(x @ np.asarray(found.W).T + np.asarray(found.b))
    expected = [
        multivariate_normal(m, np.linalg.inv(R.T @ R)).logpdf(x / 2)
        for m, R in zip(np.asarray(found.mean), np.asarray(found.root), strict=True)
    ]
    away = np.asarray(found(y)) - 0.5 * np.array(expected).T
    np.testing.assert_allclose(away - away.mean(), 0, atol=1e-5)  # up to a constant


def test_the_place_of_a_frame_with_a_gap_is_that_of_the_whole_frame(x64):
    found = places(missing=True)
    x = np.random.default_rng(1).normal(size=(T, D))
    y = jnp.asarray(x @ np.asarray(found.W).T + np.asarray(found.b))
    np.testing.assert_allclose(found.place(y.at[:, 0].set(jnp.nan)), found.place(y), atol=1e-5)


def test_a_frame_without_any_entry_says_nothing():
    said = places(missing=True)(jnp.full((T, P), jnp.nan))
    np.testing.assert_array_equal(said, 0)


def test_a_glitch_is_bounded():
    assert np.all(np.abs(places().place(jnp.full((1, P), 1e6))) <= 3.0)


def test_no_places_change_no_posterior_and_the_derivative_of_the_surrogate_is_the_states(x64):
    model = svae.make((P,), model="slds", states=K, latent_dim=D, hidden=[4], seed=1)
    y, mask = jnp.asarray(np.random.default_rng(2).normal(size=(T, P))), jnp.ones(T, bool)
    moments = expfam.moments(model.q)
    plain = model.pgm.infer(moments, model.recognize(y, mask), mask)
    np.testing.assert_array_equal(model.posterior(moments, y, mask).states, plain.states)
    said = dataclasses.replace(model, places=places())
    q = said.posterior(moments, y, mask)
    assert np.abs(q.states - plain.states).max() > 0.01

    def surrogate(states):
        return jnp.sum(model.pgm.infer(moments, model.recognize(y, mask), mask, None, {"z": states}).log_normalizer)

    slope = jax.grad(surrogate)(said.places(y))
    np.testing.assert_allclose(slope, q.states, atol=2e-2)  # the fixed point is found to 0.01 nats


def test_a_bound_is_tighter_without_places_and_none_changes_nothing(x64):
    """Any q(z) bounds log p(y). What places add to it is no part of that, and is taken off before both are compared."""
    model = svae.make((P,), model="slds", states=K, latent_dim=D, hidden=[4], seed=1)
    mask, moments = jnp.ones(T, bool), expfam.moments(model.q)
    said = dataclasses.replace(model, places=places(share=3.0))
    for seed in range(5):
        y = jnp.asarray(np.random.default_rng(seed).normal(size=(T, P)))
        seen, tight = said.posterior(moments, y, mask), said.tightest(moments, y, mask)
        of_seen = jnp.sum(seen.log_normalizer) - jnp.sum(said.places(y) * seen.states)
        assert jnp.sum(tight.log_normalizer) > of_seen
        alone = model.posterior(moments, y, mask), model.tightest(moments, y, mask)
        np.testing.assert_array_equal(alone[0].states, alone[1].states)


def test_a_model_without_dynamics_of_states_has_none():
    assert svae.make((P,), model="hmm").places is None and svae.make((P,), model="slds", states=1).places is None
    assert isinstance(svae.make((P,), model="slds").places, Places)
    assert no_places(P, D, K, missing=False)(jnp.ones((T, P))).shape == (T, K)
