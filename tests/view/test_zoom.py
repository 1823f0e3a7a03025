"""What the page gets of a recording, against the recording itself; and what a million frames cost."""

import itertools
import time

import numpy as np
import pytest

from svae.runs import Labels, Posterior, RunError, merge, rename, unmerge, write_labels
from svae.runs._names import read_labels, roots
from svae.view import _bouts, _zoom


def posterior(T, K=5, D=3, seed=0):
    rng = np.random.default_rng(seed)
    state = np.repeat(rng.integers(0, K, T // 7 + 1), 7)[:T].astype(np.int32)
    probability = rng.dirichlet(np.ones(K), T).astype(np.float32)
    mean, sd = rng.normal(size=(2, T, D)).astype(np.float32)
    return Posterior(np.arange(T) / 30, state, probability, mean, abs(sd), rng.random(T).astype(np.float32))


@pytest.mark.parametrize(
    ("first", "last", "bins"), [(0, 1000, 1000), (3, 998, 71), (500, 501, 10), (0, 9000, 20), (129, 8999, 40)]
)
def test_bins_are_the_least_the_most_and_the_mean_of_their_frames(first, last, bins):
    found = posterior(9000)
    edges, shown = _zoom.window(_zoom.track(found), first, last, bins)
    assert edges[0] <= first and edges[-1] >= last and (np.diff(edges) > 0).all() and len(edges) <= bins + 1
    for i, (a, b) in enumerate(itertools.pairwise(edges)):
        assert np.array_equal(shown.low[i], found.mean[a:b].min(0))
        assert np.array_equal(shown.high[i], found.mean[a:b].max(0))
        assert shown.error[i] == found.error[a:b].max() and shown.least[i] == found.error[a:b].min()
        if (last - first) / bins < 2 * _zoom.BLOCK or last == 9000:
            assert np.allclose(shown.probability[i].sum(), 1, atol=1e-5)


def test_gaps_in_the_error_are_passed_over():
    found = posterior(400)
    found.error[10:300] = np.nan
    _, shown = _zoom.window(_zoom.track(found), 0, 400, 40)
    assert np.isnan(shown.error[2]) and np.isfinite(shown.error[[0, 35]]).all()


def test_the_commonest_state_of_each_bin_is_counted_by_frames():
    found, K = posterior(3000), 5
    path = _bouts.ethogram(found.state, np.arange(K))
    edges = np.r_[11, 100, 101, 640, 2999]
    counted = [np.bincount(found.state[a:b], minlength=K) for a, b in itertools.pairwise(edges)]
    assert [c[k] for c, k in zip(counted, _bouts.majority(path, edges, K), strict=True)] == [c.max() for c in counted]


def test_merged_states_have_one_bout_where_they_had_two():
    state = np.array([0, 0, 1, 1, 2, 2, 0, 1])
    counted = roots(merge(Labels({}, {}), [0, 1], 0).merged, 3)
    path = _bouts.ethogram(state, counted)
    assert path.start.tolist() == [0, 4, 6] and path.state.tolist() == [0, 2, 0]
    assert path.span(path.at(3)) == (0, 4) and path.span(path.at(7)) == (6, 8)
    assert _bouts.following(path, 1, 0, 1) == 2 and _bouts.following(path, 7, 0, 1) is None
    assert _bouts.statistics([path], 3) == [(0.75, 2, 3.0), (0.0, 0, 0.0), (0.25, 1, 2.0)]


def test_labels_part_as_they_were_before_they_met(tmp_path):
    labels = rename(rename(Labels({}, {}), 1, " rear\n up "), 2, "run")
    joined = merge(merge(labels, [0, 1], 1), [1, 2], 2)
    assert joined.merged == {0: 2, 1: 2} and joined.names == {1: "rear up", 2: "run"}
    assert (
        unmerge(joined, 0).merged == {1: 2}
        and unmerge(joined, 2) == labels
        and rename(labels, 2, " ").names == {1: "rear up"}
    )
    write_labels(tmp_path, joined)
    assert read_labels(tmp_path) == joined
    (tmp_path / "names.json").write_text('{"3": "x", "merged": {"1": 2, "2": 3, "4": 4, "5": "6", "-1": 0}, "y": 1}')
    assert read_labels(tmp_path) == Labels({3: "x"}, {2: 3})
    with pytest.raises(RunError, match="at most 80"):
        rename(labels, 0, "x" * 81)


def test_a_million_frames_take_no_longer_than_a_blink():
    T = 1_000_000
    rng = np.random.default_rng(0)
    probability, wide = rng.random((T, 30), np.float32), rng.random((T, 10), np.float32)
    state = np.repeat(rng.integers(0, 30, T // 20), 20).astype(np.int32)
    track = _zoom.track(Posterior(np.arange(T) / 30, state, probability, wide, wide, wide[:, 0]))
    path = _bouts.ethogram(state, np.arange(30))
    worst = 0.0
    for first, last in ((0, T), (1234, 800_000), (500_000, 600_000), (77, 20_000), (999_000, T)):
        began = time.process_time()
        edges, found = _zoom.window(track, first, last, 1500)
        _bouts.majority(path, edges, 30)
        worst = max(worst, time.process_time() - began)
        assert len(found.low) <= 1500
    assert worst < 0.25
