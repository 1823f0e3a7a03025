"""Transitions that lean on x and on inputs: against the conjugate twin, differences, enumeration and quadrature."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.special import digamma, logsumexp
from scipy.stats import norm

import svae
from svae import expfam
from svae.expfam import Gaussian
from svae.messages import fixed_point
from svae.pgm import Choice, Dynamics, Markov, Normal, graph
from tests.pgm.test_natural_gradient import fisher, gradients, relative, richardson

T, P = 4, 3


def converged(f, words, args):
    return fixed_point(f, words, args, tolerance=1e-13, max_iterations=3000)


def random_like(tree, size: float = 1.0):
    draw = lambda a: jnp.asarray(size * np.random.default_rng(a.size).normal(size=a.shape))  # noqa: E731
    return jax.tree.map(draw, tree)


def complete(pgm, frames: int = 15):
    rng = np.random.default_rng(3)
    latents = [np.cumsum(0.6 * rng.normal(size=(frames, pgm.dimensions)), 0) for _ in range(2)]
    soft = lambda K: rng.dirichlet(np.full(K, 0.5), size=frames)  # noqa: E731
    states = [{name: soft(K) for name, K in pgm.discrete.items()} for _ in latents]
    return pgm.initialize(latents, states, [rng.normal(size=(frames, pgm.inputs))] * 2 if pgm.inputs else None)


def make_model(pgm):
    model = svae.make((P,), pgm=pgm, key=jax.random.key(0), hidden=(4,), network="residual", precision="full")
    return dataclasses.replace(model, pgm=dataclasses.replace(pgm, solve=converged), q=complete(pgm))


def data():
    y = np.random.default_rng(4).normal(size=(2, T, P))
    y[0, 1, 2], y[1, 1] = np.nan, np.nan
    return jnp.asarray(y), jnp.ones((2, T), bool).at[1, 3].set(False)


def test_without_a_lean_it_is_the_conjugate_twin(x64, compiled):
    """R = 0: bound and all gradients are those of the switching system whose rows are not weighed."""
    twins = [make_model(graph(z=Markov(2, after=after), x=Dynamics(2, given="z"))) for after in ("x", ())]
    run = compiled(lambda *a: svae.value_and_grad(*a, num_data=7, key=jax.random.key(1)))
    (bound, gradient), (expected, like) = (run(model, *data()) for model in twins)
    for a, b in zip(bound, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)
    parts = lambda g: jax.tree.leaves((g.q, g.recognize, g.observe))  # noqa: E731
    for a, b in zip(parts(gradient), parts(like), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)
    assert jax.tree.leaves(like.ordinary) == [] and np.abs(gradient.ordinary.z.R).max() > 0.01


def test_natural_and_ordinary_gradients_are_those_of_the_value(x64, compiled):
    """At a fixed key, with R drawn at random: Fisher⁺ times Richardson differences, and plain ones in R."""
    model = make_model(graph(z=Markov(2, after="x"), x=Dynamics(1, given="z")))
    model = dataclasses.replace(model, pgm=dataclasses.replace(model.pgm, ordinary=random_like(model.pgm.ordinary)))
    flat, unravel = ravel_pytree(model.pgm.ordinary)
    eta = ravel_pytree(expfam.natural(model.q))[0]

    def value(eta, flat):
        q = expfam.from_natural(model.q, ravel_pytree(expfam.natural(model.q))[1](eta))
        moved = dataclasses.replace(model, q=q, pgm=dataclasses.replace(model.pgm, ordinary=unravel(flat)))
        return svae.elbo(moved, *data(), num_data=7, key=jax.random.key(1)).bound

    value = compiled(value)
    by_q = np.array([richardson(lambda s, e=e: value(eta + s * e, flat), 3e-3) for e in np.eye(len(eta))])
    by_R = np.array([richardson(lambda s, e=e: value(eta, flat + s * e), 3e-3) for e in np.eye(len(flat))])
    (found, gradient), by_autodiff = compiled(gradients)(model, eta, *data())
    F = np.asarray(compiled(fisher)(model, eta))
    natural = ravel_pytree(expfam.uncentre(model.q, gradient.q))[0]
    assert found.residual <= 1e-12
    assert relative(F @ natural, by_autodiff) < 1e-8
    assert relative(natural, np.linalg.pinv(F, rcond=1e-12, hermitian=True) @ by_q) < 1e-6
    assert relative(ravel_pytree(gradient.ordinary)[0], by_R) < 1e-6


def test_estimators_of_conjugate_graphs_refuse(x64):
    model = make_model(graph(z=Markov(2, after="x"), x=Normal(1, given="z")))
    for estimator in (svae.bound.value_and_grad_2016, svae.bound.value_and_grad_printed):
        with pytest.raises(ValueError, match="graphs whose conditionals are all conjugate"):
            estimator(model, *data(), num_data=7, key=jax.random.key(1))


# --- brute force: three frames, two states, one dimension ---------------------------------------------------------

STEPS = 3
MEANS, ROOTS = np.array([-0.7, 0.9]), np.array([0.8, 0.5])


@functools.cache
def tiny():
    """A graph with R = (0, 2) and inputs, q(theta), potentials and inputs."""
    pgm = graph(z=Markov(2, after="x", inputs=1), x=Normal(1, given="z"))
    R, S = jnp.array([[0.0], [2.0]]), jnp.array([[0.5], [-0.5]])
    ordinary = pgm.ordinary._replace(z=pgm.ordinary.z._replace(R=R, S=S))
    pgm = dataclasses.replace(pgm, ordinary=ordinary, solve=converged)
    rng = np.random.default_rng(0)
    J, h = 0.5 + rng.random((STEPS, 1, 1)), rng.normal(size=(STEPS, 1))
    return pgm, complete(pgm), Gaussian(jnp.asarray(J), jnp.asarray(h)), jnp.asarray(rng.normal(size=(STEPS, 1)))


def enumerated(factor):
    """log q of every path, and the paths."""
    paths = np.array(list(itertools.product(range(2), repeat=STEPS)))
    rows, t = np.asarray(factor.chain.log_trans), np.arange(STEPS)
    scores = np.asarray(factor.chain.log_init)[paths[:, 0]] + np.asarray(factor.node)[t, paths].sum(1)
    scores = scores + rows[t[:-1], paths[:, :-1], paths[:, 1:]].sum(1)
    return scores - logsumexp(scores), paths


def test_the_bound_is_that_of_the_true_conditional(x64, compiled):
    """kl less the mean gap of draws = E log q - E log p by enumeration and quadrature, within 4 standard errors."""
    pgm, q, psi, u = tiny()
    found = compiled(lambda m, psi: pgm.infer(m, psi, jnp.ones(STEPS, bool), inputs=u))(expfam.moments(q), psi)
    keys = jax.random.split(jax.random.key(0), 4000)
    gaps = np.asarray(compiled(jax.vmap(lambda key: found.gap(found.sample(key=key))))(keys)).sum(1)
    assert gaps.min() > -1e-12 and gaps.std() > 0.01

    log_q, paths = enumerated(found.discrete["z"])
    p = np.exp(log_q)
    mean, sd = np.asarray(found.mean())[:, 0], np.asarray(found.sd())[:, 0]
    init, counts = np.asarray(q.z.init.counts), np.asarray(q.z.transitions.counts)
    log_init = digamma(init) - digamma(init.sum())
    log_rows = digamma(counts) - digamma(counts.sum(1, keepdims=True))
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    tilt, expected = pgm.ordinary.z, 0.0
    for t in range(STEPS - 1):
        x = mean[t] + sd[t] * nodes
        a = x[:, None] * np.asarray(tilt.R)[:, 0] + np.asarray(tilt.S)[:, 0] * float(u[t + 1, 0])
        size = logsumexp(np.log(counts / counts.sum(1, keepdims=True))[None] + a[:, None], 2)
        score = log_rows[None] + a[:, None] - size[..., None]
        over_x = np.einsum("n,nij->ij", weights / weights.sum(), score)
        expected += p @ over_x[paths[:, t], paths[:, t + 1]]
    w = np.stack([[p[paths[:, t] == k].sum() for k in range(2)] for t in range(STEPS)])
    own = jax.tree.map(np.asarray, q.x.normal)
    away = (mean[:, None] - own.m[:, 0]) ** 2 + sd[:, None] ** 2
    log_det = np.log(own.S[:, 0, 0] / 2) - digamma(own.nu / 2)
    log_x = -(np.log(2 * np.pi) + log_det + own.nu / own.S[:, 0, 0] * away + 1 / own.n) / 2
    kl = p @ log_q - norm.entropy(scale=sd).sum() - p @ log_init[paths[:, 0]] - expected - (w * log_x).sum()
    error = gaps.std() / np.sqrt(len(gaps))
    assert abs(float(found.kl.sum()) - gaps.mean() - kl) < 4 * error


def test_the_bound_is_below_the_exact_evidence(x64, compiled):
    """With theta known: the integral over x of three frames on a grid, all paths of z summed."""
    pgm, q, psi, u = tiny()
    sure = expfam.from_natural(q, jax.tree.map(lambda eta: 1e9 * eta, expfam.natural(q)))
    found = compiled(lambda m, psi: pgm.infer(m, psi, jnp.ones(STEPS, bool), inputs=u))(expfam.moments(sure), psi)
    keys = jax.random.split(jax.random.key(0), 4000)
    gaps = np.asarray(compiled(jax.vmap(lambda key: found.gap(found.sample(key=key))))(keys)).sum(1)
    means = expfam.map_families(lambda family: family.mean(), sure)
    theta = means._replace(z=jax.tree.map(jnp.log, means.z))
    grid = np.linspace(-6, 6, 41)
    x = jnp.asarray(np.stack(np.meshgrid(*[grid] * STEPS, indexing="ij"), -1).reshape(-1, STEPS, 1))
    densities = jax.jit(jax.vmap(lambda x: jnp.sum(pgm.log_prob(theta, x, jnp.ones(STEPS, bool), u))))(x)
    x = np.asarray(x)[..., 0]
    volume = (x * np.asarray(psi.h)[:, 0] - x**2 * np.asarray(psi.J)[:, 0, 0] / 2).sum(1)
    exact = logsumexp(np.asarray(densities) + volume) + STEPS * np.log(grid[1] - grid[0])
    surrogate = float(found.log_normalizer.sum())
    assert surrogate < surrogate + gaps.mean() < exact


# --- density, simulation, start -----------------------------------------------------------------------------------


def test_the_density_sums_over_paths_one_conditional_at_a_time(x64):
    """A chain that leans on x and on an input, with tables over two blocks, one of which looks back at it."""
    pgm = graph(
        m=Choice(2),
        z=Markov(3, given="m", after=("m", "x"), inputs=1),
        b=Markov(2, after="z"),
        x=Normal(1, given=("z", "b")),
    )
    pgm = dataclasses.replace(pgm, ordinary=random_like(pgm.ordinary))
    theta = expfam.sample(complete(pgm), key=jax.random.key(1))
    u = jnp.asarray(np.random.default_rng(0).normal(size=(3, 1)))
    path = pgm.simulate(theta, 3, key=jax.random.key(2), inputs=u)
    found = jax.jit(lambda x: pgm.log_prob(theta, x, jnp.ones(3, bool), u))(path.x)
    table, tilt, x = jax.tree.map(np.asarray, (theta, pgm.ordinary.z, path.x))
    scores = []
    for m, z, b in itertools.product(*(itertools.product(range(K), repeat=3) for K in (2, 3, 2))):
        total = table.z.init[m[0], z[0]] + table.b.init[b[0]] + sum(table.m.weights[k] for k in m)
        for t in range(1, 3):
            lean = tilt.R @ x[t - 1] + tilt.S @ np.asarray(u[t])
            row = table.z.transitions[m[t] * 2 + m[t - 1], z[t - 1]] + lean
            total += row[z[t]] - logsumexp(row) + table.b.transitions[z[t - 1], b[t - 1], b[t]]
        rows = [2 * k + j for k, j in zip(z, b, strict=True)]
        normal = table.x.normal
        total += norm.logpdf(x[:, 0], normal.W[rows, 0, 0], np.abs(normal.sqrt[rows, 0, 0])).sum()
        scores.append(total)
    np.testing.assert_allclose(found.sum(), logsumexp(scores), rtol=1e-9)


def test_a_lean_is_found_again_in_a_simulation(x64):
    """Regression on simulated states finds R and S, up to what is common to all states."""
    pgm = graph(z=Markov(2, after="x", inputs=1), x=Normal(1, given="z"))
    true = pgm.ordinary.z._replace(R=jnp.array([[1.0], [-1.0]]), S=jnp.array([[-0.5], [0.5]]))
    pgm = dataclasses.replace(pgm, ordinary=pgm.ordinary._replace(z=true))
    u = np.random.default_rng(0).normal(size=(6000, 1))
    theta = expfam.sample(complete(pgm), key=jax.random.key(1))
    rows = jnp.log(jnp.array([[0.6, 0.4], [0.3, 0.7]]))
    theta = theta._replace(z=theta.z._replace(transitions=rows))
    path = jax.jit(lambda key: pgm.simulate(theta, len(u), key=key, inputs=jnp.asarray(u)))(jax.random.key(2))
    x, z = [np.asarray(path.x)], [np.eye(2)[np.asarray(path.z)]]
    q = pgm.initialize(x, z, [u])
    q = q._replace(z=q.z._replace(transitions=type(q.z.transitions)(1e4 * jnp.exp(rows))))
    found = pgm.start(q, x, z, [u]).ordinary.z
    np.testing.assert_allclose(found.R[0] - found.R[1], [2.0], atol=0.3)
    np.testing.assert_allclose(found.S[0] - found.S[1], [-1.0], atol=0.15)
