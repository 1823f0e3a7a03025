"""A latent graph that one file adds, of two chains at once, walked through every verb of the command line."""

import csv
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.io import netcdf_file

from svae.cli import main
from svae.cli._examples import EXAMPLES
from svae.runs import Run, rename, write_labels
from tests.cli.processes import ROOT
from tests.view.conftest import Served

MODULE = '''
def walkers(sizes):
    """Limbs and a tail, each with states of its own."""
    chain = {"block": "markov", "concentration": sizes.concentration}
    return {
        "limbs": chain | {"states": 3},
        "tail": chain | {"states": 2},
        "x": {"block": "dynamics", "dimensions": sizes.latent_dim, "add": ["limbs", "tail"]},
    }
'''
SMALL = ["--model", "walkers", "--latent-dim", "2", "--fps", "10"]
SMALL += ["--set", "warmup_steps=0", "--set", "network=affine", "--steps", "3"]
FREE = ("doctor", "bench", "demo", "paper")  # verbs without a latent model of one's own


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The one file, installed: a module, and what an installer writes beside it."""
    path = tmp_path_factory.mktemp("package")
    (path / "walking.py").write_text(MODULE)
    (path / "walking-1.0.dist-info").mkdir()
    (path / "walking-1.0.dist-info" / "entry_points.txt").write_text("[svae.pgms]\nwalkers = walking:walkers\n")
    sys.path.insert(0, str(path))
    yield path
    sys.path.remove(str(path))
    sys.modules.pop("walking", None)


@pytest.fixture(scope="module")
def folder(package, tmp_path_factory):
    """Six recordings of two chains whose offsets add, and a run of the graph on them."""
    path, rng = tmp_path_factory.mktemp("walks"), np.random.default_rng(0)
    offsets = rng.normal(size=(3, 4)), rng.normal(size=(2, 4))
    walks = {}
    for i in range(6):
        limbs, tail = (np.repeat(rng.integers(0, K, 16), 5) for K in (3, 2))
        walks[f"walk{i}"] = 3 * (offsets[0][limbs] + offsets[1][tail]) + 0.1 * rng.normal(size=(80, 4))
    walks["walk0"][30:33, 1] = np.nan
    (path / "walks").mkdir()
    for name, y in walks.items():
        np.save(path / "walks" / f"{name}.npy", y)
    lines = ["recording,group", *(f"{name},{'ab'[i % 2]}" for i, name in enumerate(walks))]
    (path / "animals.csv").write_text("\n".join(lines))
    before = os.getcwd()
    os.chdir(path)
    assert main(["fit", "walks", *SMALL, "--out", "run", "--json"]) == 0
    yield path
    os.chdir(before)


@pytest.fixture
def told(folder, capsys):
    """Run a verb to its end; what it printed, as JSON."""

    def run(*words):
        capsys.readouterr()
        code = main([*words, "--json"])
        answer = capsys.readouterr()
        assert code == 0, answer.err
        return json.loads(answer.out)

    return run


def variables(file):
    with netcdf_file(str(file), mmap=False) as found:
        return {name: np.array(v.data) for name, v in found.variables.items()}


def rows(file):
    return list(csv.DictReader(file.read_text().splitlines()))


def test_every_verb_is_walked():
    here = Path(__file__).read_text()
    walked = set(re.findall(r'told\("(\w+)"', here)) | {"fit", "view"}
    assert walked == set(EXAMPLES) - set(FREE)


def test_models_and_check(told):
    (row,) = told("models", "walkers")["models"]
    assert row["words"] == "Limbs and a tail, each with states of its own." and "limbs" in row["tables"]
    found = told("check", "walks", "--fps", "10")
    assert found["recordings"][0]["frames"] == 80 and found["components"]["in_words"].startswith("The first ")
    assert found["components"]["shares"][found["components"]["enough"] - 1] >= 0.9


def test_the_run_folder_has_a_part_for_each_block(folder):
    run = Run(folder / "run")
    assert run.blocks == {"limbs": 3, "tail": 2}
    assert {row["block"] for row in rows(run.path / "bouts.csv")} == {"limbs", "tail"}
    states = rows(run.path / "states.csv")
    wanted = [("limbs", s) for s in "012"] + [("tail", s) for s in "01"]
    assert [(row["block"], row["state"]) for row in states] == wanted
    for name in run.blocks:
        assert sum(int(row["frames"]) for row in states if row["block"] == name) == 480
    found = variables(run.answers("walk0"))
    assert found["state_probability"].shape == (80, 3) and found["state_probability_tail"].shape == (80, 2)
    np.testing.assert_array_equal(run.of("tail").states("walk0"), found["state_tail"])


def test_show_and_watch(told):
    shown = told("show", "run")
    assert [(row["block"], row["states"]) for row in shown["blocks"]] == [("limbs", 3), ("tail", 2)]
    assert {row["block"] for row in shown["states_one_by_one"]} == {"limbs", "tail"}
    assert told("watch", "run")["running"] is False


def test_apply_and_score(told, folder):
    run = Run(folder / "run")
    write_labels(run.path, run.labels().with_block("tail", rename(run.of("tail").labels(), 1, "up")))
    assert run.of("tail").names == {1: "up"} and run.names == {}
    told("apply", "run", "walks", "--fps", "10", "--out", "again")
    for name in ("posterior/walk3.nc", "bouts.csv", "names.json"):
        assert (folder / "again" / name).read_bytes() == (run.path / name).read_bytes()
    assert np.isfinite(told("score", "run", "walks", "--fps", "10")["bound"])


def test_forecast_sample_and_impute(told, folder):
    told("forecast", "run", "walks", "--horizon", "5frames", "--samples", "4", "--fps", "10", "--out", "ahead")
    found = variables(folder / "ahead" / "walk1.nc")
    assert found["state"].shape == found["state_tail"].shape == (4, 5) and found["state_tail"].max() < 2
    told("sample", "run", "--length", "7frames", "--samples", "2", "--out", "drawn.nc")
    assert variables(folder / "drawn.nc")["state_tail"].shape == (2, 7)
    told("impute", "run", "walks", "--fps", "10", "--samples", "4", "--starts", "2", "--out", "filled")
    filled = variables(folder / "filled" / "walk0.nc")
    assert np.isfinite(filled["frames"]).all() and (filled["sd"][30:33, 1] > 0).all()


@pytest.mark.parametrize("to", ["csv", "netcdf", "nwb", "parquet"])
def test_export(told, folder, to):
    if to in ("nwb", "parquet"):
        pytest.importorskip({"nwb": "h5py", "parquet": "pyarrow"}[to])
    told("export", "run", "--to", to, "--out", f"out-{to}")
    assert {row["block"] for row in rows(folder / f"out-{to}" / "bouts.csv")} == {"limbs", "tail"}
    if to == "csv":
        table = rows(folder / "out-csv" / "walk2.csv")
        assert {"state", "state_name", "state_tail", "state_name_tail", "probability_tail_1"} <= set(table[0])
    if to == "nwb":
        import h5py

        with h5py.File(folder / "out-nwb" / "walk2.nwb") as file:
            assert {"bouts", "bouts_tail"} <= set(file["intervals"])
            assert file["processing/behavior/state_probability_tail/data"].shape == (80, 2)
    if to == "netcdf":
        with netcdf_file(str(folder / "out-netcdf" / "walk2.nc"), mmap=False) as file:
            assert file.variables["state_tail"].flag_meanings == b"state_0 up"


def test_report_and_movies(told, folder):
    told("report", "run")
    page, figures = (folder / "run/report/report.html").read_text(), folder / "run/report/figures"
    assert "States of limbs" in page and "States of tail" in page and "up of tail" in page
    names = {file.name for file in figures.iterdir()}
    assert {"usage.png", "usage-tail.png", "model.png"} <= names
    assert any(name.startswith("state-tail-") for name in names)
    pytest.importorskip("av")
    made = {os.path.basename(row["file"]) for row in told("movies", "run", "--length", "1s")["movies"]}
    assert any(name.startswith("state-tail-") for name in made) and "recording-walk0.mp4" in made


def test_compare(told, folder):
    found = told("compare", "run", "--groups", "animals.csv")["blocks"]
    assert {one["block"] for one in found} <= {"limbs", "tail"} and found
    for one in found:
        assert (folder / "run/compare/group" / one["block"] / "usage.csv").exists()


def test_compare_says_what_it_takes(folder, capsys):
    assert main(["compare", "run", "run"]) == 2
    assert "svae compare takes RUN alone; 'run' has no place." in capsys.readouterr().err


def test_baselines_rerun_and_sweep(told, folder):
    assert "baselines" in told("baselines", "run")
    told("rerun", "run", "--out", "run-again")
    for name in ("bouts.csv", "states.csv"):
        assert (folder / "run-again" / name).read_bytes() == (folder / "run" / name).read_bytes()
    told("sweep", "walks", *SMALL, "--target-duration", "400ms,600ms", "--out", "sweep")
    assert len(rows(folder / "sweep" / "leaderboard.csv")) == 2


def test_view(folder, package):
    pytest.importorskip("starlette")
    path = os.pathsep.join([str(package), str(ROOT)])
    with Served(Run(folder / "run"), PYTHONPATH=path) as server:
        assert b"svae view" in server.ask("")
        run, tail = (json.loads(server.ask(f"api/run{words}")) for words in ("", "?block=tail"))
        assert [b["name"] for b in run["blocks"]] == ["limbs", "tail"]
        assert run["block"] == "limbs" and len(run["states"]) == 3
        assert tail["block"] == "tail" and len(tail["states"]) == 2
        assert not {s["colour"] for s in run["states"]} & {s["colour"] for s in tail["states"]}
        assert b"state_tail" in server.ask("api/window?recording=0&first=0&last=80&bins=40")
        server.tell("api/name", {"block": "tail", "state": 0, "name": "down"})
        assert Run(folder / "run").of("tail").names == {0: "down", 1: "up"} and Run(folder / "run").names == {}
