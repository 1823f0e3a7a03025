"""Simulation, the complete-data posterior and inference agree with each other, for every latent model."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from scipy.special import logsumexp

from svae import expfam
from svae.expfam import Gaussian, LinearGaussian
from tests.graphs import SIX, made

D, K, T = 2, 2, 400
STATES = ("gmm", "hmm", "slds")
every = pytest.mark.parametrize("name", sorted(SIX))


def turn(angle):
    return 0.95 * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def theta(name: str):
    """Parameters with two states that are easy to tell apart."""
    points = np.array([[2.0, 1.0], [-2.0, 0.0]])[..., None]
    roots = np.array([[[0.5, 0], [0.2, 0.4]], [[0.3, 0], [-0.2, 0.6]]])
    steps = np.stack([np.c_[turn(0.9), [0.5, 0.0]], np.c_[turn(-0.4), [-0.5, 0.3]]])
    rows = np.log([[0.9, 0.1], [0.2, 0.8]])
    fields = {
        "weights": np.log([0.3, 0.7]),
        "init": np.log([0.5, 0.5]),
        "transitions": rows,
        "normal": LinearGaussian(points, roots),
        "first": LinearGaussian(points, roots),
        "dynamics": LinearGaussian(steps, 0.2 * roots),
    }
    prior = make(name).prior
    chosen = lambda field: jax.tree.map(lambda a: jnp.asarray(a if name in STATES else a[0]), fields[field])  # noqa: E731
    blocks = [type(block)(*map(chosen, getattr(block, "_fields", ()))) for block in prior]
    return type(prior)(*blocks)


def make(name: str):
    return made(name, D, K, concentration=1.0, stickiness=1.0)


@every
def test_a_simulation_is_recovered(name, x64):
    """q(theta) given complete data is proper, shaped like the prior and near theta; infer finds x and z again."""
    pgm, true = make(name), theta(name)
    path = jax.jit(lambda key: pgm.simulate(true, T, key=key))(jax.random.key(3))
    x, z = pgm.latent(path), pgm.labels(path)
    q = pgm.initialize([np.asarray(x)], [np.eye(K)[np.asarray(z)]])
    assert jax.tree.structure(q) == jax.tree.structure(pgm.prior)
    assert expfam.in_domain(pgm.prior)
    assert expfam.in_domain(q)
    for field in set(getattr(q.x, "_fields", ())) & {"normal", "dynamics"}:  # `first` has seen one frame only
        found, expected = getattr(q.x, field).mean(), getattr(true.x, field)
        np.testing.assert_allclose(found.W, expected.W, atol=0.2)
        np.testing.assert_allclose(found.sqrt, expected.sqrt, atol=0.12)
    if name in ("hmm", "slds"):
        np.testing.assert_allclose(q.z.transitions.mean(), np.exp(true.z.transitions), atol=0.1)
    sharp = Gaussian(jnp.broadcast_to(400 * jnp.eye(D), (T, D, D)), 400 * x)  # x seen with sd 0.05
    posterior = jax.jit(lambda m, psi: pgm.infer(m, psi, jnp.ones(T, bool)))(expfam.moments(q), sharp)
    assert np.sqrt(np.mean((posterior.mean() - x) ** 2)) < 0.05
    assert np.mean(np.asarray(posterior.viterbi()) == np.asarray(z)) > 0.93
    assert np.mean(np.argmax(posterior.states, -1) == np.asarray(z)) > 0.93


@every
def test_simulation_goes_on_from_a_start(name, x64):
    """Without noise and with states that alternate, the steps after a start are known."""
    pgm = make(name)
    rows = jnp.array([[-1e9, 0.0], [0.0, -1e9]])
    quiet = lambda t: LinearGaussian(t.W, 0 * t.sqrt) if isinstance(t, LinearGaussian) else t  # noqa: E731
    known = jax.tree.map(quiet, theta(name), is_leaf=lambda t: isinstance(t, LinearGaussian))
    known = known._replace(z=known.z._replace(transitions=rows)) if name in ("hmm", "slds") else known
    ends = {"x": jnp.array([[9.0, 9.0], [1.0, -1.0]]), "z": jnp.array([1, 0])}
    start = type(known)(*(ends[block] for block in known._fields))
    path = jax.jit(lambda key: pgm.simulate(known, 3, key=key, start=start))(jax.random.key(0))
    x, z = pgm.latent(path), pgm.labels(path)
    assert x.shape == (3, D)
    assert z.shape == (3,)
    if name in ("hmm", "slds"):
        np.testing.assert_array_equal(z, [1, 0, 1])
    if name in ("lds", "slds"):
        previous = np.concatenate([start.x[1:], x[:-1]])
        W = np.broadcast_to(known.x.dynamics.W, (K, D, D + 1))[np.asarray(z)]
        np.testing.assert_allclose(x, np.einsum("tdu,tu->td", W, np.c_[previous, np.ones(3)]), rtol=1e-12)


@every
def test_log_prob_sums_over_states(name, x64):
    """log p(x | theta) = log sum_z p(z) p(x | z), over every path z of four frames; the fifth is padding."""
    pgm, true = make(name), theta(name)
    x = np.asarray(pgm.simulate(true, 5, key=jax.random.key(1)).x)
    found = jax.jit(lambda x: pgm.log_prob(true, x, jnp.arange(5) < 4))(jnp.asarray(x))
    expected = logsumexp([path_log_prob(name, true, x[:4], z) for z in paths(name)])
    np.testing.assert_allclose(found.sum(), expected, rtol=1e-10)
    assert found[4] == 0


def paths(name: str):
    return itertools.product(range(K if name in STATES else 1), repeat=4)


def path_log_prob(name: str, true, x, z) -> float:
    """log p(x, z | theta) of one path, by scipy."""
    field = lambda name: jax.tree.map(lambda a: np.asarray(a).reshape(-1, *a.shape[-2:]), getattr(true.x, name))  # noqa: E731
    normal = lambda x, t, k, u: scipy.stats.multivariate_normal(t.W[k] @ u, t.sqrt[k] @ t.sqrt[k].T).logpdf(x)  # noqa: E731
    if name == "vae":
        return scipy.stats.norm.logpdf(x).sum()
    total = 0.0
    if name == "gmm":
        total = sum(float(true.z.weights[k]) for k in z)
    if name in ("hmm", "slds"):
        total = float(true.z.init[z[0]]) + sum(float(true.z.transitions[i, j]) for i, j in itertools.pairwise(z))
    if name in ("lds", "slds"):
        first, dynamics = field("first"), field("dynamics")
        pairs = zip(x[1:], x[:-1], z[1:], strict=True)
        later = sum(normal(new, dynamics, k, np.r_[old, 1.0]) for new, old, k in pairs)
        return total + normal(x[0], first, z[0], np.ones(1)) + later
    return total + sum(normal(a, field("normal"), k, np.ones(1)) for a, k in zip(x, z, strict=True))


@pytest.mark.parametrize("name", ["hmm", "slds"])
def test_draws_forget_the_price_of_a_switch(name):
    """With any stickiness, what simulations are drawn from is the posterior under a prior that is not sticky."""
    rng = np.random.default_rng(0)
    labels = [np.repeat(rng.integers(0, 3, 40), rng.integers(5, 30, 40)) for _ in range(2)]
    states, latents = [np.eye(3)[z] for z in labels], [rng.normal(size=(len(z), 2)) for z in labels]
    plain, sticky = (made(name, 2, 3, concentration=1.0, stickiness=counts) for counts in (0.0, 1e20))
    seen = sticky.as_seen(jax.tree.map(jnp.float32, sticky.initialize(latents, states))).z.transitions.mean()
    np.testing.assert_allclose(seen, plain.initialize(latents, states).z.transitions.mean(), atol=0.005)
