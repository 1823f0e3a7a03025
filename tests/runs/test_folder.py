"""What a finished run leaves, and that anybody can read it."""

import csv
import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.io import netcdf_file

from svae import runs
from svae.cli import main
from svae.config import Config
from svae.data import recordings, seconds
from tests.runs.conftest import CONFIG, walks

ROOT = Path(__file__).parents[2]


def test_it_holds_what_the_docs_say(whole):
    names = {p.name for p in whole.path.iterdir()}
    wanted = "config.toml model checkpoints metrics.jsonl posterior bouts.csv states.csv null.json provenance.json"
    assert names == {*wanted.split(), "scree.json", "log.txt", "lock"}
    assert whole.config == CONFIG == Config.from_toml((whole.path / "config.toml").read_text())
    assert all(
        f"{name} = " in (whole.path / "config.toml").read_text() for name in CONFIG.to_dict() if name != "latent"
    )
    kept = sorted(p.name for p in (whole.path / "checkpoints").iterdir())
    assert kept == ["best", "step-00000019", "step-00000021", "step-00000023"]
    assert whole.recordings() == walks().names and whole.names == {} and not whole.running


def test_metrics_have_each_step_once(whole):
    lines = [json.loads(line) for line in (whole.path / "metrics.jsonl").read_text().splitlines()]
    assert lines == whole.metrics()
    start = lines.pop(3)  # measured before the first step
    assert (start["phase"], start["step"], start["bound"]) == ("start", 3, None) and start["held_out"] < 0
    assert [line["step"] for line in lines] == list(range(1, 24))
    assert [line["phase"] for line in lines] == ["warm-up"] * 3 + ["fit"] * 20
    measured = [line["step"] for line in lines if line["held_out"] is not None]
    assert measured == list(range(5, 24, 2))
    keys = "step phase bound held_out states_in_use frames_per_second seconds note"
    keys = [*keys.split(), "log_likelihood", "local_kl", "global_kl", "weights_kl"]
    assert all([key for key in line if key not in ("labels", "blocks")] == keys for line in lines)
    assert all([line["step"] for line in lines if name in line] == measured for name in ("labels", "blocks"))


def test_provenance_says_where_it_came_from(whole):
    found = whole.provenance()
    assert found["status"] == "finished" and found["command"] == ["svae", "fit", "walks"] and found["seed"] == 5
    assert found["versions"]["jax"] and found["machine"]["device"].startswith("cpu") and found["machine"]["threads"] > 0
    assert found["peak_memory_bytes"] > 1e8 and found["wall_seconds"] > 0
    assert [d["frames"] for d in found["data"]] == [30, 31, 32, 33, 34] and all(
        len(d["sha256"]) == 64 for d in found["data"]
    )


def test_xarray_opens_the_posterior(whole):
    xarray = pytest.importorskip("xarray")
    for i, name in enumerate(whole.recordings()):
        found = whole.posterior(name)
        with xarray.open_dataset(whole.path / "posterior" / f"{name}.nc", engine="scipy") as opened:
            assert dict(opened.sizes) == {"time": 30 + i, "state_index": 3, "latent": 2}
            assert opened.attrs["recording"] == name and opened["time"].attrs["units"] == "s"
            for field, variable in zip(
                found[:6],
                ("time", "state", "state_probability", "latent_mean", "latent_sd", "reconstruction_error"),
                strict=True,
            ):
                np.testing.assert_array_equal(field, opened[variable].values)
                assert opened[variable].attrs["long_name"]
        np.testing.assert_array_equal(found.time, seconds(walks(), i))
        np.testing.assert_allclose(found.probability.sum(1), 1, atol=1e-5)
        assert np.isnan(found.error).sum() == (2 if i == 1 else 0)


def test_bouts_tile_every_recording(whole):
    for i, name in enumerate(whole.recordings()):
        bouts, found = [b for b in whole.bouts() if b.recording == name], whole.posterior(name)
        assert bouts[0].start == 0 and bouts[-1].stop == pytest.approx((30 + i) / 10)
        assert all(a.stop == b.start and a.state != b.state for a, b in itertools.pairwise(bouts))
        painted = np.concatenate([np.full(round((b.stop - b.start) * 10), b.state) for b in bouts])
        np.testing.assert_array_equal(painted, found.state)


def test_apply_gives_the_training_segmentation_together_or_alone(whole, tmp_path):
    model = whole.model()
    runs.apply(model, walks(), tmp_path / "all", labels=runs.Labels({0: "still"}, {1: 0}))
    alone = recordings({"walk 3": walks().sequences[3]}, fps=10.0)
    runs.apply(model, alone, tmp_path / "one")
    for file in (whole.path / "posterior").iterdir():
        assert file.read_bytes() == (tmp_path / "all" / "posterior" / file.name).read_bytes()
    one = tmp_path / "one" / "posterior" / "walk 3.nc"
    assert one.read_bytes() == (whole.path / "posterior" / one.name).read_bytes()
    assert (whole.path / "bouts.csv").read_text() == (tmp_path / "all" / "bouts.csv").read_text()
    assert json.loads((tmp_path / "all" / "names.json").read_text()) == {"0": "still", "merged": {"1": 0}}
    with pytest.raises(runs.RunError, match="answers of its own"):
        runs.apply(model, walks(), whole.path)


def test_states_that_people_merged_are_one_to_every_reader(whole, tmp_path):
    shutil.copytree(whole.path, tmp_path / "run")
    run, name = runs.Run(tmp_path / "run"), "walk 2"
    before, labels = run.posterior(name), runs.merge(run.labels(), [0, 2], into=2)
    runs.write_labels(run.path, runs.rename(labels, 2, "rear up"))
    found = run.posterior(name)
    np.testing.assert_array_equal(found.state, np.where(before.state == 0, 2, before.state))
    np.testing.assert_array_equal(run.states(name), found.state)
    together = np.stack([0 * before.probability[:, 0], before.probability[:, 1], before.probability[:, ::2].sum(1)], 1)
    np.testing.assert_allclose(found.probability, together, atol=1e-6)
    test_bouts_tile_every_recording(run)
    for kind in ("csv", "netcdf"):
        assert main(["export", str(run.path), "--to", kind, "--out", str(tmp_path / kind), "--json"]) == 0
        with open(tmp_path / kind / "bouts.csv", newline="") as stream:
            bouts = list(csv.DictReader(stream))
        assert [int(row["state"]) for row in bouts] == [b.state for b in run.bouts()]
        assert {row["state_name"] for row in bouts} <= {"rear up", "state 1"}
    with netcdf_file(tmp_path / "netcdf" / "walk 2.nc", mmap=False) as opened:
        np.testing.assert_array_equal(opened.variables["state"].data, found.state)
        assert opened.variables["state"].flag_meanings == b"state_0 state_1 rear_up"
        assert opened.variables["time"].units == b"s"
    (run.path / "names.json").write_text(json.dumps({"merged": {"0": 10**12, "7": 0}}))
    assert run.bouts() == whole.bouts() and (run.states(name) == before.state).all()
    runs.write_labels(run.path, runs.unmerge(run.labels(), 0))
    np.testing.assert_array_equal(run.posterior(name).state, before.state)


def test_reading_a_run_needs_no_jax(whole):
    read = f"r = Run({str(whole.path)!r}); r.metrics(); r.bouts(); r.posterior('walk 0'); r.config"
    code = f"import sys; from svae.runs import Run; {read}; print('jax' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True).strip() == "False"


def test_names_that_are_no_file_names(whole, tmp_path):
    y = walks().sequences[0]
    data = recordings({"../a/b": y, "a\\b": y, "": y, "naïve ☂": y, "x" * 500: y, "A": y, "a": y})
    runs.apply(whole.model(), data, tmp_path / "deep" / "out")
    files = {p.name for p in (tmp_path / "deep" / "out" / "posterior").iterdir()}
    assert len(files) == 7 and len({f.casefold() for f in files}) == 7
    assert {p.name for p in (tmp_path / "deep").iterdir()} == {"out"}
    assert runs._posterior.read_bouts(tmp_path / "deep" / "out")[0].recording == "../a/b"


@pytest.mark.parametrize("file", ["provenance.json", "config.toml", "bouts.csv", "posterior/walk 0.nc"])
def test_damage_is_one_sentence(whole, tmp_path, file):
    shutil.copytree(whole.path, tmp_path / "run")
    (tmp_path / "run" / file).write_bytes(b"\xff\x00{]")
    with pytest.raises(runs.RunError) as caught:
        run = runs.Run(tmp_path / "run")
        _ = run.config, run.bouts(), run.posterior("walk 0")
    assert "\n" not in str(caught.value)
    with pytest.raises(runs.RunError, match="not a run folder"):
        runs.Run(tmp_path)
