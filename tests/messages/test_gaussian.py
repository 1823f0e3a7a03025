"""The Gaussian chain against the dense matrix, statsmodels, its own gradient, and a float64 smoother in float32."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from svae.messages.gaussian import parallel as gaussian_parallel
from svae.messages.gaussian import sequential as gaussian_sequential
from tests.messages import oracles

FORMS = [gaussian_sequential, gaussian_parallel]
SIZES = [(1, 2), (2, 2), (5, 2)]  # one size for most tests: a time-parallel program is slow to compile


def assert_is_the_dense_matrix(form, chain, atol=1e-10, rtol=1e-10):
    """Smoother and filter of a form, from the joint Gaussian of all steps."""
    close = lambda got, want: np.testing.assert_allclose(got, want, atol=atol, rtol=rtol)  # noqa: E731
    T, D = chain.h.shape
    mean, S, log_z = oracles.dense(chain)
    S, t = blocks(S, T, D), np.arange(T)
    q, f = form.smooth(on_device(chain)), form.filter(on_device(chain))
    close(q.mean, mean)
    close(cov(q.sqrt), S[t, t])
    close(cov(q.sqrt)[1:] @ np.swapaxes(q.gain, -1, -2), S[t[1:], t[:-1]])
    close(cov(q.back_sqrt), [S[i, i] - q.gain[i] @ S[i + 1, i] for i in range(T - 1)] or q.gain)
    close(q.log_z.sum(), log_z)
    second = cov(q.sqrt) + np.asarray(q.mean)[:, :, None] * np.asarray(q.mean)[:, None]
    close(q.kl, np.sum(chain.h * np.asarray(q.mean), -1) - np.sum(chain.J * second, (-1, -2)) / 2 - q.log_z)
    close(f.mean[-1], mean[-1])
    close(cov(f.sqrt[-1]), S[-1, -1])
    close(f.log_z, q.log_z)
    assert not np.any(np.triu(f.sqrt, 1)) and not np.any(np.triu(q.sqrt, 1)) and not np.any(np.triu(q.back_sqrt, 1))


def on_device(chain, dtype=np.float64):
    return jax.tree.map(lambda x: jnp.asarray(x, dtype), chain)


def blocks(S, T, D):
    return S.reshape(T, D, T, D).transpose(0, 2, 1, 3)


def cov(root):
    root = np.asarray(root, np.float64)
    return root @ np.swapaxes(root, -1, -2)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("T, D", SIZES)
def test_smoother_is_the_dense_matrix(x64, form, T, D):
    chain = oracles.gaussian_chain(np.random.default_rng(T), T, D, missing=0.3)
    mean, S, log_z = oracles.dense(chain)
    S = blocks(S, T, D)
    q = jax.jit(form.smooth)(on_device(chain))
    t = np.arange(T)
    close = {"atol": 1e-10, "rtol": 1e-10}
    np.testing.assert_allclose(q.mean, mean, **close)
    np.testing.assert_allclose(cov(q.sqrt), S[t, t], **close)
    np.testing.assert_allclose(cov(q.sqrt)[1:] @ np.swapaxes(q.gain, -1, -2), S[t[1:], t[:-1]], **close)
    np.testing.assert_allclose(
        cov(q.back_sqrt), [S[i, i] - q.gain[i] @ S[i + 1, i] for i in range(T - 1)] or q.gain, **close
    )
    np.testing.assert_allclose(q.log_z.sum(), log_z, **close)
    np.testing.assert_allclose(jax.jit(form.log_normalizer)(on_device(chain)), log_z, **close)


@pytest.mark.parametrize("form", FORMS)
def test_filter_is_the_smoother_of_the_past(x64, form):
    chain = oracles.gaussian_chain(np.random.default_rng(0), 5, 2)
    q = jax.jit(form.filter)(on_device(chain))
    for t in (0, 2, 4):
        past = chain._replace(
            A=chain.A[:t], b=chain.b[:t], Q_sqrt=chain.Q_sqrt[:t], J=chain.J[: t + 1], h=chain.h[: t + 1]
        )
        mean, S, log_z = oracles.dense(past)
        np.testing.assert_allclose(q.mean[t], mean[t], atol=1e-10)
        np.testing.assert_allclose(cov(q.sqrt[t]), S[-2:, -2:], atol=1e-10)
        np.testing.assert_allclose(q.log_z[: t + 1].sum(), log_z, atol=1e-10)


def test_kl_is_potentials_less_log_z_and_a_divergence(x64):
    chain = oracles.gaussian_chain(np.random.default_rng(3), 5, 2)
    q = jax.jit(gaussian_sequential.smooth)(on_device(chain))
    second = cov(q.sqrt) + np.asarray(q.mean)[:, :, None] * np.asarray(q.mean)[:, None]
    potentials = np.sum(chain.h * np.asarray(q.mean), -1) - np.sum(chain.J * second, (-1, -2)) / 2
    np.testing.assert_allclose(q.kl, potentials - q.log_z, atol=1e-10)
    prior = chain._replace(J=0 * chain.J, h=0 * chain.h)
    (m1, S1, _), (m0, S0, _) = oracles.dense(chain), oracles.dense(prior)
    d, P = (m1 - m0).ravel(), np.linalg.inv(S0)
    logdets = np.linalg.slogdet(S0)[1] - np.linalg.slogdet(S1)[1]
    np.testing.assert_allclose(q.kl.sum(), (np.trace(P @ S1) - len(d) + d @ P @ d + logdets) / 2, atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_gradient_of_log_z_is_the_smoothed_statistics(x64, form):
    chain = on_device(oracles.gaussian_chain(np.random.default_rng(4), 5, 2, missing=0.3))
    gradient = jax.jit(jax.grad(form.log_normalizer))(chain)
    q = jax.jit(form.smooth)(chain)
    np.testing.assert_allclose(gradient.h, q.mean, atol=1e-10)
    second = cov(q.sqrt) + np.asarray(q.mean)[:, :, None] * np.asarray(q.mean)[:, None]
    np.testing.assert_allclose(gradient.J + np.swapaxes(gradient.J, -1, -2), -second, atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("T", [1, 3])
def test_gradients_of_everything(x64, form, T):
    chain = on_device(oracles.gaussian_chain(np.random.default_rng(5), T, 2))  # J inside its cone, for differences

    @jax.jit
    def everything(chain):
        q = form.smooth(chain._replace(J=(chain.J + jnp.swapaxes(chain.J, -1, -2)) / 2))
        return q, form.sample(q, key=jax.random.key(0))

    check_grads(everything, (chain,), order=1, atol=1e-6, rtol=1e-6, eps=1e-5)


@pytest.mark.parametrize("form", FORMS[1:])
def test_every_form_is_the_sequential_one_on_a_longer_chain(x64, form):
    chain = on_device(oracles.gaussian_chain(np.random.default_rng(6), 30, 2, missing=0.5))
    got, want = (jax.jit(f.smooth)(chain) for f in (form, gaussian_sequential))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-10), got, want)


@pytest.mark.parametrize("form", FORMS[1:])
def test_gradients_beside_missing_steps_agree(x64, form):
    chain = on_device(oracles.gaussian_chain(np.random.default_rng(6), 5, 2, missing=0.5))

    def loss(form):
        def total(chain):
            q = form.smooth(chain._replace(J=(chain.J + jnp.swapaxes(chain.J, -1, -2)) / 2))
            return sum(jnp.sum(jnp.sin(x)) for x in q)

        return total

    got, want = (jax.jit(jax.grad(loss(f)))(chain) for f in (form, gaussian_sequential))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-9), got, want)


@pytest.mark.parametrize("form", FORMS)
def test_samples_have_the_moments(x64, form):
    chain = oracles.gaussian_chain(np.random.default_rng(7), 5, 2)
    mean, S, _ = oracles.dense(chain)
    q = jax.jit(form.smooth)(on_device(chain))
    keys = jax.random.split(jax.random.key(1), 20_000)
    x = np.asarray(jax.jit(jax.vmap(lambda key: form.sample(q, key=key)))(keys)).reshape(len(keys), -1)
    np.testing.assert_allclose(x.mean(0), mean.ravel(), atol=5 * np.sqrt(np.diag(S).max() / len(keys)))
    np.testing.assert_allclose(np.cov(x.T), S, atol=6 * np.diag(S).max() / np.sqrt(len(keys)))


def test_random_problems_against_statsmodels(x64):
    """24 of the thousand of benchmarks/numerics.py, in a few shapes so that few programs are compiled."""
    rng = np.random.default_rng(8)
    smooth = jax.jit(gaussian_sequential.smooth)
    for i in range(24):
        T, D = [(1, 1), (30, 2), (60, 5), (20, 10)][i % 4]
        chain = oracles.gaussian_chain(rng, T, D, missing=rng.random())
        mean, S, log_z = oracles.statsmodels(chain)
        q = smooth(on_device(chain))
        np.testing.assert_allclose(q.mean, mean, atol=1e-11, rtol=1e-11)
        np.testing.assert_allclose(cov(q.sqrt), S, atol=1e-11, rtol=1e-11)
        np.testing.assert_allclose(q.log_z.sum(), log_z, atol=1e-11, rtol=1e-11)


def hard(name, T):
    """Chains of numerics.md on which an information form fails, in float64 numpy."""
    I, rng = np.eye(2), np.random.default_rng(1)
    A, Q, J = (
        (I, 1e-6 * I, I)
        if name == "random walk"
        else (np.array([[1, 0.1], [0, 1]]), 1e-4 * np.array([[1e-3 / 3, 5e-3], [5e-3, 0.1]]), np.diag([100.0, 0]))
    )

    def tile(X):
        return np.broadcast_to(X, (T - 1, *X.shape))

    y = np.cumsum(rng.normal(size=(T, 2)) * 1e-3, 0) + rng.normal(size=(T, 2)) / np.sqrt(J[0, 0])
    return oracles.GaussianChain(
        np.zeros(2), I, tile(A), np.zeros((T - 1, 2)), tile(np.linalg.cholesky(Q)), np.broadcast_to(J, (T, 2, 2)), y @ J
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name, target", [("random walk", 5e-5), ("constant velocity", 5e-4)])
def test_float32_on_smooth_latents(form, name, target):
    chain = hard(name, 100)
    mean, S = oracles.rts(chain)
    q = jax.jit(form.smooth)(on_device(chain, np.float32))
    sd = np.sqrt(np.diagonal(S, axis1=-2, axis2=-1))
    assert np.max(np.abs(q.mean - mean) / sd) < target
    assert all(np.all(np.isfinite(x)) for x in q)
    assert np.all(np.linalg.eigvalsh(cov(q.sqrt)) > 0)
