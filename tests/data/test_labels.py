"""Labels from files and from memory, against what each frame should be called."""

import json

import numpy as np
import pytest

import svae
from svae import data
from svae.data.beside import FREE, of_windows
from svae.data.windows import windows

EMPTY, FPS = "", 10


@pytest.fixture
def records():
    return svae.load({"walk": np.zeros((20, 2)), "run": np.ones((30, 2))}, fps=FPS)


def of_file(records, folder, text, name="scored.csv"):
    file = folder / name
    file.write_text(text)
    return data.load_labels(records, file)


def words(found, i):
    """The label of every frame as a name."""
    return [found.called.labels[k] if k >= 0 else EMPTY for k in found.beside[i].labels]


def stretches(T, *bouts):
    found = [EMPTY] * T
    for name, first, last in bouts:
        found[first:last] = [name] * (last - first)
    return found


def test_bouts_in_seconds_and_in_frames(records, tmp_path):
    in_seconds = of_file(records, tmp_path, "recording,label,start,stop\nwalk,rear,0.5,1.0\nrun,groom,0,0.300001\n")
    in_frames = of_file(records, tmp_path, "recording,label,start_frame,stop_frame\nwalk,rear,5,10\nrun,groom,0,3\n")
    for found in (in_seconds, in_frames):
        assert found.called.labels == ("groom", "rear")
        assert words(found, 0) == stretches(20, ("rear", 5, 10)) and words(found, 1) == stretches(30, ("groom", 0, 3))


def test_what_boris_exports(records, tmp_path):
    head = "Observation id,Subject,Behavior,Behavior type,{}Comment\n"
    rows = "walk,m1,rear,STATE,0.5,1.0,\nwalk,m1,groom,STATE,1.2,1.5,\n"
    aggregated = of_file(records, tmp_path, head.format("Start (s),Stop (s),") + rows)
    events = "Observation id,x\n\nTime,Media file path,Subject,Behavior,Status\n" + "".join(
        f"{t},C:\\videos\\walk.mp4,m1,{name},{kind}\n"
        for t, name, kind in [(0.5, "rear", "START"), (1.0, "rear", "STOP"), (1.1, "call", "POINT"),
                              (1.2, "groom", "START"), (1.5, "groom", "STOP")]
    )  # fmt: skip
    tabular = of_file(records._replace(sequences=records.sequences[:1], names=("walk",)), tmp_path, events)
    for found in (aggregated, tabular):
        assert words(found, 0) == stretches(20, ("rear", 5, 10), ("groom", 12, 15))
    assert any("1 events without duration" in note for note in tabular.notes)


def test_a_line_for_each_frame(records, tmp_path):
    expected = stretches(20, ("rear", 5, 10))
    for name in records.names:
        T = 20 if name == "walk" else 30
        (tmp_path / f"{name}.csv").write_text("label\n" + "\n".join(f'"{x}"' for x in expected + [EMPTY] * (T - 20)))
    assert words(data.load_labels(records, tmp_path / "*.csv"), 1)[:20] == expected
    ones = "".join(f"{t / FPS},{int(5 <= t < 10)},0\n" for t in range(20))
    assert words(of_file(records, tmp_path, f"time,rear,groom\n{ones}", "walk_scored.csv"), 0) == expected


def test_numbers_stay_numbers_and_names_of_a_run_are_taken(records, tmp_path):
    text = "recording,state,start_s,stop_s,probability\nwalk,3,0.5,1.0,0.9\nrun,1,0,1,0.9\n"
    found = of_file(records, tmp_path, text, "bouts.csv")
    assert found.called.labels == () and set(found.beside[0].labels[5:10]) == {3}
    (tmp_path / "names.json").write_text(json.dumps({"3": "rear"}))
    assert of_file(records, tmp_path, text, "bouts.csv").called.labels == ("rear", "state 1")


WRONG = {
    "recording,label,start,stop\nmonday,rear,0,1\n": "monday, which is no recording; there are walk, run",
    "recording,label,start,stop\nwalk,rear,5,6\n": "outside walk, which goes from 0 to 2",
    "recording,label,start,stop\nwalk,rear,1,0.5\n": "stops before",
    "recording,label,start,stop\nwalk,rear,0,1\nwalk,groom,0.5,2\n": "rear and groom overlap at 0.5 in walk",
    "recording,label,start,stop\nwalk,rear,x,1\n": "'x' as start in row 2",
    "label,start,stop\nrear,0,1\n": "does not say which recording",
    "recording,start,stop\nwalk,0,1\n": "no column of labels",
    "recording,label\nwalk,rear\n": "1 lines for walk, which has 20 frames",
    "recording,frame,label\nwalk,99,rear\n": "frame 99 of walk",
    "recording,label,start,stop\nwalk,,0,1\n": "name no frame",
    "recording,Behavior,Status,Time\nwalk,rear,START,1\n": "START of rear at 1 s and no STOP",
    "recording\n": "no rows",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_cannot_be_is_said_in_a_sentence(records, tmp_path, text):
    with pytest.raises(data.DataError, match=WRONG[text]):
        of_file(records, tmp_path, text)


def test_seconds_need_a_clock_and_short_bouts_are_told(records, tmp_path):
    text = "recording,label,start,stop\nwalk,rear,0,1\nwalk,jump,1.51,1.54\n"
    with pytest.raises(data.DataError, match="no frame rate"):
        of_file(records._replace(fps=None), tmp_path, text)
    found = of_file(records, tmp_path, text)
    assert found.called.labels == ("rear",) and any("jump" in note for note in found.notes)


def test_labels_go_with_their_frames(records):
    given = {"walk": [EMPTY] * 15 + ["b"] * 5, "run": ["a"] * 30}
    found = data.with_labels(records, given)
    table = windows(found, 8, 2)
    piece = data.batch(found, table, np.arange(len(table.first)))
    for row in range(len(table.first)):
        own = found.beside[table.recording[row]].labels[table.first[row] : table.last[row]]
        np.testing.assert_array_equal(piece.beside.labels[row][: len(own)], own)
        assert np.all(piece.beside.labels[row][len(own) :] == FREE)
    assert data.batch(records, table, np.arange(2)).beside == data.Beside() == of_windows((), 0, 0, 0, 0)
    ends = data.split(found, 0.25, 0)
    assert [len(one.labels) for one in (*ends.train.beside, *ends.test.beside)] == [15, 22, 5, 8]


def test_labelled_recordings_are_there_to_learn_from():
    many = svae.load([np.zeros((30, 2))] * 6, fps=FPS)
    for seed in range(8):
        plain = data.split(many, 0.2, seed).test.names
        marked = data.with_labels(many, {plain[0]: [0] * 30})
        assert plain[0] in data.split(marked, 0.2, seed).train.names
