"""Imputed points in the file's own coordinates and layout; the truth is known, and points are hidden from it."""

import csv

import numpy as np
import pytest

from svae.cli import _imputed_csv
from svae.cli._unaligned import Filled, filled
from svae.config import Config, ConfigError
from svae.data import load
from svae.data.preprocess import Preprocess
from svae.data.preprocess import find as find_preprocess

NAMES = ("nose", "ear left", "ear right", "spine", "tail")
BODY = np.array([[30, 0], [20, -8], [20, 8], [0, 0], [-30, 0]], float)


def walk(T=200):
    """A rigid body that walks in a circle: what is hidden of it can be known exactly."""
    heading = np.linspace(0, 7, T)
    place = 300 + 100 * np.stack([np.sin(heading), -np.cos(heading)], -1)
    cos, sin = np.cos(heading)[:, None], np.sin(heading)[:, None]
    x, y = BODY.T
    return place[:, None] + np.stack([cos * x - sin * y, sin * x + cos * y], -1)


def hidden(xy):
    rng = np.random.default_rng(0)
    seen = xy.copy()
    seen[rng.random(xy.shape[:2]) < 0.1] = np.nan
    seen[60:64] = np.nan
    return seen


def test_points_return_to_where_they_were_filmed():
    xy = walk()
    seen = hidden(xy)
    before = find_preprocess(load({"walk": xy}), Config())
    # a model that fills in perfectly: the body, as it sees it
    inside, sd = np.broadcast_to(before.apply(xy), xy.shape), np.where(np.isnan(seen), 2.0, 0.0)
    inside = np.where(np.isnan(before.apply(seen)), inside, before.apply(seen))
    found = filled(before, seen, inside, sd)
    was = np.isfinite(seen)
    assert np.array_equal(found.frames[was], seen[was]) and np.isfinite(found.frames).all()
    alone = np.isfinite(seen).all(-1).sum(1) >= 2
    assert np.abs(found.frames - xy)[alone].max() < 0.05
    assert np.abs(found.frames - xy)[~alone].max() < 3 and found.between == (~alone).sum()
    assert np.array_equal(found.new, np.isnan(seen).any(-1)) and (found.sd[found.new] == 2).all()


def write(file, rows):
    with open(file, "w", newline="") as stream:
        csv.writer(stream).writerows(rows)


def rows_of(file):
    with open(file, newline="") as stream:
        return list(csv.reader(stream))


def as_deeplabcut(file, seen, xy):
    head = [
        ["scorer"] + ["net"] * 15,
        ["bodyparts"] + [n for n in NAMES for _ in range(3)],
        ["coords"] + ["x", "y", "likelihood"] * 5,
    ]
    trust = np.where(np.isnan(seen).any(-1), 0.01, 0.99)
    shown = np.concatenate([xy, trust[..., None]], -1).reshape(len(xy), -1)
    write(file, head + [[t, *row] for t, row in enumerate(shown.tolist())])


def as_table(file, seen, xy):
    head = [["frame", *(f"{n}_{a}" for n in NAMES for a in "xy")]]
    cells = [["" if np.isnan(v) else v for v in row] for row in seen.reshape(len(seen), -1).tolist()]
    write(file, head + [[t, *row] for t, row in enumerate(cells)])


@pytest.mark.parametrize("layout", [as_deeplabcut, as_table])
def test_a_csv_keeps_its_layout_and_only_what_was_missing_changes(layout, tmp_path):
    xy = walk()
    seen = hidden(xy)
    layout(tmp_path / "walk.csv", seen, xy + 500 * np.isnan(seen))  # what the tracker was not sure of is far off
    data = load(tmp_path / "walk.csv")
    new = np.isnan(data.sequences[0][:]).any(-1)
    found = [Filled(np.where(np.isnan(seen), xy, seen), np.where(new, 1.5, 0), new, 0)]
    made = _imputed_csv.write(tmp_path / "out", str(tmp_path / "walk.csv"), data, found)
    assert made == ["walk.csv", "filled.csv"]
    before, after = rows_of(tmp_path / "walk.csv"), rows_of(tmp_path / "out" / "walk.csv")
    assert [len(r) for r in after] == [len(r) for r in before]
    again = load(tmp_path / "out" / "walk.csv").sequences[0]
    assert again.points == NAMES and np.abs(again[:] - xy).max() < 1e-3
    changed = sum(a != b for p, q in zip(before, after, strict=True) for a, b in zip(p, q, strict=True))
    assert changed == new.sum() * (3 if layout is as_deeplabcut else 2)
    listed = rows_of(tmp_path / "out" / "filled.csv")
    assert listed[0] == ["recording", "frame", "entry", "sd"] and len(listed) == 1 + new.sum() and listed[1][3] == "1.5"


def test_other_formats_become_a_new_csv_and_plain_columns_keep_theirs(tmp_path):
    xy = walk()
    np.save(tmp_path / "walk.npy", xy)
    found = [Filled(xy, np.zeros(xy.shape[:2]), np.zeros(xy.shape[:2], bool), 0)]
    named = load({"walk": xy})
    view = type("View", (), {"points": NAMES})()
    assert _imputed_csv.write(tmp_path / "out", str(tmp_path / "walk.npy"), named._replace(sequences=(view,)), found)
    assert np.abs(load(tmp_path / "out" / "walk.csv").sequences[0][:] - xy).max() < 1e-3
    write(tmp_path / "plain.csv", [["time", "a", "b"], [0.0, 1, 2], [0.1, "", 4], [0.2, 5, 6]])
    data = load(tmp_path / "plain.csv")
    y = np.array([[1, 2], [3, 4], [5, 6]], float)
    new = np.array([[0, 0], [1, 0], [0, 0]], bool)
    _imputed_csv.write(tmp_path / "out", str(tmp_path / "plain.csv"), data, [Filled(y, 0.5 * new, new, 0)])
    assert rows_of(tmp_path / "out" / "plain.csv")[1:] == [["0.0", "1", "2"], ["0.1", "3", "4"], ["0.2", "5", "6"]]


def test_what_cannot_be_undone_is_refused():
    with pytest.raises(ConfigError, match=r"--to csv cannot undo the preprocessing of this model \(frames\)"):
        filled(Preprocess("frames", size=(8, 8)), np.zeros((3, 9, 9)), np.zeros((3, 8, 8)), np.zeros((3, 8, 8)))
