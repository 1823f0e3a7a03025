"""q(γ): its KL in closed form and by Monte Carlo, its draws, and its place as an observation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy import stats

from svae import nets
from svae.nets.weights import float_arrays

OPTIONS = {"network": "residual", "hidden": (4,), "likelihood": "gaussian", "variance": "learned"}


def weights(*, prior_sd=1.5, sd=0.2):
    return nets.GaussianWeights(
        nets.make_observation((3,), 2, **OPTIONS, key=jax.random.key(0, impl="rbg")), prior_sd=prior_sd, sd=sd
    )


def flat(module):
    return ravel_pytree(float_arrays(module))[0]


def many_draws(observe, *, key):
    """20,000 draws of all the weights, as rows."""
    return np.asarray(jax.jit(jax.vmap(lambda k: flat(observe.draw(key=k))))(jax.random.split(key, 20_000)))


def rough(observe):
    """The same with a different sd at every weight."""
    values, unravel = ravel_pytree(observe.log_sd)
    return eqx.tree_at(
        lambda m: m.log_sd, observe, unravel(values + 0.3 * jax.random.normal(jax.random.key(1), values.shape))
    )


def test_kl_is_its_closed_form(x64):
    observe = rough(weights())
    m, s = np.asarray(flat(observe.observation)), np.exp(ravel_pytree(observe.log_sd)[0])
    expected = np.sum(np.log(1.5 / s) + (s**2 + m**2) / (2 * 1.5**2) - 0.5)
    np.testing.assert_allclose(observe.kl(), expected, rtol=1e-13)


def test_kl_is_the_expected_log_ratio(x64):
    observe = rough(weights())
    m, s = np.asarray(flat(observe.observation)), np.exp(ravel_pytree(observe.log_sd)[0])
    draws = np.asarray(
        jax.jit(jax.vmap(lambda k: flat(observe.draw(key=k))))(jax.random.split(jax.random.key(2), 20_000))
    )
    ratio = (stats.norm(m, s).logpdf(draws) - stats.norm(0, 1.5).logpdf(draws)).sum(1)
    assert abs(ratio.mean() - observe.kl()) < 4 * ratio.std() / np.sqrt(len(ratio))


def test_kl_is_zero_at_the_prior_and_positive_elsewhere(x64):
    observe = weights(prior_sd=0.5, sd=0.5)
    zeros = jax.tree.map(jnp.zeros_like, observe.observation)
    prior = eqx.tree_at(lambda m: m.observation, observe, zeros)
    np.testing.assert_allclose(prior.kl(), 0, atol=1e-12)
    assert observe.kl() > 0


def test_draws_have_the_mean_and_sd(x64):
    observe = rough(weights())
    draws = np.asarray(
        jax.jit(jax.vmap(lambda k: flat(observe.draw(key=k))))(jax.random.split(jax.random.key(3), 20_000))
    )
    s = np.exp(ravel_pytree(observe.log_sd)[0])
    error = (draws.mean(0) - flat(observe.observation)) / s * np.sqrt(len(draws))
    assert np.abs(error).max() < 5
    np.testing.assert_allclose(draws.std(0), s, rtol=0.04)
    correlation = np.corrcoef(draws.T) - np.eye(len(s))
    assert np.abs(correlation).max() < 6 / np.sqrt(len(draws))  # no key serves two leaves


def test_a_draw_is_a_plain_observation(x64):
    drawn = weights().draw(key=jax.random.key(4))
    assert isinstance(drawn, nets.Observation) and drawn.kl() == 0
    assert drawn.log_prob(jnp.ones((5, 2)), jnp.ones((5, 3))).shape == (5,)


def test_gradients_reach_mean_and_sd(x64):
    """d/d log_sd of log p(y | x, γ̂) is by reparameterisation: gradient in γ times exp(log_sd) ε."""
    observe, key = weights(), jax.random.key(5)
    x, y = jax.random.normal(key, (5, 2)), jnp.ones((5, 3))
    gradient = jax.grad(lambda m: jnp.sum(m.draw(key=key).log_prob(x, y)))(observe)
    noise = flat(observe.draw(key=key)) - flat(observe.observation)
    np.testing.assert_allclose(
        ravel_pytree(gradient.log_sd)[0], flat(gradient.observation) * noise, rtol=1e-9, atol=1e-12
    )


def test_it_serves_as_an_observation(x64):
    observe, x = weights(sd=1e-9), jax.random.normal(jax.random.key(6), (5, 2))
    W, b = jnp.ones((3, 2)), jnp.arange(3.0)
    moved = nets.with_linear_map(observe, W, b)
    np.testing.assert_allclose(moved.mean(x), x @ W.T + b[None], atol=0.1)
    np.testing.assert_allclose(moved.draw(key=jax.random.key(7)).mean(x), moved.mean(x), atol=1e-6)
    assert moved.simulate(x, key=jax.random.key(8)).shape == (5, 3)
    np.testing.assert_array_equal(
        observe.log_prob(x, jnp.ones((5, 3))), observe.observation.log_prob(x, jnp.ones((5, 3)))
    )


def test_every_weight_is_random():
    observe = weights()
    assert jax.tree.structure(observe.log_sd) == jax.tree.structure(float_arrays(observe.observation))
    assert (flat(observe.draw(key=jax.random.key(9))) != flat(observe.observation)).all()
