"""The synthetic mouse: continuous poses, stereotyped dynamics, and an exam that one frame cannot pass."""

import time

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from svae import data
from svae.data.mouse import ACTIONS, dynamics, render

MOUSE = data.mouse(sequences=32, length=250, seed=0)
K = len(ACTIONS)


def bouts(labels):
    """(length, label) of the complete bouts of one sequence."""
    edges = np.flatnonzero(np.diff(labels)) + 1
    return list(zip(np.diff(edges), labels[edges[:-1]], strict=True))


def test_shapes_and_ranges():
    assert MOUSE.y.shape == (32, 250, 30, 30) and MOUSE.y.dtype == np.float32 and MOUSE.poses.dtype == np.float32
    assert MOUSE.labels.shape == (32, 250) and MOUSE.poses.shape == (32, 250, 7)
    assert len(MOUSE.action_names) == len(set(MOUSE.action_names)) == K >= 8 and MOUSE.fps == 30
    assert MOUSE.y.min() > -0.3 and 0.8 < MOUSE.y.max() < 1.3


def test_the_demo_set_is_made_in_seconds():
    start = time.perf_counter()
    data.mouse(seed=1)
    assert time.perf_counter() - start < 5


def test_the_seed_is_all_the_randomness():
    a, b, c = (data.mouse(sequences=2, length=20, seed=seed) for seed in (3, 3, 4))
    assert all(np.array_equal(x, y) for x, y in zip(a[:3], b[:3], strict=True)) and not np.array_equal(a.y, c.y)


def test_bouts_last_from_a_third_of_a_second_to_one_and_a_half():
    lengths, labels = zip(*(bout for z in MOUSE.labels for bout in bouts(z)), strict=True)
    assert min(lengths) >= 9 and max(lengths) <= 45 and np.std(lengths) > 5
    assert (np.bincount(labels, minlength=K) > 15).all()


def test_images_are_the_rendered_poses_with_mild_noise():
    clean = render(MOUSE.poses[0])
    error = MOUSE.y[0] - clean
    assert abs(error.mean()) < 1e-3 and 0.01 < error.std() < 0.05 and clean.min() >= 0


def test_the_body_stays_in_the_frame():
    clean = render(MOUSE.poses.reshape(-1, 7)[::7])
    border = np.concatenate([clean[:, 0], clean[:, -1], clean[:, :, -1]], -1)  # the tail may leave at the left
    assert np.quantile(border.max(-1), 0.99) < 0.35


def test_mirrored_poses_give_mirrored_images():
    poses = MOUSE.poses[0, :40]
    mirror = poses * np.array([-1, -1, 1, 1, 1, -1, -1], np.float32)
    np.testing.assert_allclose(render(mirror), render(poses)[:, ::-1], atol=1e-5)


def test_poses_are_continuous_across_switches():
    jump = np.abs(np.diff(MOUSE.poses, axis=1))
    switch = np.diff(MOUSE.labels, axis=1) != 0
    assert jump[switch].max() <= jump[~switch].max() * 1.2


def test_every_action_is_nearly_linear_and_is_what_dynamics_says():
    past = np.concatenate([MOUSE.poses[:, :-1], np.ones((32, 249, 1))], -1).reshape(-1, 8)
    future, now = MOUSE.poses[:, 1:].reshape(-1, 7), MOUSE.labels[:, 1:].ravel()
    for k, (A, b) in enumerate(zip(*dynamics(), strict=True)):
        W = np.linalg.lstsq(past[now == k], future[now == k])[0].T
        np.testing.assert_allclose(W[:4, :4], A[:4, :4], atol=0.15)
        np.testing.assert_allclose(W[:4, 7], b[:4], atol=0.05)
        error = (future - past @ W.T)[now == k]
        assert error[:, :4].std() < 0.25 * future[:, :4].std()


def test_actions_share_their_poses():
    """Every action finds poses of at least two other actions closer than the typical distance within itself."""
    rows, z = MOUSE.poses[..., :4].reshape(-1, 4)[::5], MOUSE.labels.ravel()[::5]
    for k in range(K):
        others = [
            np.linalg.norm(rows[z == k][:, None] - rows[z == j][None], axis=-1).min(1) for j in range(K) if j != k
        ]
        assert sum(np.mean(near < 0.4) > 0.5 for near in others) >= 2


def test_one_frame_does_not_give_the_action_away():
    rows = MOUSE.y.reshape(-1, 900)
    found = KMeans(K, n_init=3, random_state=0).fit_predict(PCA(10, random_state=0).fit_transform(rows))
    assert adjusted_rand_score(MOUSE.labels.ravel(), found) <= 0.3


def test_the_exam_is_frozen():
    """Fingerprints of the default mouse of seed 0, the one whose scores are published."""
    assert np.bincount(MOUSE.labels.ravel()).tolist() == [1157, 1148, 1044, 888, 900, 1045, 877, 941]
    spread = MOUSE.poses.astype(np.float64).std((0, 1))
    np.testing.assert_allclose(spread, [0.6495, 0.6331, 0.4270, 0.4476, 0.5071, 0.5516, 0.5073], atol=1e-3)
    pixels = MOUSE.y.astype(np.float64)
    np.testing.assert_allclose([pixels.mean(), pixels.std()], [0.09425, 0.20265], atol=1e-4)
