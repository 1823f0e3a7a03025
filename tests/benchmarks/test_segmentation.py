"""Scores of segmentations against values worked out by hand; sets that are drawn; rows that are resumed."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.segmentation import peers, scores, sets, table

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
RECORDED = [name for name in sets.parts(list(sets.SETS)) if not name.startswith(("mouse", "keypoints"))]


def labels(*lengths):
    return np.repeat(np.arange(len(lengths)), lengths)


def test_covering_of_the_same_segments_is_one_whatever_their_states():
    assert scores.covering([labels(3, 4, 5)], [labels(3, 4, 5) * 7 % 5]) == 1


def test_covering_by_hand():
    # 10 frames cut at 4 against a cut at 5: 4/5 of 4 frames, 5/6 of 6 frames
    assert scores.covering([labels(4, 6)], [labels(5, 5)]) == pytest.approx((4 * 4 / 5 + 6 * 5 / 6) / 10)
    assert scores.covering([labels(4, 6)], [labels(10)]) == pytest.approx((4 * 4 / 10 + 6 * 6 / 10) / 10)
    assert scores.covering([labels(10)], [labels(5, 5)]) == pytest.approx(0.5)


def test_covering_by_enumeration():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = (np.cumsum(rng.random(30) < 0.2) for _ in range(2))
        frames = [[set(np.flatnonzero(one == k)) for k in np.unique(one)] for one in (a, b)]
        expected = sum(len(s) * max(len(s & t) / len(s | t) for t in frames[1]) for s in frames[0]) / 30
        assert scores.covering([a], [b]) == pytest.approx(expected)


def test_covering_counts_frames_of_all_recordings():
    whole, half = [labels(5, 5)], [labels(10)]
    both = scores.covering([*whole, labels(30)], [*half, labels(30)])
    assert both == pytest.approx((10 * scores.covering(whole, half) + 30) / 40)


def test_agreement_does_not_ask_for_names_of_states():
    truth = labels(3, 4, 5)
    assert scores.agreement(truth, (truth + 1) % 3) == pytest.approx({"accuracy": 1, "nmi": 1, "ami": 1, "ari": 1})
    assert scores.agreement(truth, np.zeros(12, int))["ari"] == pytest.approx(0)


def test_balanced_accuracy_of_states_that_stand_for_a_class():
    truth = np.array([0] * 8 + [1] * 2)
    found = np.array([0] * 6 + [1, 1, 1, 1])  # state 1: half of it is rearing, which is more than 0.2
    assert scores.balanced(truth, found) == {"majority": 0.5, "balanced": pytest.approx((6 / 8 + 1) / 2)}


def test_a_series_is_scored_by_its_usual_state():
    truth = [np.zeros(5, int), np.ones(5, int), np.ones(7, int)]
    found = [np.array([2, 2, 2, 0, 0]), np.array([1, 1, 0, 0, 0]), np.array([0] * 7)]
    assert scores.scores("series", truth, found)["series_ari"] == 1


def test_shape_of_a_segmentation():
    found = [np.array([0] * 150 + [1] * 49), np.array([2])]
    assert scores.shape(found) == {"in_use": 2, "largest": pytest.approx(0.75), "median_bout": 49}


@pytest.mark.parametrize("name", ["mouse", "keypoints/3"])
def test_drawn_sets(name, tmp_path):
    part = sets.read(name, tmp_path, tmp_path)
    assert all(len(y) == len(z) and np.isfinite(y).all() for y, z in zip(part.sequences, part.labels, strict=True))
    assert part.source is None or len(list(part.source.glob("*.csv"))) == len(part.labels)


@pytest.mark.skipif(not DATA.exists(), reason="the shared recordings are not here")
@pytest.mark.parametrize("name", RECORDED)
def test_sets_that_were_recorded(name, tmp_path):
    if name == "birdsong/bl26lb16":
        pytest.skip("made from raw songs that are not in the shared folder")
    part = sets.read(name, DATA, tmp_path)
    assert [len(y) for y in part.sequences] == [len(z) for z in part.labels]
    assert 2 <= part.true_states <= 13


def test_plain_models_find_two_states_that_differ():
    rng = np.random.default_rng(0)
    truth = [labels(40, 30), labels(20, 50)]
    y = [10 * z[:, None] + rng.standard_normal((len(z), 3)) for z in truth]
    for method in ("kmeans", "gaussian_hmm"):
        found = peers.segmented(method, y, 2, 0)
        assert scores.scores("frames", truth, found)["ari"] == 1


@pytest.mark.filterwarnings("default")
def test_rows_are_resumed_and_tabled(tmp_path):
    out = tmp_path / "rows.jsonl"
    line = [sys.executable, "-m", "benchmarks.segmentation", "--data", str(tmp_path), "--out", str(out), "--seeds", "2"]
    line += ["--sets", "keypoints/0", "--methods", "kmeans", "--states", "true"]
    first, again = (subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True) for _ in range(2))
    assert first.stdout.startswith("2 fits to run") and again.stdout.startswith("0 fits to run")
    rows = [json.loads(text) for text in out.read_text().splitlines()]
    assert len(rows) == 2 and all(0.2 < row["ari"] < 1 and row["number"] == 8 for row in rows)
    assert (tmp_path / "rows.states" / "keypoints-0-kmeans-true-1.npy").exists()
    assert table.means(rows)["keypoints/0", "kmeans"].shape == (2,)
    assert 0.5 < table.agreement([out], rows)["keypoints/0", "kmeans"].mean() <= 1
