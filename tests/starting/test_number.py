"""States that the frames do not pay for: the criterion against a sum by hand, and the number of known processes."""

import numpy as np
import pytest

from svae import data
from svae.starting import find_states, place_of_states
from svae.starting.number import worth


def test_worth_is_the_classification_likelihood_less_half_log_frames_for_each_parameter():
    """Shrinkage aside: 20,000 frames of white noise in two states that do not differ gain nothing from the second."""
    rng = np.random.default_rng(0)
    N = 20_000
    v = np.concatenate([np.ones((N, 1)), rng.normal(size=(N, 2))], 1)
    labels = np.repeat([0, 1], N // 2)
    parameters, switch = 2 + 3, np.log(1 / N) + (N - 1) * np.log1p(-1 / N)
    lost = worth(v, 2, labels) - worth(v, 2, 0 * labels)
    assert lost == pytest.approx(switch - parameters * np.log(N) / 2, abs=8)


def test_states_that_differ_pay_for_themselves():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(20) % 2, 50)
    v = np.concatenate([np.ones((1000, 1)), rng.normal(size=(1000, 2)) + 3.0 * labels[:, None]], 1)
    assert worth(v, 2, labels) > worth(v, 2, 0 * labels) + 100


def test_twice_as_many_states_as_there_are_end_as_many_as_there_are():
    made = data.switching_rotations(seed=0)
    x, K = made.y.astype(float) / made.y.std(), len(made.A)
    found = find_states([x[:1000], x[1000:]], 2 * K + 2, dynamic=True, duration=None, seed=0)
    assert K - 1 <= found.number <= K + 1
    assert np.concatenate(found.weights).shape == (len(x), 2 * K + 2)
    assert not np.concatenate(found.weights)[:, found.number :].any()


def test_a_state_without_frames_has_the_place_of_all():
    rng = np.random.default_rng(0)
    places, labels = rng.normal(size=(400, 2)) @ np.diag([1.0, 3.0]) + 2.0, rng.integers(2, size=400)
    mean, covariance = place_of_states([places], [np.eye(3)[labels]])
    np.testing.assert_allclose(mean[2], places.mean(0), atol=0.05)
    np.testing.assert_allclose(covariance[2], np.cov(places.T), rtol=0.1, atol=0.1)
