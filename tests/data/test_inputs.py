"""Inputs and groups from files and from memory, against what each frame should have."""

import numpy as np
import pytest

import svae
from svae import data
from svae.data.driven import inputs_in, inputs_matched, said_of_inputs, units_of_inputs, with_known_inputs

FPS = 10


@pytest.fixture
def records():
    return svae.load({"walk": np.zeros((20, 2)), "run": np.ones((30, 2))}, fps=FPS)


def of_file(records, folder, text, name="light.csv", read=data.load_inputs):
    file = folder / name
    file.write_text(text)
    return read(records, file)


def test_a_line_for_each_frame_change_or_recording(records, tmp_path):
    light = np.where(np.arange(30) < 12, 0.0, 30.0)
    lines = "".join(f"{name},{light[t]},{t}\n" for name, T in (("walk", 20), ("run", 30)) for t in range(T))
    each = of_file(records, tmp_path, "recording,light,dose\n" + lines)
    assert each.called.inputs == ("light", "dose")
    for i, T in enumerate((20, 30)):
        np.testing.assert_array_equal(each.beside[i].inputs, np.stack([light[:T], np.arange(T)], 1))
    changes = "recording,time_s,light\nwalk,0,0\nwalk,1.2,30\nrun,0,0\nrun,1.2,30\n"
    held = of_file(records, tmp_path, changes)
    np.testing.assert_array_equal(held.beside[1].inputs[:, 0], light)
    alone = of_file(records, tmp_path, "recording,drug,dose\nrun,saline,2\nwalk,drug,1\n")
    assert [set(one.inputs[:, 0]) for one in alone.beside] == [{1.0}, {2.0}]
    assert any("drug holds text" in note for note in alone.notes)


WRONG = {
    "recording,light\nmonday,1\n": "monday, which is no recording",
    "recording,light\nwalk,1\n": "no inputs of run",
    "recording,light\nwalk,1\nwalk,2\nrun,1\n": "2 lines for walk, which has 20 frames",
    "recording,drug\nwalk,yes\nrun,no\n": "no column of numbers",
    "recording,light\nwalk,1\nrun,nan\n": "'nan' as light in row 3",
    "recording,time_s,light\nwalk,1,0\nwalk,0,1\nrun,0,1\n": "goes back in time for walk",
    "recording,time_s,light\nwalk,9,0\nrun,0,1\n": "begins after the end of walk",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_cannot_be_is_said_in_a_sentence(records, tmp_path, text):
    with pytest.raises(data.DataError, match=WRONG[text]):
        of_file(records, tmp_path, text)


def test_inputs_go_with_their_frames_in_the_units_of_the_model(records):
    rng = np.random.default_rng(0)
    given = {"walk": rng.normal(5, 3, (20, 2)), "run": rng.normal(5, 3, (30, 2))}
    driven = data.with_inputs(records, given, names=["light", "dose"])
    by = units_of_inputs(driven)
    scaled = inputs_in(driven, by)
    every = np.concatenate([one.inputs for one in scaled.beside])
    np.testing.assert_allclose(every.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(every.std(0), 1, atol=1e-5)
    table = data.windows(scaled, 8, 2)
    piece = data.batch(scaled, table, np.arange(len(table.first)))
    for row in range(len(table.first)):
        own = scaled.beside[table.recording[row]].inputs[table.first[row] : table.last[row]]
        np.testing.assert_array_equal(piece.beside.inputs[row][: len(own)], own)
        assert not piece.beside.inputs[row][len(own) :].any()
    turned = inputs_matched(driven, ("dose", "light"))
    np.testing.assert_array_equal(turned.beside[0].inputs, driven.beside[0].inputs[:, ::-1])


def test_a_model_and_data_that_do_not_fit_each_other(records):
    driven = data.with_inputs(records, {"walk": [1.0], "run": [1.0]}, names=["dose"])
    with pytest.raises(data.DataError, match="takes 1 inputs at every frame and the data have none"):
        with_known_inputs(records, 1)
    with pytest.raises(data.DataError, match="have the inputs dose, the model has light"):
        inputs_matched(driven, ("light",))
    assert with_known_inputs(driven, 0).called.inputs == ()
    assert "dose is left aside" in said_of_inputs(driven, 0)[0] and "never changes" in said_of_inputs(driven, 1)[0]
    with pytest.raises(data.DataError, match="no input at frame 3"):
        data.with_inputs(records, [np.where(np.arange(T) == 3, np.nan, 0.0)[:, None] for T in (20, 30)])


def test_groups(records, tmp_path):
    found = of_file(records, tmp_path, "recording,cage,animal\nrun,1,m2\nwalk,1,m1\n", read=data.load_groups)
    assert [one.group for one in found.beside] == ["m1", "m2"]
    for text, words in {"animal\nm1\n": "no column called recording", "recording,animal\nrun,m2\n": "no group of walk",
                        "recording,animal\nrun,m2\nrun,m1\nwalk,m1\n": "several lines"}.items():  # fmt: skip
        with pytest.raises(data.DataError, match=words):
            of_file(records, tmp_path, text, read=data.load_groups)
