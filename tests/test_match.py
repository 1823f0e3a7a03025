"""A model keeps the names, unit and rate of its data, and other recordings are matched with it by name."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import svae
from svae import data, store
from svae.cli import main
from svae.data import Layout

OLD = Path(__file__).parent / "old"  # a run of format 1, made before models knew names
NAMES = ("nose", "left_ear", "right_ear", "tail")


def mouse(tmp_path, names=NAMES, order=(0, 1, 2, 3), scale=1.0, extra=""):
    """The recording of the old run, its points renamed, reordered, scaled, or with another column."""
    y = svae.load(OLD / "mouse.csv").sequences[0][:][:, order] * scale
    head = [f"{names[i]}_{a}" for i in order for a in "xy"] + ([extra] if extra else [])
    rows = [[f"{v:.9g}" for v in frame.ravel()] + (["1"] if extra else []) for frame in y]
    path = tmp_path / "new.csv"
    path.write_text("\n".join(",".join(row) for row in [head, *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def old():
    return store.load_model(OLD / "run" / "model")


@pytest.fixture(scope="module")
def model(old):
    """The same model as a fit makes it today."""
    from svae.model import with_layout

    return with_layout(old, data.layout_of(svae.load(OLD / "mouse.csv")))


def states(model, path):
    return np.asarray(svae.segment(model, svae.load(path)).labels[0])


def test_a_model_of_format_1_is_read_and_answers_as_it_did(old, tmp_path):
    assert old.layout == Layout() and json.loads((OLD / "run/model/manifest.json").read_text())["format"] == 1
    expected = svae.runs.Run(OLD / "run").posterior("mouse")
    svae.runs.apply(old, svae.load(OLD / "mouse.csv"), tmp_path / "out")
    found = svae.runs._posterior.read_posterior(tmp_path / "out" / "posterior" / "mouse.nc")
    np.testing.assert_array_equal(found.state, expected.state)
    np.testing.assert_allclose(found.probability, expected.probability, atol=1e-5)


def test_names_unit_and_rate_are_kept_in_the_model(model, tmp_path):
    assert model.layout == Layout(NAMES, "", None, (4, 2))
    store.save(model, tmp_path / "m")
    assert json.loads((tmp_path / "m/manifest.json").read_text())["format"] == 2
    assert store.load_model(tmp_path / "m").layout == model.layout


def test_a_fit_gives_its_model_the_layout_of_its_data():
    y = svae.load({"a": svae.load(OLD / "mouse.csv").sequences[0]}, fps=30)
    made = svae.make((4, 2), model="gaussian", latent_dim=2, steps=1, warmup_steps=1, network="affine")
    *_, last = svae.fit(made, y)
    assert last.model.layout == Layout(NAMES, "", 30.0, (4, 2))


def test_points_in_another_order_keep_their_states(model, tmp_path):
    before = states(model, OLD / "mouse.csv")
    np.testing.assert_array_equal(states(model, mouse(tmp_path, order=(3, 1, 0, 2))), before)
    other = ("Nose", "leftEar", "Right ear", "tail")
    np.testing.assert_array_equal(states(model, mouse(tmp_path, names=other, order=(2, 3, 1, 0))), before)
    found = data.matched(svae.load(mouse(tmp_path, order=(3, 1, 0, 2))), model.layout)
    assert found.notes == ["Points or columns are put into the order of the model, by name."]


def test_other_points_are_refused_with_their_names_and_matched_on_demand(model, tmp_path):
    path = mouse(tmp_path, names=("snout", "left_ear", "right_ear", "tail"))
    with pytest.raises(
        svae.DataError, match=r"lack nose of the model; the data have snout besides.*--match nose=snout"
    ):
        states(model, path)
    found = data.renamed(svae.load(path), {"snout": "nose"})
    np.testing.assert_array_equal(svae.segment(model, found).labels[0], states(model, OLD / "mouse.csv"))
    with pytest.raises(svae.DataError, match="no point or column 'paw'"):
        data.renamed(found, {"paw": "nose"})


def test_points_that_the_model_does_not_have_are_named_and_left_aside(model):
    y = svae.load(OLD / "mouse.csv").sequences[0]
    more = np.concatenate([y[:] * 0 + 7, y[:]], 1)
    names = ("a", "b", "c", "d", *NAMES)
    view = data.views.Floats(more, kind="keypoints", points=names)
    found = data.matched(svae.load({"m": view}), model.layout)
    np.testing.assert_array_equal(found.data.sequences[0][:], y[:])
    assert found.notes == [
        "The model has no a, b, c, d, left aside.",
    ]


def test_points_without_names_are_matched_by_position_if_there_are_as_many(model, old):
    y = svae.load(OLD / "mouse.csv").sequences[0][:]
    assert "taken to be nose, left_ear" in data.matched(svae.load(y), model.layout).notes[0]
    with pytest.raises(svae.DataError, match="for 4 points, the data have 8 without names"):
        svae.segment(model, np.concatenate([y, y], 1))
    assert "has no names" in data.matched(svae.load(OLD / "mouse.csv"), old.layout).notes[0]


def test_another_unit_and_another_rate_are_said():
    y = data.views.Floats(np.zeros((5, 4, 2)), kind="keypoints", points=NAMES, unit="mm")
    found = data.matched(svae.load({"m": y}, fps=60), Layout(NAMES, "px", 30.0, (4, 2)))
    assert "are in mm but the model was fitted in px" in found.notes[0]
    assert "60 frames per second but the model was fitted at 30; states last 2 times" in found.notes[1]


@pytest.fixture(scope="module")
def run(tmp_path_factory, model):
    """The old run with a model that knows names."""
    path = tmp_path_factory.mktemp("match") / "run"
    shutil.copytree(OLD / "run", path)
    store.save(model, path / "model")
    return path


def test_apply_matches_by_name_and_says_what_it_did(run, tmp_path, capsys):
    out = str(tmp_path / "out")
    assert main(["apply", str(run), str(mouse(tmp_path, order=(3, 1, 0, 2), extra="stim")), "--out", out]) == 0
    said = capsys.readouterr().err
    assert "order of the model, by name" in said and "the column stim is left aside" in said
    path = str(mouse(tmp_path, names=("snout", "left_ear", "right_ear", "tail")))
    assert main(["apply", str(run), path, "--out", out]) == 3
    assert "--match nose=snout" in capsys.readouterr().err
    assert main(["apply", str(run), path, "--out", out, "--match", "nose=snout"]) == 0
    found = svae.runs._posterior.read_posterior(tmp_path / "out" / "posterior" / "new.nc")
    np.testing.assert_array_equal(found.state, svae.runs.Run(run).posterior("mouse").state)


@pytest.mark.parametrize("verb", ["apply", "score"])
def test_a_recording_in_other_units_is_said_to_be_far(verb, run, tmp_path, capsys):
    options = ["--out", str(tmp_path / "out")] if verb == "apply" else ["--samples", "1"]
    assert main([verb, str(run), str(mouse(tmp_path, scale=0.4)), *options]) == 0
    said = capsys.readouterr().err
    assert "new: its body is 0.41 times as long" in said
    assert main([verb, str(run), str(mouse(tmp_path)), *options]) == 0
    assert "times as long" not in capsys.readouterr().err


def test_check_compares_with_a_run_and_recordings_with_each_other(run, tmp_path, capsys):
    assert main(["check", str(mouse(tmp_path, scale=0.4)), "--run", str(run), "--figure", str(tmp_path / "a.png")]) == 0
    assert "new: its body is 0.41 times as long" in capsys.readouterr().out
    shutil.copy(OLD / "mouse.csv", tmp_path / "a.csv"), shutil.copy(OLD / "mouse.csv", tmp_path / "b.csv")
    assert main(["check", f"{tmp_path}/*.csv", "--figure", str(tmp_path / "a.png")]) == 0
    assert "new: its body is 0.4 times as long as in the other recordings" in capsys.readouterr().out
