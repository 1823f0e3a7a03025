"""How well each state is found again: the number itself, where it comes from, and what is said where nobody knows."""

import csv

import numpy as np
import pytest

from svae import runs
from svae.data.scores import found_again
from svae.runs import merge
from svae.runs._names import Labels
from svae.runs._restarts import again
from svae.runs._stability import Stability, Unknown, as_counted, keep_starts, number, overruled, stability, weak
from svae.starting import find_states
from svae.starting.states import Starts
from tests.runs.conftest import walks


def test_a_state_is_found_again_by_the_share_of_frames_in_common():
    rng = np.random.default_rng(0)
    path, others = rng.integers(0, 3, 50), [rng.integers(0, 4, 50) for _ in range(2)]
    frames = lambda z, k: set(np.flatnonzero(z == k))  # noqa: E731
    overlap = lambda k, z, j: len(frames(path, k) & frames(z, j)) / len(frames(path, k) | frames(z, j))  # noqa: E731
    expected = [np.mean([max(overlap(k, z, j) for j in range(4)) for z in others]) for k in range(3)]
    found = found_again(path, others, 5)
    np.testing.assert_allclose(found[:3], expected)
    assert np.isnan(found[3:]).all() and np.isnan(found_again(path, [], 3)).all()
    np.testing.assert_array_equal(found_again(path, [(path + 1) % 3, 2 - path], 3), 1)


def test_the_starts_of_a_search_find_clear_states_again():
    rng = np.random.default_rng(0)
    x = 8.0 * np.eye(3)[rng.permutation(30).repeat(10) % 3] + 0.3 * rng.normal(size=(300, 3))
    found = find_states([x], 3, dynamic=False, duration=None, seed=0)
    used = np.concatenate(found.weights).sum(0) > 0
    assert found.starts.number == 4 and np.array_equal(np.isfinite(found.starts.found_again), used)
    assert np.nanmin(found.starts.found_again) > 0.95
    alone = find_states([x], 3, dynamic=False, duration=None, seed=0, starts=1)
    assert alone.starts.number == 1 and np.isnan(alone.starts.found_again).all()


def test_restarts_look_for_the_states_of_the_answers():
    """The restart that the answers come from is left out, and one that went astray too."""
    own = np.arange(60) // 10 % 3
    half = np.where(np.arange(60) < 5, 1, own)
    found = again(own, [half, None, own], 4)
    assert found["others"] == 1 and found["found_again"] == pytest.approx([15 / 20, 20 / 25, 1, None])
    assert again(own, [own, None], 3) == {"others": 0, "found_again": None}


def test_starts_are_kept_for_each_restart(tmp_path):
    assert "one start" in stability(tmp_path, 1).why
    assert not overruled(tmp_path)
    keep_starts(tmp_path, 0, Starts(4, (0.9, float("nan"), 0.3), 20.0))
    assert not overruled(tmp_path)
    keep_starts(tmp_path, 1, Starts(1, (float("nan"),) * 3, None))
    found = stability(tmp_path, 1)
    assert found.others == 3 and [number(found, k) for k in range(4)] == [0.9, None, 0.3, None]
    assert "restarts" in stability(tmp_path, 2).why
    keep_starts(tmp_path, 0, Starts(1, (float("nan"),) * 3, None))
    assert "labels" in stability(tmp_path, 1).why and overruled(tmp_path)
    (tmp_path / "starts.json").write_text('{"restarts": [{"starts": 4}]}')
    with pytest.raises(runs.RunError, match="is damaged"):
        stability(tmp_path, 1)


def test_what_people_merged_has_no_number_and_what_is_weak_is_named():
    found = Stability(np.array([0.9, 0.4, 0.2, 0.8]), 3, "restarts")
    counted = as_counted(found, merge(Labels({}, {}), [0, 3], 3).merged)
    assert isinstance(counted, Stability) and [number(counted, k) for k in range(4)] == [None, 0.4, 0.2, None]
    said = weak(counted, [1, 2, 3], {2: "rear"})
    assert said.startswith("State 1 (0.40), rear (0.20) are hardly found again by other restarts")
    assert weak(counted, [3], {}) == "" and isinstance(as_counted(Unknown("why"), {0: 1}), Unknown)


def test_a_fit_of_several_restarts_says_it_of_every_state(several):
    found = several.stability()
    assert isinstance(found, Stability) and found.others == 2 and found.by == "restarts"
    with open(several.path / "states.csv") as file:
        rows = list(csv.DictReader(file))
    column = [float(row["found_again"] or "nan") for row in rows]
    np.testing.assert_allclose(column, found.again, atol=1e-6)
    used = np.concatenate([several.states(name) for name in several.recordings()])
    assert np.array_equal(np.isfinite(column), np.bincount(used, minlength=3) > 0)
    assert several.quality().frames.sum() == walks().frames
