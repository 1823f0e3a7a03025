"""One suite for every latent model in the registry; the oracle: a dense Gaussian, and an enumeration of all z paths."""

import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from svae import expfam
from svae.expfam import Gaussian, MNIWNatural, NIWNatural
from tests.graphs import SIX

D, K, T, REAL = 2, 2, 6, 4
every = pytest.mark.parametrize("name", sorted(SIX))
mean_field = pytest.mark.parametrize("name", ["gmm", "hmm", "slds"])
MASK = np.arange(T) < REAL


def potentials() -> Gaussian:
    """Random potentials of four frames, the third of them missing, and two frames of padding."""
    rng = np.random.default_rng(5)
    L = rng.normal(size=(T, D, D))
    seen = (MASK & (np.arange(T) != 2)).astype(float)
    J, h = L @ np.swapaxes(L, 1, 2) * seen[:, None, None], 2 * rng.normal(size=(T, D)) * seen[:, None]
    return Gaussian(jnp.asarray(J), jnp.asarray(h))


def surrogate(pgm, moments, psi, mask):
    """The gradient of the surrogate bound in the moments and the potentials, and the posterior."""

    def total(moments, psi):
        posterior = pgm.infer(moments, psi, mask)
        return jnp.sum(posterior.log_normalizer), posterior

    return jax.grad(total, (0, 1), has_aux=True)(moments, psi)


@functools.cache
def solved(name: str, example, compiled):
    """q(theta), the derivatives of its surrogate bound and its posterior on the padded sequence, in float64."""
    model = example(name).model
    gradients, posterior = compiled(surrogate)(model.pgm, expfam.moments(model.q), potentials(), jnp.asarray(MASK))
    return model.q, gradients, jax.tree.map(np.asarray, posterior)


# --- the oracle ---------------------------------------------------------------------------------------------------


class Dense(NamedTuple):
    """q(z) q(x) of the real frames: every path with its probability, and the mean and covariance of all of x."""

    paths: np.ndarray  # (K^n, n)
    log_prob: np.ndarray  # (K^n,)
    mean: np.ndarray  # (n, D)
    covariance: np.ndarray  # (n, D, n, D)


def log_parameters(z):
    """Of a hidden chain; of independent states as one whose rows are all alike; of no states as one state."""
    if z is None:
        return np.zeros(1), np.zeros((1, 1)), np.zeros((T, 1))
    if hasattr(z, "chain"):
        return z.chain.log_init, z.chain.log_trans, z.node
    return z.log_prior[0], np.broadcast_to(z.log_prior, (K, K)), z.node


def path_scores(log_init, log_trans, node, n):
    node = node[:n]
    paths = np.array(list(itertools.product(range(len(log_init)), repeat=len(node))))
    scores = log_init[paths[:, 0]] + node[np.arange(len(node)), paths].sum(1)
    return paths, scores + log_trans[paths[:, :-1], paths[:, 1:]].sum(1)


def dense(posterior, n: int) -> Dense:
    """x_t = mean_t + gain_t (x_{t+1} - mean_{t+1}) + back_sqrt_t noise, from the last real frame back."""
    x = posterior.factors.x
    paths, scores = path_scores(*log_parameters(posterior.discrete.get("z")), n)
    root = np.zeros((n, D, n, D))
    root[n - 1, :, n - 1] = x.sqrt[n - 1]
    for t in reversed(range(n - 1)):
        root[t] = np.tensordot(x.gain[t], root[t + 1], 1)
        root[t, :, t] += x.back_sqrt[t]
    return Dense(paths, scores - logsumexp(scores), x.mean[:n], np.einsum("tirk,sjrk->tisj", root, root))


def niw_statistics(q: Dense, w, times) -> NIWNatural:
    """Sums over `times` of w[t, k] (E xx', E x, 1, 1)."""
    second = np.stack([q.covariance[t, :, t] + np.outer(q.mean[t], q.mean[t]) for t in times])
    count = w[times].sum(0)
    return NIWNatural(np.einsum("tk,tij->kij", w[times], second), w[times].T @ q.mean[times], count, count)


def mniw_statistics(q: Dense, w) -> MNIWNatural:
    n, total = len(q.mean), 0
    for t in range(1, n):
        v = np.r_[q.mean[t - 1], 1.0, q.mean[t]]  # (x_{t-1}, 1, x_t)
        cov = np.zeros((2 * D + 1, 2 * D + 1))
        at = np.r_[0:D, D + 1 : 2 * D + 1]
        cov[np.ix_(at, at)] = q.covariance[t - 1 : t + 1, :, t - 1 : t + 1].reshape(2 * D, 2 * D)
        total = total + w[t][:, None, None] * (cov + np.outer(v, v))
    u, x, count = slice(0, D + 1), slice(D + 1, None), w[1:].sum(0)
    return MNIWNatural(total[:, u, u], total[:, u, x], total[:, x, x], count)


def dense_statistics(name: str, q: Dense, prior):
    """E t(x, z), shaped like the natural parameters of the prior."""
    n, p = len(q.mean), np.exp(q.log_prob)
    one_hot = np.eye(K)[q.paths] if name in ("gmm", "hmm", "slds") else np.ones((len(p), n, 1))
    w = np.einsum("p,ptk->tk", p, one_hot)
    pairs = np.einsum("p,pti,ptj->ij", p, one_hot[:, :-1], one_hot[:, 1:])
    fields = {
        "weights": lambda: expfam.DirichletNatural(w.sum(0)),
        "init": lambda: expfam.DirichletNatural(w[0]),
        "transitions": lambda: expfam.DirichletNatural(pairs),
        "x": lambda: niw_statistics(q, w, list(range(n))),
        "first": lambda: niw_statistics(q, w, [0]),
        "dynamics": lambda: mniw_statistics(q, w),
    }
    fields["normal"] = fields["x"]
    stats = [type(block)(*[fields[field]() for field in getattr(block, "_fields", ())]) for block in prior]
    return type(prior)(*(stats if name in ("gmm", "hmm", "slds") else jax.tree.map(lambda a: a[0], stats)))


def expected_log_q(q: Dense) -> float:
    """E log q(z) + E log q(x)."""
    n = len(q.mean)
    _, logdet = np.linalg.slogdet(q.covariance.reshape(n * D, n * D))
    return np.exp(q.log_prob) @ q.log_prob - logdet / 2 - n * D / 2 * np.log(2 * np.pi * np.e)


def dense_kl(name: str, q: Dense, globals_q) -> float:
    """E log q(z) q(x) - E log p(x, z | theta), with E t(theta) by autodiff of the log partition function."""
    n = len(q.mean)
    if name == "vae":
        prior = -sum(np.trace(q.covariance[t, :, t]) + q.mean[t] @ q.mean[t] for t in range(n)) / 2
    else:
        prior = float(expfam.inner(jax.jit(expfam.expected_stats)(globals_q), dense_statistics(name, q, globals_q)))
    return expected_log_q(q) - prior + n * D / 2 * np.log(2 * np.pi)


# --- inference ----------------------------------------------------------------------------------------------------


@every
def test_local_kl_equals_the_dense_oracle(name, example, compiled):
    q, _, posterior = solved(name, example, compiled)
    np.testing.assert_allclose(posterior.kl.sum(), dense_kl(name, dense(posterior, REAL), q), rtol=1e-9)
    np.testing.assert_array_equal(posterior.kl[REAL:], 0)


@mean_field
def test_local_kl_is_right_before_convergence(name, example, compiled):
    model = example(name, "one_sweep").model
    infer = compiled(lambda pgm, moments, psi, mask: pgm.infer(moments, psi, mask))
    found = infer(model.pgm, expfam.moments(model.q), potentials(), jnp.asarray(MASK))
    assert found.residual > 0.1  # far from converged
    q = dense(jax.tree.map(np.asarray, found), REAL)
    np.testing.assert_allclose(found.kl.sum(), dense_kl(name, q, model.q), rtol=1e-9)


def test_local_kl_is_a_monte_carlo_mean_over_theta(example, compiled):
    """E_q(theta) [E log q(x, z) - E log p(x, z | theta)] from 20,000 draws of theta; the SLDS has every family."""
    name = "slds"
    q, _, posterior = solved(name, example, compiled)
    local = dense(posterior, REAL)
    stats = dense_statistics(name, local, q)

    def log_p(key):
        theta = expfam.sample(q, key=key)
        return expfam.inner(expfam.map_families(lambda f, t: type(f).statistics(t), q, theta), stats)

    draws = np.asarray(jax.jit(jax.vmap(log_p))(jax.random.split(jax.random.key(2), 20_000)))
    draws = expected_log_q(local) - draws + REAL * D / 2 * np.log(2 * np.pi)
    assert abs(draws.mean() - posterior.kl.sum()) < 5 * draws.std() / np.sqrt(len(draws))


@every
def test_derivatives_of_the_surrogate_are_expected_statistics(name, example, compiled):
    """d log Z / d E t(theta) = E t(x), and d log Z / d psi = E t_psi(x): the fixed point is a stationary point."""
    q, (d_moments, d_psi), posterior = solved(name, example, compiled)
    local = dense(posterior, REAL)
    found = jax.jit(lambda q, d: expfam.uncentre(q, expfam.natural_gradient(q, q, d)))(q, d_moments)
    expected = dense_statistics(name, local, q) if name != "vae" else q
    close(found, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(d_psi.h[:REAL], local.mean, atol=1e-9)
    second = [local.covariance[t, :, t] + np.outer(local.mean[t], local.mean[t]) for t in range(REAL)]
    d_J = np.asarray(d_psi.J)[:REAL]  # J is symmetric, so only the symmetric part of its derivative says anything
    np.testing.assert_allclose((d_J + np.swapaxes(d_J, 1, 2)) / 2, -np.stack(second) / 2, atol=1e-9)
    np.testing.assert_array_equal(d_psi.h[REAL:], 0)


@every
def test_padding_changes_nothing(name, example, compiled, with_solver):
    """Not even how long the fixed point iterates."""
    model = example(name).model
    pgm, moments = with_solver(model.pgm, "library"), expfam.moments(model.q)
    infer = compiled(lambda pgm, moments, psi, mask: pgm.infer(moments, psi, mask))
    padded = infer(pgm, moments, potentials(), jnp.asarray(MASK))
    alone = infer(pgm, moments, jax.tree.map(lambda a: a[:REAL], potentials()), jnp.ones(REAL, bool))
    for field in ("kl", "log_normalizer", "states"):
        np.testing.assert_allclose(getattr(padded, field)[:REAL], getattr(alone, field), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(padded.mean()[:REAL], alone.mean(), rtol=1e-12, atol=1e-13)


@every
def test_float32_is_close_to_float64(name, example, compiled, with_solver):
    _, (d_moments, _), posterior = solved(name, example, compiled)
    model, psi = jax.tree.map(single, (example(name).model, potentials()))
    with jax.enable_x64(False):
        model, psi = jax.tree.map(jnp.asarray, (model, psi))
        pgm = with_solver(model.pgm, "float32_fixed_point")
        (d_single, _), found = compiled(surrogate)(pgm, expfam.moments(model.q), psi, jnp.asarray(MASK))
    assert {a.dtype for a in jax.tree.leaves((d_single, found.kl, found.factors.x))} == {np.dtype("float32")}
    np.testing.assert_allclose(found.kl, posterior.kl, atol=1e-4)
    np.testing.assert_allclose(found.mean(), posterior.mean(), atol=1e-4)
    close(d_single, d_moments, rtol=1e-3, atol=1e-3)


@every
def test_all_frames_missing_give_the_prior(name, example, compiled):
    """Without evidence the surrogate bound is minus the local KL; it and its gradients are finite."""
    model = example(name).model
    nothing = jax.tree.map(jnp.zeros_like, potentials())
    gradients, posterior = compiled(surrogate)(model.pgm, expfam.moments(model.q), nothing, jnp.asarray(MASK))
    assert all(np.all(np.isfinite(a)) for a in jax.tree.leaves((gradients, posterior.kl, posterior.factors.x)))
    np.testing.assert_allclose(posterior.kl, -posterior.log_normalizer, atol=1e-12)


def single(leaf):
    return np.asarray(leaf, np.float32) if hasattr(leaf, "dtype") and leaf.dtype == np.float64 else leaf


def close(a, b, **tolerance):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, **tolerance)
