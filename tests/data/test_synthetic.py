"""Theorems about the synthetic generators: their formulas, read backwards."""

import numpy as np
import pytest

from svae import data
from svae.data.synthetic import triangle


def test_pinwheel_unwinds_to_its_gaussian_features():
    y, labels = data.pinwheel(arms=5, points=4000, seed=0)
    radius = np.hypot(*y.T) / 10  # |(r, s)| is r up to s^2 / 2r
    angle = np.arctan2(y[:, 1], y[:, 0]) - 2 * np.pi * labels / 5 - 0.25 * np.exp(radius)
    sure = radius > 0.3  # near the centre the arm's angle is not defined
    sideways = (radius * np.sin(angle))[sure]
    np.testing.assert_allclose([radius.mean(), radius.std()], [1, 0.3], atol=0.01)
    np.testing.assert_allclose([sideways.mean(), sideways.std()], [0, 0.05], atol=0.003)
    assert (np.bincount(labels) == 4000).all() and y.dtype == np.float32


def test_triangle_wave():
    u = np.array([0, 0.5, 1, 1.5, 2, 3, -1, 7.25])
    np.testing.assert_allclose(triangle(u), [-1, 0, 1, 0, -1, 1, 1, 0.5])


def test_dots_in_the_papers_setting():
    y, clean, position = data.dots(seed=0)
    assert y.shape == clean.shape == (80, 50, 20) and position.shape == (80, 50)
    np.testing.assert_allclose((y - clean).std(), 0.1, rtol=0.02)
    steps = np.abs(np.diff(position))  # 2 v dt, except where it bounces
    np.testing.assert_allclose(np.median(steps), 2 * 0.75 * 0.1)
    assert (steps <= 0.15 + 1e-12).all() and np.abs(position).max() <= 1
    np.testing.assert_allclose(position.mean(), 0, atol=0.1)  # random phases cover the whole period


def test_dots_in_the_notebooks_setting():
    y, clean, position = data.dots(sequences=512, width=10, dt=10 / 49, noise_sd=0.06, x0=np.arange(512) / 8, seed=0)
    assert y.shape == (512, 50, 10)
    np.testing.assert_allclose(position[:, 0], triangle(0.75 * (1 + np.arange(512) / 8) / 2))
    np.testing.assert_allclose(position[:, -1], triangle(0.75 * (10 + (1 + np.arange(512) / 8) / 2)))
    grid = np.linspace(-1, 1, 10)
    np.testing.assert_allclose(clean[7, 3], np.exp(-((position[7, 3] - grid) ** 2) / (2 * 0.15**2)), atol=1e-6)
    entropy = 0.5 * np.log(2 * np.pi * np.e * (y - clean).astype(np.float64).var())
    np.testing.assert_allclose(-entropy, 1.394, atol=0.005)  # the ceiling of any bound


def test_two_speed_dots_move_at_the_labelled_speed():
    y, clean, position, labels = data.two_speed_dots(seed=0)
    assert y.shape == clean.shape == (len(labels), 15) and np.diff(labels).astype(bool).sum() == 49
    steps = np.abs(np.diff(position))
    limit = 2 * 0.1 * np.array([1.0, 1.9])[labels[1:]]
    assert (steps <= limit + 1e-12).all() and np.mean(np.isclose(steps, limit)) > 0.75
    assert abs(labels.mean() - 0.5) < 0.15


def test_switching_rotations_regress_to_their_matrices():
    y, labels, A = data.switching_rotations(states=4, bouts=80, seed=0)
    np.testing.assert_allclose(np.linalg.det(A), 0.95**2)
    for k in range(4):
        now = labels[1:] == k
        solution, *_ = np.linalg.lstsq(y[:-1][now], y[1:][now])
        np.testing.assert_allclose(solution.T, A[k], atol=0.05)
        np.testing.assert_allclose((y[1:] - y[:-1] @ A[k].T.astype(np.float32))[now].std(), 0.1, rtol=0.05)
    bouts = np.diff(np.flatnonzero(np.diff(labels)))
    assert bouts.min() >= 50 and bouts.max() <= 150


@pytest.mark.parametrize("generator", [data.pinwheel, data.dots, data.two_speed_dots, data.switching_rotations])
def test_the_seed_is_all_the_randomness(generator):
    assert all(np.array_equal(a, b) for a, b in zip(generator(seed=5), generator(seed=5), strict=True))
    assert not np.array_equal(generator(seed=5).y[:20], generator(seed=6).y[:20])
