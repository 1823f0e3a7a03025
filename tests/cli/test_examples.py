"""From a file to answers over real processes: the examples of the docs, beside one small recording."""

import json
import re
import shlex
import signal
import subprocess
import time
import warnings

import numpy as np
import pytest
from scipy.io import netcdf_file

from svae.cli import main
from svae.cli._examples import EXAMPLES
from svae.runs import Run
from tests.cli.processes import command, environment, svae

LONG = ("bench", "demo", "paper")
# The example's model, small: it is fitted for a few steps only.
SMALL = ["--steps", "6", "--set", "warmup_steps=0", "--set", "network=affine"]


def example(name, folder, *more):
    """Run the example of a verb; what it printed, as JSON."""
    done = svae(*shlex.split(EXAMPLES[name])[1:], *more, "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def variables(file):
    with netcdf_file(str(file), mmap=False) as found:
        return {name: np.array(v.data) for name, v in found.variables.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """walk.npy, three states of 10 frames each with gaps, and the run that the example of `fit` makes of it."""
    path, rng = tmp_path_factory.mktemp("walk"), np.random.default_rng(0)
    y = 3 * rng.normal(size=(3, 5))[np.repeat(rng.integers(0, 3, 12), 10)] + 0.5 * rng.normal(size=(120, 5))
    y[50:53], y[5, 2] = np.nan, np.nan
    np.save(path / "walk.npy", y.astype(np.float32))
    told = example("fit", path, *SMALL)
    assert told["status"] == "finished" and told["frames_per_second"] == 30 and told["bouts"] >= 1
    return path


def test_fit_writes_a_run_that_says_what_was_asked(folder):
    run = Run(folder / "runs" / "walk")
    assert run.config.target_duration == 12 and run.config.states == 4 and run.config.missing
    assert run.provenance()["command"][:3] == ["svae", "fit", "walk.npy"]
    found = run.posterior("walk")
    assert np.allclose(np.diff(found.time), 1 / 30) and np.isfinite(found.mean).all()


def test_a_second_fit_does_not_touch_the_first(folder):
    done = svae(*shlex.split(EXAMPLES["fit"])[1:], *SMALL, folder=folder)
    assert done.returncode == 4 and "holds a run already" in done.stderr and "Traceback" not in done.stderr


def test_check_looks_at_gaps_and_draws(folder):
    told = example("check", folder)
    assert told["recordings"][0]["empty_frames"] == 3 and told["recordings"][0]["missing_%"] == pytest.approx(2.667)
    assert told["forecast"]["memory_gb"] > 0.1 and 0 < told["forecast"]["least"] <= told["forecast"]["most"]
    assert (folder / "check.png").stat().st_size > 10_000


def test_show_and_watch_tell_how_it_stands(folder):
    assert example("show", folder)["status"] == "finished"
    assert example("watch", folder)["running"] is False
    live = svae("watch", "runs/walk", folder=folder)  # no process writes it: one picture, then the end
    assert live.returncode == 0 and "finished" in live.stdout
    shown = svae("show", "walk.npy", folder=folder)
    assert "120" in shown.stdout and "float32" in shown.stdout


def test_baselines_are_told_with_the_fit_and_again(folder, monkeypatch, capsys):
    shown = example("show", folder)
    monkeypatch.chdir(folder)
    assert main([*shlex.split(EXAMPLES["baselines"])[1:], "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["baselines"]) == 4 and np.isfinite(list(told["baselines"].values())).all()
    assert told["held_out"] == shown["held_out"] and "PCA + AR-HMM" in shown["held_out_of_others"]
    before = {row["name"]: row["held_out"] for row in shown["baselines"]}
    assert before == pytest.approx(told["baselines"], rel=1e-3)


def test_apply_gives_the_training_segmentation_again(folder):
    assert example("apply", folder)["recordings"] == ["walk"]
    again, first = variables(folder / "walk-states/posterior/walk.nc"), Run(folder / "runs/walk").posterior("walk")
    assert np.array_equal(again["state"], first.state) and np.array_equal(again["latent_mean"], first.mean)
    assert (folder / "walk-states/bouts.csv").read_text() == (folder / "runs/walk/bouts.csv").read_text()


def test_score_is_the_bound_of_each_recording(folder):
    told = example("score", folder)
    assert told["bound"] == pytest.approx(told["recordings"][0]["bound"]) and told["frames"] == 120


def test_forecast_begins_after_its_start(folder):
    told = example("forecast", folder)
    found = variables(folder / "walk-forecast/walk.nc")
    assert found["samples"].shape == (20, 15, 5) and found["time"][0] == pytest.approx(76 / 30)
    assert (found["low"] <= found["high"]).all() and told["recordings"][0]["known_frames"] == 15
    late = svae("forecast", "runs/walk", "walk.npy", "--start", "9s", "--horizon", "1s", folder=folder)
    assert late.returncode == 3 and "it ends at" in late.stderr


def test_sample_draws_recordings(folder):
    assert example("sample", folder)["frames"] == 60
    assert variables(folder / "walk-samples.nc")["frames"].shape == (3, 60, 5)


def test_impute_fills_gaps_only(folder):
    assert example("impute", folder)["recordings"][0]["filled"] == 16
    found, y = variables(folder / "walk-filled/walk.nc"), np.load(folder / "walk.npy")
    assert np.isfinite(found["frames"]).all() and np.array_equal(found["frames"][~np.isnan(y)], y[~np.isnan(y)])
    assert ((found["sd"] > 0) == np.isnan(y)).all()


def test_impute_writes_csv_in_the_units_of_the_file(folder):
    done = svae(*shlex.split(EXAMPLES["impute"])[1:-1], "walk-csv", "--to", "csv", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    told, y = json.loads(done.stdout), np.load(folder / "walk.npy")
    assert told["recordings"] == [{"recording": "walk", "frames": 120, "filled": 16, "frames_placed_between": 0}]
    table = np.genfromtxt(folder / "walk-csv/walk.csv", delimiter=",", skip_header=1)
    assert np.isfinite(table).all() and np.allclose(table[~np.isnan(y)], y[~np.isnan(y)], rtol=1e-5)
    assert len((folder / "walk-csv/filled.csv").read_text().splitlines()) == 17


def test_show_has_a_row_for_each_state(folder):
    told = example("show", folder)
    rows = told["states_one_by_one"]
    assert any(row["found_again"] is not None for row in rows) and "3 other starts" in told["found_again"][0]
    assert sum(row["frames_%"] for row in rows) == pytest.approx(100)
    missing = sum(row["frames_%"] * row["frames_with_missing_%"] for row in rows) / 100
    assert missing == pytest.approx(100 * 4 / 120, abs=0.01) and rows[0]["confidence"] is None
    shown = svae("show", "runs/walk", folder=folder)
    assert "frames_with_missing_%" in shown.stdout and "states_one_by_one" not in shown.stdout


def test_rerun_ends_with_the_same_parameters(folder):
    told = example("rerun", folder)
    assert told["identical"] is True and told["largest_difference"] == 0
    assert Run(folder / "runs/walk-again").config == Run(folder / "runs/walk").config


def test_export_as_csv_holds_the_posterior(folder):
    example("export", folder)
    table = np.genfromtxt(folder / "walk-tables/walk.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    found = Run(folder / "runs/walk").posterior("walk")
    assert np.array_equal(table["state"], found.state) and np.allclose(table["latent_0"], found.mean[:, 0])
    assert np.allclose(table["time_s"], found.time) and table["state_name"][0] == f"state {found.state[0]}"


def test_export_as_parquet_and_netcdf(folder, capsys):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    for kind in ("parquet", "netcdf"):
        assert main(["export", str(folder / "runs/walk"), "--to", kind, "--out", str(folder / kind)]) == 0
    found = Run(folder / "runs/walk").posterior("walk")
    assert np.allclose(pandas.read_parquet(folder / "parquet/walk.parquet")["probability_0"], found.probability[:, 0])
    assert np.array_equal(variables(folder / "netcdf/walk.nc")["state"], found.state)


def test_export_as_nwb_is_valid_by_pynwb(folder, capsys):
    pynwb = pytest.importorskip("pynwb")
    assert main(["export", str(folder / "runs/walk"), "--to", "nwb", "--out", str(folder / "nwb")]) == 0
    run, file = Run(folder / "runs/walk"), str(folder / "nwb/walk.nwb")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert pynwb.validate(path=file) == []
        with pynwb.NWBHDF5IO(file, "r") as stream:
            read = stream.read()
            series = read.processing["behavior"]["latent_mean"]
            assert np.array_equal(series.data[:], run.posterior("walk").mean)
            assert np.array_equal(series.timestamps[:], run.posterior("walk").time)
            bouts = read.intervals["bouts"].to_dataframe()
    assert bouts["state"].tolist() == [bout.state for bout in run.bouts()]


def test_ctrl_c_saves_and_resume_goes_on(folder):
    arguments = shlex.split(EXAMPLES["fit"])[1:-1]
    endless = ["--set", "steps=100000", "--set", "patience=100000"]
    long = [*arguments, "runs/stopped", *SMALL, *endless]
    fitting = subprocess.Popen(command(*long), cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True)
    wait_for_steps(folder / "runs/stopped/metrics.jsonl", fitting)
    fitting.send_signal(signal.SIGINT)
    told = fitting.communicate(timeout=120)[1]
    assert fitting.returncode == 130 and "svae fit --resume --out runs/stopped" in told and "Traceback" not in told
    before = Run(folder / "runs/stopped").metrics()[-1]["step"]
    assert re.search(
        r"Ctrl-C: saving and ending.*\n(.*\n)*svae: step \d+ of 100000 is saved in runs/stopped; go on", told
    )
    more = svae("fit", "--resume", "--out", "runs/stopped", "--max-time", "10ms", folder=folder)
    assert more.returncode == 4 and "the time was over while the recordings were read" in more.stderr
    again = subprocess.Popen(
        command("fit", "--resume", "--out", "runs/stopped"),
        cwd=folder,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    while Run(folder / "runs/stopped").metrics()[-1]["step"] <= before:
        assert again.poll() is None, again.communicate()[1]
        time.sleep(0.1)
    again.send_signal(signal.SIGTERM)
    told = again.communicate(timeout=120)[1]
    assert again.returncode == 143 and "SIGTERM: saving and ending" in told and "is saved in runs/stopped" in told
    other = svae("fit", "--resume", "--out", "runs/stopped", "--states", "3", folder=folder)
    assert other.returncode == 2 and "leave out states" in other.stderr


def wait_for_steps(file, process):
    for _ in range(1200):
        if file.exists() and file.read_text().count('"fit"') > 3:
            return
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.1)
    raise AssertionError("no step in two minutes")


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_long_examples(name, tmp_path):
    example(name, tmp_path)
