"""The small-matrix kernels against numpy, and their derivative rules against finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from svae import _linalg as la
from svae.expfam import LinearGaussian
from svae.pgm.dynamics import DynamicsGlobals, tamed

SHAPES = [(1, 1), (4, 4), (2, 3, 3), (14, 14), (2, 2, 5, 5)]  # single and stacked, either side of the rule


def positive(shape, seed=0):
    X = np.random.default_rng(seed).normal(size=shape)
    return jnp.asarray(X @ np.swapaxes(X, -1, -2) + np.eye(shape[-1]))


@pytest.mark.parametrize("shape", SHAPES)
def test_factors_are_those_of_numpy(x64, shape):
    A = positive(shape)
    L = np.linalg.cholesky(A)
    np.testing.assert_allclose(la.cholesky(A), L, atol=1e-12)
    np.testing.assert_allclose(la.cholesky_and_inverse(A)[1], np.linalg.inv(L), atol=1e-12)
    np.testing.assert_allclose(la.inv_tril(jnp.asarray(L)), np.linalg.inv(L), atol=1e-12)
    np.testing.assert_allclose(la.logdet_tril(jnp.asarray(L)), np.linalg.slogdet(A)[1] / 2, atol=1e-12)


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (2, 3, 6), (14, 15)])
def test_tria_is_the_cholesky_factor_of_the_gram_matrix(x64, shape):
    M = jnp.asarray(np.random.default_rng(1).normal(size=shape))
    np.testing.assert_allclose(la.tria(M), np.linalg.cholesky(M @ la.mT(M)), atol=1e-11)


@pytest.mark.parametrize("stack", [(), (2,)])
def test_tria_of_a_singular_matrix_is_finite(stack):
    M = jnp.broadcast_to(jnp.asarray([[0.0, 0, 0, 0], [1, 2, 0, 1], [2, 4, 0, 2]]), (*stack, 3, 4))
    np.testing.assert_allclose(la.mm(la.tria(M), la.mT(la.tria(M))), M @ la.mT(M), atol=1e-5)


def test_semidefinite_factor_of_a_rank_deficient_matrix():
    C = np.random.default_rng(2).normal(size=(5, 2, 4)).astype(np.float32) * 100
    A = jnp.asarray(np.swapaxes(C, -1, -2) @ C)
    L = la.cholesky_semidefinite(A)
    np.testing.assert_allclose(L @ la.mT(L), A, atol=1e-5 * float(jnp.max(A)))
    assert not np.any(la.cholesky_semidefinite(jnp.zeros((3, 3))))


@pytest.mark.parametrize("stack", [(), (2,)])
@pytest.mark.parametrize("f", [la.cholesky, lambda A: la.cholesky_and_inverse(A)[1], la.tria, la.inv_tril])
def test_derivatives(x64, f, stack):
    lower = jnp.tril if f is la.inv_tril else la.symmetrize
    check_grads(jax.jit(lambda A: f(lower(A))), (positive((*stack, 3, 3)),), order=1, atol=1e-6, rtol=1e-6)


def test_tria_of_graded_rows_is_backward_stable():
    M = np.random.default_rng(3).normal(size=(6, 12)) * np.logspace(0, -4, 6)[:, None]
    L = np.asarray(la.tria(jnp.asarray(M, jnp.float32)), np.float64)
    scale = np.linalg.norm(M, axis=1)
    np.testing.assert_allclose(L @ L.T / np.outer(scale, scale), M @ M.T / np.outer(scale, scale), atol=3e-6)


def test_the_spectral_radius_is_that_of_the_eigenvalues():
    rng = np.random.default_rng(0)
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    A = np.stack([*rng.normal(size=(20, 2, 2)), 1.42 * turn, np.eye(2), np.zeros((2, 2)), [[0, 5], [0, 0]]])
    truth = np.abs(np.linalg.eigvals(A)).max(-1)
    found = np.asarray(la.spectral_radius(jnp.asarray(A, jnp.float32)))
    np.testing.assert_allclose(found[:-2], truth[:-2], rtol=5e-3)
    assert np.all(found[-2:] < 0.95) and np.all(found[:-2] >= truth[:-2] * (1 - 1e-4))


def test_only_dynamics_that_grow_are_tamed():
    """Their eigenvectors stay, and so do offsets and noise; what does not grow stays to the last bit."""
    turn = np.array([[0.6, -0.6], [0.6, 0.6]])
    W = np.concatenate([np.stack([turn, 1.5 * np.eye(2) + turn]), np.ones((2, 2, 1))], -1)
    noise = jnp.ones((2, 2, 2))
    part = DynamicsGlobals(LinearGaussian(jnp.ones((2, 2, 1)), noise), LinearGaussian(jnp.asarray(W), noise))
    found = tamed({"x": part, "z": jnp.ones(3)})
    after = np.asarray(found["x"].dynamics.W)
    np.testing.assert_array_equal(after[0], np.asarray(W[0], after.dtype))
    values, before = (np.linalg.eigvals(A) for A in (after[1, :, :2], W[1, :, :2]))
    np.testing.assert_allclose(values, before / np.abs(before).max(), rtol=5e-3)
    assert np.all(found["x"].dynamics.sqrt == 1) and np.all(after[..., 2] == 1) and np.all(found["x"].first.W == 1)
