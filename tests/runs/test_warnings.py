"""Warnings after a fit, and runs whose data have no frame rate: they count frames, and old ones are read."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from svae import runs
from svae.cli import main
from svae.config import Config
from svae.data import recordings
from svae.model import pgm_of
from svae.runs._posterior import Bout, read_bouts, write_bouts
from svae.runs._warnings import more_states, of_states, warnings_of

OLD = Path(__file__).parents[1] / "old" / "run"  # of format 1, without a frame rate


def line(bound):
    return {"held_out": bound}


def test_one_state_with_nearly_all_frames():
    assert "State 1 has 85 % of the frames" in warnings_of([0.15, 0.85, 0.0], [])[0]
    assert warnings_of([0.3, 0.7, 0.0], []) == [] == warnings_of([1.0], [])  # a model without states has one


def test_all_states_in_use():
    assert "All 3 states are in use" in warnings_of([0.3, 0.3, 0.4], [])[0]
    (said,) = of_states([0.3, 0.3, 0.4], more=6)
    assert said == "All 3 states are in use, so their number may be too small: try `--states 6`."
    assert of_states([0.3, 0.7, 0.0], more=6) == [] == of_states([1.0], more=2)


@pytest.mark.parametrize(
    ("options", "block", "wanted"),
    [
        ({"model": "slds"}, None, 20),  # 10 where the number was left open
        ({"model": "hmm", "states": 8}, None, 16),
        ({"model": "factorial", "states": 8}, "w", 16),  # half as many states in w
        ({"model": "hierarchical", "states": 8}, "mood", None),  # of which no option makes more
        ({"model": "vae"}, None, None),
        ({"model": "own", "latent": {"x": {"block": "normal", "dimensions": 2}}, "latent_dim": 2}, None, None),
    ],
)
def test_the_states_to_try_next_are_twice_as_many(options, block, wanted):
    config = Config.make(options)
    assert more_states(config, block) == wanted
    if wanted:
        sizes = [pgm_of(Config.make(options | {"states": n})).discrete for n in (wanted // 2, wanted)]
        name = block or next(iter(sizes[0]))
        assert sizes[1][name] == 2 * sizes[0][name]


@pytest.mark.parametrize(
    ("options", "states"),
    [({"model": "slds"}, 10), ({"model": "hmm", "states": 4}, 4), ({"model": "lds", "states": 4}, None)],
)
def test_a_table_says_how_many_states_there_are_or_that_there_are_none(options, states, tmp_path, capsys):
    runs.start(tmp_path / "run", recordings(np.ones((30, 2))), Config.make(options))
    assert main(["show", str(tmp_path / "run"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["states"] == states
    assert main(["show", str(tmp_path / "run")]) == 0
    (row,) = [line.split()[1:] for line in capsys.readouterr().out.splitlines() if line.split()[:1] == ["states"]]
    assert " ".join(row) == str(states or "none, since lds is a model without states")


@pytest.mark.parametrize(
    ("bounds", "rises"), [([-9, -5, -3, -1], True), ([-9, -2, -1.02, -1], False), ([-9, -1, -2], False)]
)
def test_a_bound_that_still_rises(bounds, rises):
    assert bool(warnings_of([0.5, 0.5, 0.0], [line(b) for b in [*bounds]] + [line(None)])) is rises


def test_bouts_without_a_clock_are_in_frames_and_come_back(tmp_path):
    found = [Bout("a", 0, 0.0, 12.0, 0.5, "frames"), Bout("a", 1, 12.0, 30.0, 0.5, "frames")]
    write_bouts(tmp_path, found)
    assert (tmp_path / "bouts.csv").read_text().splitlines()[:2] == [
        "recording,state,start_frame,stop_frame,probability",
        "a,0,0,12,0.5000",
    ]
    assert read_bouts(tmp_path) == found


def test_a_run_of_format_1_without_a_rate_is_read_in_frames():
    run = runs.Run(OLD)
    assert run.provenance()["format"] == 1 and {bout.unit for bout in run.bouts()} == {"frames"}
    assert [bout.stop for bout in run.bouts()] == [15, 30, 45, 60]
    assert any("All 2 states are in use" in warning for warning in run.warnings())


def test_export_show_and_compare_of_such_a_run_say_frames(tmp_path, capsys):
    run = shutil.copytree(OLD, tmp_path / "run")
    assert main(["show", str(run), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["median_bout_frames"] == 15 and shown["target_duration_frames"] == 12
    assert not [name for name in shown if name.endswith("_s")]
    assert main(["export", str(run), "--to", "csv", "--out", str(tmp_path / "out")]) == 0
    with open(tmp_path / "out" / "mouse.csv") as file:
        assert next(csv.reader(file))[0] == "frame"
    assert (tmp_path / "out" / "bouts.csv").read_text().startswith("recording,state,start_frame,stop_frame,")


@pytest.fixture
def walk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("walk.npy", np.random.default_rng(0).normal(size=(60, 3)).cumsum(0))
    np.save("one.npy", np.ones((1, 3)) * [[1, 2, 3]])
    return "walk.npy"


def test_a_fit_says_once_how_to_give_the_rate_and_refuses_more_states_than_frames(walk, capsys):
    few = ["--latent-dim", "2", "--steps", "2", "--set", "warmup_steps=2", "--set", "network=affine", "--states", "2"]
    assert main(["fit", walk, "--model", "hmm", *few, "--out", "run"]) == 0
    said = capsys.readouterr()
    assert said.err.count("--fps 30 gives it") == 1 and "median_bout_frames" in said.out
    assert Path("run/bouts.csv").read_text().startswith("recording,state,start_frame,stop_frame,")
    assert any("--fps 30" in note for note in runs.Run("run").provenance()["notes"])
    assert main(["fit", walk, "--model", "hmm", "--states", "3000", "--out", "more"]) == 2
    assert "3000 states for 60 frames" in capsys.readouterr().err and not Path("more").exists()
    assert main(["fit", "one.npy", "--model", "lds", "--out", "one"]) == 3
    assert "No recording has more than one frame, but lds is a model" in capsys.readouterr().err


def test_check_says_the_same(walk, capsys):
    assert main(["check", walk, "--states", "3000"]) == 2
    assert "3000 states for 60 frames" in capsys.readouterr().err
    assert main(["check", walk]) == 0
    said = capsys.readouterr()
    assert "--fps 30 gives it" in said.out and "longest_gap_frames" in said.out
