"""Observation networks against scipy's densities, with missing entries that count for exactly nothing."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from svae import nets
from svae.nets.likelihoods import log_softplus

LIKELIHOODS = [(name, v) for name in ("gaussian", "student_t") for v in nets.VARIANCES]
LIKELIHOODS += [("bernoulli", "fixed"), ("poisson", "fixed")]
COMBINATIONS = [(network, (9, 8), *kind) for network in nets.OBSERVATION_NETWORKS for kind in LIKELIHOODS]
COMBINATIONS += [
    (network, event, "gaussian", "network")
    for event in [(), (6,), (8, 9, 2)]
    for network in nets.OBSERVATION_NETWORKS
    if network != "conv" or len(event) >= 2
]
ONE_EACH = [("gaussian", "learned"), ("student_t", "network"), ("bernoulli", "fixed"), ("poisson", "fixed")]
T, D = 4, 3


def quick_key(seed):
    """Weights from the generator that compiles quickly."""
    return jax.random.key(seed, impl="rbg")


def observation(network, event, likelihood, variance, *, sd=0.7):
    options = {"network": network, "hidden": (5,), "likelihood": likelihood, "variance": variance, "sd": sd}
    return nets.make_observation(event, D, **options, key=quick_key(1))


def latents():
    return jax.random.normal(jax.random.key(2), (T, D))


@eqx.filter_jit
def location_and_sd(observe, x):
    """The location (T, *event) and, where the likelihood has one, the sd (T, *event)."""

    def frame(x_t):
        features = observe.trunk(x_t)
        log_sd = observe.likelihood.scale(features) if hasattr(observe.likelihood, "scale") else 0.0
        return observe._location(x_t, features), jnp.exp(jnp.broadcast_to(log_sd, observe.event_shape))

    return jax.vmap(frame)(x)


def scipy_distribution(observe, name, x):
    """The same p(y | x) from scipy, entry by entry."""
    a, sd = map(np.asarray, location_and_sd(observe, x))
    if name == "bernoulli":
        return stats.bernoulli(1 / (1 + np.exp(-a)))
    if name == "poisson":
        return stats.poisson(np.logaddexp(0, a))
    if name == "gaussian":
        return stats.norm(a, sd)
    return stats.t(float(observe.likelihood.dof), a, sd)


def draw(distribution, shape):
    return np.asarray(distribution.rvs(shape, random_state=np.random.default_rng(3)), float)


def log_density(distribution, y):
    return distribution.logpmf(y) if hasattr(distribution.dist, "logpmf") else distribution.logpdf(y)


@pytest.mark.parametrize(("network", "event", "likelihood", "variance"), COMBINATIONS)
def test_every_network_makes_every_event(x64, network, event, likelihood, variance):
    def use():
        observe, x = observation(network, event, likelihood, variance), latents()
        y = observe.simulate(x, key=jax.random.key(3))
        return y, observe.mean(x), observe.log_prob(x, y)

    y, mean, log_prob = jax.eval_shape(use)
    assert y.shape == mean.shape == (T, *event) and log_prob.shape == (T,)
    assert y.dtype == mean.dtype == log_prob.dtype == jnp.float64


@eqx.filter_jit
def value_and_grad(observe, x, y):
    """log_prob (T,) and the gradient of its sum in the network and in x."""

    def total(both):
        value = both[0].log_prob(both[1], y)
        return jnp.sum(value), value

    gradient, value = eqx.filter_grad(total, has_aux=True)((observe, x))
    return value, gradient


NUMERIC = [("residual", (6,), *kind) for kind in ONE_EACH]
NUMERIC += [("affine", (), "gaussian", "network"), ("mlp", (2, 3), "gaussian", "fixed")]
NUMERIC += [("conv", (8, 9, 2), "gaussian", "network")]


@pytest.mark.parametrize(("network", "event", "likelihood", "variance"), NUMERIC)
def test_log_prob_and_mean_are_those_of_scipy(x64, network, event, likelihood, variance):
    """log_prob = Σ over observed entries of scipy's log density; missing entries are exactly 0, gradients finite."""
    observe, x = observation(network, event, likelihood, variance), latents()
    distribution = scipy_distribution(observe, likelihood, x)
    y = draw(distribution, (T, *event))
    expected = log_density(distribution, y).reshape(T, -1)
    np.testing.assert_allclose(value_and_grad(observe, x, y)[0], expected.sum(1), rtol=1e-10)
    np.testing.assert_allclose(eqx.filter_jit(observe.mean)(x), distribution.mean(), rtol=1e-12)

    missing = np.random.default_rng(0).uniform(size=y.shape) < 0.4
    missing[1] = True
    y[missing] = np.nan
    seen = np.where(missing.reshape(T, -1), 0, expected).sum(1)
    value, gradient = value_and_grad(observe, x, y)
    assert value[1] == 0
    np.testing.assert_allclose(value, seen, rtol=1e-10, atol=1e-14)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    assert not np.any(gradient[1][1])


@pytest.mark.parametrize(("likelihood", "variance"), ONE_EACH)
def test_a_missing_entry_has_no_gradient(x64, likelihood, variance):
    """With entry 2 missing in every frame, the row of W that makes it is left alone, and the others are not."""
    observe, x = observation("affine", (6,), likelihood, variance), latents()
    y = draw(scipy_distribution(observe, likelihood, x), (T, 6))
    y[:, 2] = np.nan
    W = np.asarray(value_and_grad(observe, x, y)[1][0].linear.W)
    np.testing.assert_array_equal(np.any(W != 0, axis=1), np.arange(6) != 2)


@pytest.mark.parametrize(("likelihood", "variance"), ONE_EACH)
def test_simulation_has_the_mean_of_scipy(x64, likelihood, variance):
    observe = observation("residual", (6,), likelihood, variance)
    x = jnp.broadcast_to(latents()[:1], (20_000, D))
    distribution = scipy_distribution(observe, likelihood, x[:1])
    y = np.asarray(eqx.filter_jit(observe.simulate)(x, key=jax.random.key(4)))
    error = (y.mean(0) - distribution.mean()[0]) / (distribution.std()[0] / np.sqrt(len(x)))
    assert np.abs(error).max() < 4.5
    np.testing.assert_allclose(y.std(0), distribution.std()[0], rtol=0.25 if likelihood == "student_t" else 0.03)


@pytest.mark.parametrize("network", ["residual", "conv"])
def test_the_network_starts_near_a_partial_isometry(x64, network):
    observe = observation(network, (8, 9), "gaussian", "fixed")
    J = jax.jit(jax.jacfwd(lambda x: observe.mean(x[None]).reshape(-1)))(latents()[0])
    np.testing.assert_allclose(np.linalg.svd(J, compute_uv=False), np.ones(D), atol=0.1)
    np.testing.assert_allclose(observe.linear.W.T @ observe.linear.W, np.eye(D), atol=1e-12)


@pytest.mark.parametrize("network", ["affine", "residual", "conv"])
def test_the_linear_map_can_be_given(x64, network):
    W, b = np.random.default_rng(5).normal(size=(72, D)), np.arange(72.0)
    observe = nets.with_linear_map(observation(network, (9, 8), "gaussian", "fixed"), jnp.asarray(W), jnp.asarray(b))
    expected = (latents() @ W.T + b[None]).reshape(T, 9, 8)
    np.testing.assert_allclose(
        eqx.filter_jit(observe.mean)(latents()), expected, atol=1e-12 if network == "affine" else 0.1
    )


@pytest.mark.parametrize("P", [2, 3, 6])
def test_recognition_undoes_observation(x64, P):
    """One W, b for both: observing and recognising is the projection onto the row space of W."""
    W, b = nets.partial_isometry(P, D, key=quick_key(8)), jnp.arange(float(P))
    options = {"network": "affine", "hidden": (), "precision": "full", "missing": False}
    recognize = nets.with_linear_map(nets.make_recognition((P,), D, **options, key=quick_key(9)), W, b)
    observe = nets.with_linear_map(observation("affine", (P,), "gaussian", "fixed"), W, b)
    potential = recognize(observe.mean(latents()), jnp.ones(T, bool))
    guess = np.linalg.solve(potential.J, np.asarray(potential.h)[..., None])[..., 0]
    np.testing.assert_allclose(guess, latents() @ W.T @ W, atol=1e-10)


def test_extreme_locations_stay_finite():
    """float32 likelihoods of improbable data are very low, not infinite, and so are their gradients."""
    for name, y in (("bernoulli", 1.0), ("poisson", 5.0), ("student_t", 1e12), ("gaussian", 1e12)):
        observe = observation("affine", (6,), name, "fixed")
        observe = eqx.tree_at(lambda m: m.linear.b, observe, jnp.full(6, -1e4))
        value, (_, gradient) = value_and_grad(observe, latents(), jnp.full((T, 6), y))
        assert np.isfinite(value).all() and np.isfinite(gradient).all()


def test_log_softplus(x64):
    a = jnp.array([-800.0, -41.0, -39.0, -1.0, 0.0, 3.0, 800.0])
    np.testing.assert_allclose(log_softplus(a)[2:], np.log(np.logaddexp(0, a[2:])), rtol=1e-12)
    np.testing.assert_array_equal(log_softplus(a)[:2], a[:2])


def test_a_point_estimate_draws_itself_at_no_cost():
    observe = observation("mlp", (6,), "gaussian", "learned")
    assert observe.draw(key=jax.random.key(0)) is observe and observe.kl() == 0


def test_float32_in_float32_out():
    observe = observation("residual", (6,), "student_t", "network")
    assert observe.log_prob(latents(), jnp.zeros((T, 6))).dtype == observe.mean(latents()).dtype == jnp.float32


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"network": "temporal"}, "affine, conv, mlp, residual"),
        ({"likelihood": "cauchy"}, "bernoulli, gaussian, poisson, student_t"),
        ({"variance": "free"}, "fixed, learned, network"),
        ({"network": "conv", "hidden": ()}, "at least one number of channels"),
    ],
)
def test_mistakes_get_one_sentence(changes, sentence):
    options = {"network": "mlp", "hidden": (4,), "likelihood": "gaussian", "variance": "learned"}
    with pytest.raises(ValueError, match=sentence):
        nets.make_observation((9, 8), D, **(options | changes), key=jax.random.key(0))
