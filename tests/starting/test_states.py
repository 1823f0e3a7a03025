"""States of warm latents: messages against enumeration, the duration that was asked for, and actions that are found."""

import itertools

import numpy as np
import pytest

from svae import data
from svae.data.scores import adjusted_rand_index, bout_lengths, matched, purity
from svae.starting import find_states, search
from svae.starting.actions import action_features, kmeans, smooth
from svae.starting.chains import forward_backward
from svae.starting.effort import COMPARED_FRAMES, compared_starts, effort, goes_on, sweeps
from svae.starting.em import LOW_COST


def test_forward_backward_is_enumeration():
    rng = np.random.default_rng(0)
    K, T, cost = 3, 5, 1.7
    node = rng.normal(size=(1, T, K))
    real = np.array([[True, True, True, True, False]])
    weights, total, switches = np.zeros((T, K)), 0.0, 0.0
    for path in itertools.product(range(K), repeat=4):
        moves = sum(a != b for a, b in itertools.pairwise(path))
        p = np.exp(sum(node[0, t, k] for t, k in enumerate(path)) - moves * (cost + np.log(K - 1))) / K
        total, switches = total + p, switches + p * moves
        weights[np.arange(4), path] += p
    both = forward_backward(np.stack([node, 0 * node], 2), real, np.array([cost, 1.0]))
    np.testing.assert_allclose(both.weights[0, :, 0], weights / total, atol=1e-12)
    np.testing.assert_allclose(both.switches[0], switches / total)
    np.testing.assert_allclose(both.log_z[0], np.log(total))


def test_rotations_are_told_apart_by_how_they_turn():
    made = data.switching_rotations(seed=0)
    x = made.y.astype(float) / made.y.std()
    found = find_states([x[:1000], x[1000:]], len(made.A), dynamic=True, duration=100.0, seed=0)
    assert adjusted_rand_index(made.labels, np.concatenate(found.weights).argmax(-1)) > 0.5


def balls():
    """20 paths of a ball between two walls, 150 frames each, and whether it goes up or down."""
    rng = np.random.default_rng(0)
    t = 3 * np.arange(150)[None] + rng.uniform(0, 200, 20)[:, None]
    height = np.abs(t % 200 - 100) + rng.normal(size=t.shape)
    return list(height[..., None] / height.std()), list((t % 200 < 100).astype(int))


@pytest.mark.parametrize("duration", [None, 15.0, 33.0, 130.0, 1000.0])
def test_a_wrong_duration_does_not_destroy_the_states(duration):
    """Each direction lasts 33 frames: the true duration, and wrong ones."""
    x, up = balls()
    found = find_states(x, 2, dynamic=True, duration=duration, seed=0, places=x)
    states = np.concatenate(found.weights).argmax(-1)
    assert adjusted_rand_index(np.concatenate(up), states) > 0.8
    if duration == 1000.0:
        assert found.starts.duration is None  # and it is said


def test_a_target_never_makes_states_flicker():
    """Posture changes every 100 frames; a target of 3 frames leaves it at that."""
    rng = np.random.default_rng(0)
    z = np.repeat(np.arange(8) % 2, 100)
    x = 2.0 * z[:, None] + rng.normal(size=(800, 2))
    found = find_states([x], 2, dynamic=True, duration=3.0, seed=0, places=[x])
    assert found.switch_cost >= LOW_COST
    assert np.median(bout_lengths([found.weights[0].argmax(-1)])) > 50


def test_the_switch_cost_settles_where_bouts_last_as_long_as_asked():
    poses = data.mouse(sequences=8, length=250, seed=1).poses.astype(float)
    x = list(poses / poses.std((0, 1)))
    found = {target: find_states(x, 6, dynamic=True, duration=target, seed=0) for target in (20.0, 40.0)}
    lasted = {target: 2000 / (states.switches + 8) for target, states in found.items()}
    assert lasted[20.0] == pytest.approx(20.0, rel=0.1)
    assert lasted[20.0] < lasted[40.0]
    assert found[20.0].switch_cost < found[40.0].switch_cost


def test_empty_latents_change_nothing():
    rng = np.random.default_rng(0)
    x = [np.cumsum(rng.normal(size=(60, 2)), 0) for _ in range(2)]
    more = [np.c_[part, 1e-3 * rng.normal(size=(60, 3))] for part in x]
    alone, beside = (find_states(part, 3, dynamic=True, duration=10.0, seed=0) for part in (x, more))
    np.testing.assert_array_equal(np.concatenate(beside.weights), np.concatenate(alone.weights))


def test_weights_are_trimmed_to_each_sequence_and_sum_to_one():
    rng = np.random.default_rng(0)
    x = [rng.normal(size=(n, 2)) for n in (30, 12, 1)]
    found = find_states(x, 2, dynamic=True, duration=None, seed=0)
    assert [w.shape for w in found.weights] == [(30, 2), (12, 2), (1, 2)]
    np.testing.assert_allclose(np.concatenate(found.weights).sum(-1), 1)


def test_kmeans_finds_far_clusters_and_survives_too_many():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 50)
    x = 10.0 * np.eye(3)[truth] + rng.normal(size=(150, 3))
    assert adjusted_rand_index(truth, kmeans(x, 3, rng)) == 1.0
    assert set(kmeans(np.zeros((4, 2)), 6, rng)) <= set(range(6))


def test_a_moving_average_of_a_constant_is_itself():
    np.testing.assert_allclose(smooth(np.full((20, 3), 2.5)), 2.5)
    assert np.isfinite(action_features([np.zeros((1, 2)), np.ones((9, 2))])).all()


def test_scores_of_segmentations():
    truth, found = np.array([0, 0, 1, 1, 2, 2]), np.array([2, 2, 0, 0, 1, 0])
    sklearn = pytest.importorskip("sklearn.metrics")
    assert adjusted_rand_index(truth, found) == pytest.approx(sklearn.adjusted_rand_score(truth, found))
    assert adjusted_rand_index(truth, truth) == 1.0
    assert purity(truth, found) == pytest.approx(5 / 6)
    np.testing.assert_array_equal(matched(truth, found), [1, 2, 0])
    np.testing.assert_array_equal(bout_lengths([truth, np.array([1, 1, 1])]), [2, 2, 2, 3])


@pytest.mark.parametrize("K", [3, 20])
def test_a_search_says_how_far_it_is(K):
    """It can be watched, and left between two sweeps; it finds the same."""
    x = np.random.default_rng(0).normal(size=(200, 2)).cumsum(0)
    options = {"dynamic": True, "duration": 10.0, "seed": 0, "starts": 2}
    shares, steps = [], search([x], K, **options)
    while True:
        try:
            shares.append(next(steps))
        except StopIteration as ended:
            found = ended.value
            break
    assert shares[0] == 0 and np.all(np.diff(shares) >= 0) and 0.9 < shares[-1] < 1.001 and len(shares) > 20
    assert found.log_likelihood == find_states([x], K, **options).log_likelihood


def shares_and_states(K, frames, *, hurries=lambda: False, places=False):
    """The shares that a search tells, and what it finds."""
    x = list(np.random.default_rng(0).normal(size=(2, frames // 2, 2)).cumsum(1))
    asked = {"dynamic": True, "duration": 10.0, "seed": 0, "places": x if places else None}
    steps, shares = search(x, K, **asked, hurries=hurries), []
    while True:
        try:
            shares.append(next(steps))
        except StopIteration as ended:
            return shares, ended.value


@pytest.mark.parametrize("K", [1, 3, 20])
def test_the_effort_of_a_search_is_that_of_its_sweeps(K):
    assert effort(10_000, K, places=False, starts=1) == 2 * effort(5000, K, places=False, starts=1)
    places = effort(10_000, K, places=True) - effort(10_000, K, places=False)
    alone = effort(10_000, K, places=False) - 4 * effort(10_000, K, places=False, starts=1)
    each = compared_starts(COMPARED_FRAMES, K, places=True, starts=4)
    assert places == (4 * each / 2 - 1) * alone  # runs with 4 weights of the place are compared, and 2 without
    again = effort(20_000, K, places=True) - effort(20_000, K, places=False)
    assert again == places  # on no more than so many frames
    if K == 3:
        shares, _ = shares_and_states(K, 60)
        assert len(shares) >= len(sweeps(60, K, False, 4)) and shares[0] == 0 and sorted(shares) == shares


def test_few_frames_have_more_starts_and_these_are_taken_further():
    """EM of two states that follow each other rarely ends in many places: from 4 starts of each kind it finds them."""
    assert [compared_starts(frames, 10, True, 4) for frames in (100, 1000, 2000, 10**6)] == [16, 10, 4, 4]
    assert compared_starts(100, 10, False, 4) == 2 and compared_starts(100, 10, True, 1) == 0
    few, many = (effort(frames, 2, places=True) for frames in (1000, 6001))
    assert goes_on(1000, 16, 4) and not goes_on(6001, 16, 4) and not goes_on(1000, 4, 4)
    shares, found = shares_and_states(3, 300, places=True)
    assert shares[0] == 0 and sorted(shares) == shares and found.starts.number == 4 and few < many


def test_a_search_in_a_hurry_ends_within_a_few_sweeps_with_all_its_states():
    shares, found = shares_and_states(3, 80, hurries=lambda: True, places=True)
    assert len(shares) <= 10 and found.weights[0].shape == (40, 3)
    np.testing.assert_allclose(np.concatenate(found.weights).sum(1), 1)
