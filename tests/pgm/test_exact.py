"""Prop. 4.1 is tight where it can be: linear-Gaussian observations and the matching recognition are exact inference."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.stats

from svae import nets
from svae.expfam import MNIW, NIW, Dirichlet, map_families, moments
from tests.graphs import SIX, made

T, D, P, NU = 5, 2, 3, 1e11
MEAN, COVARIANCE = np.array([0.5, -1.0]), np.array([[1.0, 0.3], [0.3, 0.7]])
A, OFFSET, Q = np.array([[0.9, -0.2], [0.3, 0.8]]), np.array([0.1, 0.2]), np.array([[0.2, 0.05], [0.05, 0.1]])


def concentrated(family):
    """q(theta) so sure of one theta that its spread is below the tolerance."""
    if isinstance(family, Dirichlet):
        return Dirichlet(family.counts + NU)
    W, Sigma = (MEAN[:, None], COVARIANCE) if isinstance(family, NIW) else (np.c_[A, OFFSET], Q)
    batch = family.nu.shape
    tile = lambda a: jnp.broadcast_to(jnp.asarray(a), (*batch, *np.shape(a)))  # noqa: E731
    q = MNIW(tile(W), tile(NU * Sigma), tile(NU * np.eye(W.shape[1])), tile(NU))
    return q if isinstance(family, MNIW) else NIW(q.M[..., 0], q.S, q.K[..., 0, 0], q.nu)


def latent_moments(name: str):
    """Mean (T D) and covariance (T D, T D) of x_1..x_T, dense."""
    if name == "vae":
        return np.zeros(T * D), np.eye(T * D)
    if name not in ("lds", "slds"):
        return np.tile(MEAN, T), np.kron(np.eye(T), COVARIANCE)
    lag = np.eye(T * D) - np.kron(np.eye(T, k=-1), A)  # lag x = (first, offset, ..., offset) + noise
    mean = np.linalg.solve(lag, np.r_[MEAN, np.tile(OFFSET, T - 1)])
    noise = scipy.linalg.block_diag(COVARIANCE, *(T - 1) * [Q])
    return mean, np.linalg.solve(lag, np.linalg.solve(lag, noise).T)


def log_marginal_likelihood(name: str, y, real: int, W, b, sd):
    """log p(y) of the observed entries of the real frames, one multivariate normal."""
    mean, covariance = latent_moments(name)
    C = np.kron(np.eye(T), W)
    seen = (~np.isnan(y) & (np.arange(T) < real)[:, None]).reshape(-1)
    mean, covariance = C @ mean + np.tile(b, T), C @ covariance @ C.T + np.diag(np.tile(sd**2, T))
    oracle = scipy.stats.multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)])
    return oracle.logpdf(y.reshape(-1)[seen])


def expected_log_likelihood(q, y, real: int, W, b, sd):
    """E_q* log p(y | x) in closed form, over the observed entries of the real frames."""
    m, P_root = np.asarray(q.mean()), np.asarray(q.factors.x.sqrt)
    second = (y - m @ W.T - b) ** 2 + np.sum((W @ P_root) ** 2, -1)
    entries = -second / (2 * sd**2) - np.log(2 * np.pi * sd**2) / 2
    return np.nansum(entries[:real])


@pytest.mark.parametrize("name", sorted(SIX))
def test_the_bound_is_the_log_marginal_likelihood(name, x64):
    """No global KL and q(theta) at a point (nu = 1e11), one state: missing entries, a missing frame, padding."""
    rng = np.random.default_rng(0)
    W, b, log_sd = rng.normal(size=(P, D)), rng.normal(size=P), 0.3 * rng.normal(size=P)
    y = rng.normal(size=(T, P))
    y[1, 2], y[2] = np.nan, np.nan
    recognize = nets.Conjugate(jnp.asarray(W), jnp.asarray(b), jnp.asarray(log_sd))
    pgm = made(name, D, 1, concentration=1.0, stickiness=0.0)
    given = moments(map_families(concentrated, pgm.prior))
    infer = jax.jit(lambda y, mask: pgm.infer(given, recognize(y, mask), mask))
    for real in (T, T - 1):
        q = infer(jnp.asarray(y), jnp.arange(T) < real)
        bound = expected_log_likelihood(q, y, real, W, b, np.exp(log_sd)) - float(jnp.sum(q.kl))
        exact = log_marginal_likelihood(name, y, real, W, b, np.exp(log_sd))
        np.testing.assert_allclose(bound, exact, rtol=1e-8)


def test_the_conjugate_recognition_of_an_observation_is_its_likelihood(x64):
    """psi(x) = log p(y | x) up to a constant in x, for frames with missing entries."""
    observe = nets.make_observation(
        (P,), D, network="affine", hidden=(), likelihood="gaussian", variance="learned", key=jax.random.key(0)
    )
    x, y = np.random.default_rng(1).normal(size=(6, D)), np.array([0.3, np.nan, -1.0])
    psi = nets.conjugate(observe)(jnp.asarray(y)[None], jnp.ones(1, bool))
    potential = x @ psi.h[0] - np.einsum("ni,ij,nj->n", x, psi.J[0], x) / 2
    log_prob = observe.log_prob(jnp.asarray(x), jnp.broadcast_to(jnp.asarray(y), (6, P)))
    np.testing.assert_allclose(np.diff(potential), np.diff(log_prob), rtol=1e-10)
