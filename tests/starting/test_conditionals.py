"""Conditional Gaussians of weighted frames against scipy, and the merger that costs least against all of them."""

import itertools

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from svae.starting.conditionals import FLOOR, cheapest, explained, fitted, log_prob, losses, moments

D, U = 2, 3


def frames(seed=0, N=200, K=4):
    """Rows (u, x) with a constant last in u, and weights that sum to one."""
    rng = np.random.default_rng(seed)
    u = np.c_[rng.normal(size=(N, U - 1)), np.ones(N)]
    x = u @ rng.normal(size=(U, D)) + 0.3 * rng.normal(size=(N, D))
    return np.c_[u, x], rng.dirichlet(np.ones(K), size=N)


def test_a_fit_is_least_squares_with_one_frame_of_a_random_walk_and_a_floor():
    v, weights = frames()
    root = np.sqrt(weights[:, 1])[:, None]
    u, x = np.r_[root * v[:, :U], np.eye(U)], np.r_[root * v[:, U:], np.eye(U, D)]
    M_want = np.linalg.lstsq(u, x, rcond=None)[0]
    left = x - u @ M_want
    M, S = (part[1] for part in fitted(moments(v, weights), D))
    np.testing.assert_allclose(M, M_want, atol=1e-10)
    total = weights[:, 1].sum() + D + 2
    np.testing.assert_allclose(S, (left.T @ left + FLOOR * (D + 2) * np.eye(D)) / total, atol=1e-10)


def test_log_prob_is_that_of_normals_up_to_a_constant():
    v, weights = frames()
    M, S = fitted(moments(v, weights), D)
    want = [multivariate_normal(cov=s).logpdf(v[:, U:] - v[:, :U] @ m) for m, s in zip(M, S, strict=True)]
    away = log_prob(v, weights, D) - np.stack(want, 1)
    np.testing.assert_allclose(away, D / 2 * np.log(2 * np.pi), atol=1e-10)


def test_moments_of_two_states_as_one_are_their_sum():
    v, weights = frames()
    merged = np.c_[weights[:, :2], weights[:, 2] + weights[:, 3]]
    G = moments(v, weights)
    np.testing.assert_allclose(moments(v, merged)[2], G[2] + G[3], atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_the_two_that_lose_least_are_found(seed):
    v, weights = frames(seed)

    def total(weights):
        return explained(moments(v, weights), D).sum()

    def merged(i, j):
        return np.c_[np.delete(weights, (i, j), 1), weights[:, i] + weights[:, j]]

    best = max(itertools.combinations(range(4), 2), key=lambda pair: total(merged(*pair)))
    assert cheapest(losses(moments(v, weights), D), 1) == [best]


def test_no_state_is_in_two_of_the_pairs():
    v, weights = frames(K=7)
    pairs = cheapest(losses(moments(v, weights), D), 3)
    assert len({k for pair in pairs for k in pair}) == 6
