"""A grid of fits: the plan, the leaderboard of finished ones, and (slowly) fits that are stopped and go on."""

import csv
import json
import shlex
import shutil
import signal
import subprocess

import numpy as np
import pytest

from svae import runs
from svae.cli import main
from svae.cli._examples import EXAMPLES
from svae.config import Config
from svae.data import recordings
from svae.runs import Posterior, RunError
from svae.runs._attended import Watch
from svae.runs._posterior import bouts, write_bouts, write_posterior
from svae.runs._session import Session, close
from svae.runs._signals import Stop
from svae.sweep import Plan, grid, leaderboard, read_plan, write_plan
from svae.sweep._grid import neighbours
from tests.cli.processes import command, environment, svae
from tests.cli.test_examples import SMALL, wait_for_steps

PLAN = Plan(
    {"states": [2, 4], "latent_dim": [1, 2, 3], "target_duration": ["400ms"]}, {"model": "hmm"}, {"path": "y.npy"}
)


def finished(folder, config, states, held_out):
    """A run as a fit leaves it, with these states of its one recording."""
    data = recordings({"walk": np.zeros((len(states), 2), np.float32)}, fps=10.0)
    run = runs.start(folder, data, config)
    flat, time = np.zeros((len(states), 1)), np.arange(len(states)) / 10
    found = Posterior(time, states, np.ones((len(states), 4)), flat, flat, flat[:, 0])
    (run.path / "posterior").mkdir()
    write_posterior(run.path / "posterior" / "walk.nc", "walk", found, clock=True)
    write_bouts(run.path, list(bouts("walk", found)))
    lines = [{"step": i, "held_out": value, "seconds": 2.0 * i, "states_in_use": 4} for i, value in enumerate(held_out)]
    (run.path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    close(Session(run.path, 0.0, 0.0, Watch(Stop())), "finished")
    return run


@pytest.fixture
def swept(tmp_path):
    """Four fits that are done: of two and four states, with one and two latent dimensions."""
    plan = PLAN._replace(axes=PLAN.axes | {"latent_dim": [1, 2]})
    write_plan(tmp_path / "sweep", plan)
    four = np.repeat([0, 1, 2, 3, 0, 1, 2, 3], 5)
    for i, (name, point) in enumerate(grid(plan).items()):
        config = Config(
            model="hmm", states=point["states"], latent_dim=point["latent_dim"], target_duration=4.0, patience=2
        )
        states = four if point["states"] == 4 else four % 2
        finished(tmp_path / "sweep" / name, config, states, [-3.0, 0.5 - i, None, -5.0])
    return tmp_path / "sweep"


def test_the_grid_is_the_product_of_its_axes_and_neighbours_are_one_step_apart():
    names = list(grid(PLAN))
    assert names[0] == "states2-latent1-400ms" and len(names) == len(set(names)) == 6
    pairs = neighbours(PLAN)
    assert len(pairs) == 7  # 3 across, 2 along each of two rows
    assert ("states2-latent1-400ms", "states2-latent3-400ms") not in pairs


def test_a_plan_is_read_back_and_a_folder_with_other_things_is_left_alone(tmp_path):
    write_plan(tmp_path / "new", PLAN)
    assert read_plan(tmp_path / "new") == PLAN
    with pytest.raises(RunError, match="--resume"):
        write_plan(tmp_path / "new", PLAN)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.txt").write_text("all of it")
    with pytest.raises(RunError, match=r"thesis\.txt"):
        write_plan(tmp_path / "thesis", PLAN)
    with pytest.raises(RunError, match="not the folder of a sweep"):
        read_plan(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"axes": {"states": ["../../etc"]}},
        {"axes": {"target_duration": [".."]}},
        {"axes": {"seed": [1]}},
        {"axes": {}},
        {"options": {"shell": "rm"}},
        {"options": None},
        {"source": {}},
        {"format": 7},
        {"max_time": "long"},
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(change, tmp_path):
    write_plan(tmp_path / "new", PLAN)
    text = json.loads((tmp_path / "new" / "sweep.json").read_text()) | change
    (tmp_path / "new" / "sweep.json").write_text(json.dumps(text))
    with pytest.raises(RunError, match="damaged"):
        read_plan(tmp_path / "new")


def test_the_leaderboard_has_the_best_bound_first(swept):
    rows = leaderboard(swept, read_plan(swept))
    assert [row["held_out"] for row in rows] == [0.5, -0.5, -1.5, -2.5], "the best of each, as patience keeps it"
    first, last = rows[0], rows[-1]
    assert first["run"] == "states2-latent1-400ms" and first["states_in_use"] == 2 and last["states_in_use"] == 4
    assert first["target_s"] == 0.4 and first["median_bout_s"] == pytest.approx(0.5) and first["seconds"] == 6.0
    assert first["agreement"] == pytest.approx((1 + leaderboard_ari()) / 2)
    assert first["behind_best"] is None, "an older run does not say how its bound varies"


def leaderboard_ari():
    """Of two states against four, from the pairs of frames that are together in both."""
    sklearn = pytest.importorskip("sklearn.metrics")
    four = np.repeat([0, 1, 2, 3, 0, 1, 2, 3], 5)
    return sklearn.adjusted_rand_score(four, four % 2)


def test_resuming_a_finished_sweep_ranks_it_and_fits_nothing(swept, capsys):
    """Its data may be gone."""
    before = {file: file.stat().st_mtime_ns for file in swept.rglob("*") if file.is_file()}
    assert main(["sweep", "--resume", "--out", str(swept), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["best"] == str(swept / "states2-latent1-400ms") and len(told["leaderboard"]) == 4
    assert all(file.stat().st_mtime_ns == before[file] for file in before)
    with open(swept / "leaderboard.csv", newline="") as stream:
        assert [row["run"] for row in csv.DictReader(stream)] == [row["run"] for row in told["leaderboard"]]
    assert (swept / "sweep.png").stat().st_size > 20_000 and (swept / "sweep.pdf").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["y.npy"], 2, "needs values of --states"),
        ([], 2, "needs the data"),
        (["y.npy", "--states", "3,x"], 2, "whole numbers"),
        (["y.npy", "--states", "0"], 2, "at least 1"),
        (["y.npy", "--states", ","], 2, "needs values such as"),
        (["y.npy", "--target-duration", "3"], 2, "a unit"),
        (["y.npy", "--target-duration", "3s,4frames"], 2, "mixes"),
        (["y.npy", "--states", "3", "--set", "states=4"], 2, "leave one of them out"),
        (["y.npy", "--states", "3", "--set", "lerning_rate=1"], 2, "did you mean"),
        (["absent.npy", "--states", "3"], 3, "absent.npy"),
        (["--resume"], 2, "needs the folder"),
        (["--resume", "--out", "absent"], 4, "not the folder of a sweep"),
        (["--resume", "--out", "absent", "--states", "3"], 2, "leave out states"),
    ],
)
def test_wrong_use_is_one_sentence_and_writes_nothing(arguments, code, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("y.npy", np.random.default_rng(0).normal(size=(50, 3)))
    assert main(["sweep", *arguments]) == code
    told = capsys.readouterr().err
    assert told.startswith("svae: ") and told.count("\n") == 1 and words in told
    assert [file.name for file in tmp_path.iterdir()] == ["y.npy"]


# --- with fits ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path, rng = tmp_path_factory.mktemp("walk"), np.random.default_rng(0)
    y = 3 * rng.normal(size=(3, 5))[np.repeat(rng.integers(0, 3, 12), 10)] + 0.5 * rng.normal(size=(120, 5))
    np.save(path / "walk.npy", y.astype(np.float32))
    return path


@pytest.mark.slow
def test_the_example_fits_each_point_and_what_is_missing_is_fitted_again(folder):
    example = [*shlex.split(EXAMPLES["sweep"])[1:], *SMALL]
    done = svae(*example, "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["leaderboard"]
    assert {row["run"] for row in told} == {"states3-400ms", "states4-400ms"}
    kept, gone = folder / "runs/sweep/states3-400ms/model", folder / "runs/sweep/states4-400ms"
    before, arrays = kept.stat().st_mtime_ns, (gone / "model" / "manifest.json").read_bytes()
    shutil.rmtree(gone)
    again = svae("sweep", "--resume", "--out", "runs/sweep", folder=folder)
    assert again.returncode == 0 and "fit 1 of 1: states4-400ms" in again.stderr
    assert kept.stat().st_mtime_ns == before and (gone / "model" / "manifest.json").read_bytes() == arrays


@pytest.mark.slow
def test_ctrl_c_saves_and_resume_ends_as_if_never_stopped(folder):
    """The fit that was stopped goes on from its checkpoint, the rest follow, and all parameters are the same."""
    sweep = ["sweep", "walk.npy", "--fps", "30", "--model", "hmm", "--states", "3,4", "--latent-dim", "2", *SMALL]
    sweep += ["--set", "steps=400", "--set", "patience=400", "--json"]
    stopped = subprocess.Popen(
        command(*sweep, "--out", "stopped"), cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True
    )
    wait_for_steps(folder / "stopped/states3-latent2/metrics.jsonl", stopped)
    stopped.send_signal(signal.SIGINT)
    told = stopped.communicate(timeout=120)[1]
    assert stopped.returncode == 130 and "svae sweep --resume --out stopped" in told and "Traceback" not in told
    assert runs.Run(folder / "stopped/states3-latent2").provenance()["status"] == "stopped"
    assert svae("sweep", "--resume", "--out", "stopped", folder=folder).returncode == 0
    assert svae(*sweep, "--out", "whole", folder=folder).returncode == 0
    for name in ("states3-latent2", "states4-latent2"):
        one, other = (folder / out / name / "model" / "manifest.json" for out in ("stopped", "whole"))
        assert one.read_bytes() == other.read_bytes()
