"""The exam of keypoints: what was asked of the generator is in its files."""

import numpy as np
import pytest

import svae
from benchmarks import keypoint_exam as exam


@pytest.mark.parametrize("wild", [0.0, 0.01, 0.03])
def test_rates_of_wild_and_missing_points(wild):
    recordings, labels = exam.make(seed=3, wild=wild, frames=2000)
    tracked = np.stack(recordings)[..., :2]
    happened = np.stack([one.points for one in exam.truth(seed=3, frames=2000)])
    off = np.linalg.norm(tracked - happened, axis=-1)
    assert np.isnan(off).mean() == pytest.approx(exam.MISSING, abs=0.003)
    assert np.nanmean(off > 6 * exam.NOISE) == pytest.approx(wild, abs=0.002)  # the noise itself never goes so far
    assert [len(frames) for frames in recordings] == [len(actions) for actions in labels] == [2000] * 6


def test_likelihoods_tell_or_do_not():
    happened = np.stack([one.points for one in exam.truth(seed=3, frames=1000)])
    for telling in (True, False):
        tracked = np.stack(exam.make(seed=3, wild=0.03, telling=telling, frames=1000)[0])
        wild = np.linalg.norm(tracked[..., :2] - happened, axis=-1) > 6 * exam.NOISE
        assert (tracked[..., 2][wild].mean() < 0.5) == telling


def test_conditions_differ_only_where_points_are_wild():
    clean, few, many = (np.stack(exam.make(seed=1, wild=wild, frames=500)[0]) for wild in (0, 0.01, 0.03))
    moved = lambda other: ~np.isclose(clean, other, equal_nan=True).all(-1)  # noqa: E731
    assert moved(few).mean() == pytest.approx(0.01, abs=0.005)
    assert np.mean(moved(few) & ~moved(many)) < 0.001


def test_bouts_last_as_long_as_they_should():
    labels = np.concatenate([one.labels for one in exam.truth(seed=0)])
    edges = np.flatnonzero(np.diff(labels, prepend=-1) != 0)
    seconds, action = np.diff(edges) / exam.FPS, labels[edges[:-1]]
    inside = np.mean((seconds >= exam.SHORTEST - 0.02) & (seconds <= exam.LONGEST + 0.02))
    assert inside > 0.99  # a bout may be cut by the end of its recording
    means = [seconds[action == k].mean() for k in range(len(exam.ACTIONS))]
    assert 0.5 < min(means) < 0.75 and 0.9 < max(means) < 1.2


def test_written_files_are_read_as_deeplabcut(tmp_path):
    recordings, labels = exam.make(seed=0, frames=120, recordings=2)
    exam.write(tmp_path, recordings, labels)
    read = svae.load(tmp_path / "recordings", fps=exam.FPS)
    assert [y.shape for y in read.sequences] == [(120, len(exam.POINTS), 2)] * 2
    first = np.asarray(read.sequences[0])
    there = ~np.isnan(first)
    np.testing.assert_allclose(first[there], recordings[0][..., :2][there], atol=1e-3)
    lines = (tmp_path / "labels" / "walk_1.csv").read_text().split("\n")
    assert lines[0] == "action" and lines[1] == exam.ACTIONS[labels[0][0]].name
