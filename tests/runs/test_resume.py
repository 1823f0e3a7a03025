"""A run that is stopped, killed, or robbed of its disk goes on and ends bit for bit as one that never was."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from svae import runs
from svae.config import Config
from svae.fitting import loop
from svae.runs import _checkpoints, _train
from svae.runs._attended import THREAD, Watch, left_behind
from svae.runs._folder import locked
from tests.runs.conftest import CONFIG, begin, fingerprint, walks

ROOT = Path(__file__).parents[2]


def at_step(number, act):
    """A progress that acts when a step has been taken, before the run folder hears of it."""

    def progress(steps, title):
        for step in steps:
            if step.step == number and step.bound == step.bound:
                act()
            yield step

    return progress


def sent(name):
    return lambda: os.kill(os.getpid(), getattr(signal, name))


@pytest.mark.parametrize(
    ("name", "step", "error"),
    [
        ("SIGINT", 2, KeyboardInterrupt),
        ("SIGINT", 12, KeyboardInterrupt),
        ("SIGTERM", 4, SystemExit),
        ("SIGTERM", 23, SystemExit),
    ],
)
def test_a_signal_saves_and_the_resumed_run_ends_the_same(whole, tmp_path, name, step, error):
    run, before = begin(tmp_path / "run"), signal.getsignal(signal.SIGTERM)
    with pytest.raises(error) as caught:
        runs.train(run, walks(), progress=at_step(step, sent(name)))
    assert error is KeyboardInterrupt or caught.value.code == 143
    assert signal.getsignal(signal.SIGTERM) == before and run.provenance()["status"] == "stopped" and not run.running
    assert _checkpoints.steps(run.path)[-1:] == ([] if step == 2 else [step])  # the warm-up has no state
    assert (f"step {step - 3} of 20 is saved" if step > 3 else "no checkpoint yet") in runs.saved(run)
    assert fingerprint(runs.train(run, walks(), resume=True)) == fingerprint(whole)
    assert len(run.provenance()["sessions"]) == 2


def over(monkeypatch):
    """The time is over from now on, but for the answers."""
    return lambda: monkeypatch.setattr(Watch, "is_over", lambda self: self.reserve >= 0)


def test_time_over_gives_answers_and_can_go_on(whole, tmp_path, monkeypatch):
    """Between two measurements: the end is measured, and the step goes on as if it had not been."""
    with monkeypatch.context() as patch:
        run = runs.train(begin(tmp_path / "run"), walks(), progress=at_step(8, over(patch)))
    end = run.metrics()[-1]
    assert run.provenance()["status"] == "time over" and run.bouts()
    assert (end["phase"], end["step"]) == ("end", 8) and end["held_out"] is not None
    assert "the time is over after 5 of 20 steps" in (run.path / "log.txt").read_text()
    assert "the model and all its answers" in runs.saved(run)
    assert fingerprint(runs.train(run, walks(), resume=True)) == fingerprint(whole)


def test_a_fit_cut_before_its_first_measurement_gives_what_it_has_become(tmp_path, monkeypatch):
    """With patience the model of the start was given back, and nobody was told."""
    config = Config.make(CONFIG.to_dict() | {"patience": 3, "steps": 200, "natural_step": 0.3})
    run = runs.start(tmp_path / "run", walks(), config)
    with monkeypatch.context() as patch:
        runs.train(run, walks(), progress=at_step(18, over(patch)))
    start, end = (next(line for line in run.metrics() if line["phase"] == phase) for phase in ("start", "end"))
    log = (run.path / "log.txt").read_text()
    assert ("The model of the start is kept" in log) == (end["held_out"] <= start["held_out"])
    assert run.held_out() == max(start["held_out"], end["held_out"])
    begun = _checkpoints.newest(run.path).arrays["best.q.x.normal.m"]  # of the checkpoint: the start
    is_start = np.array_equal(np.asarray(run.model().q.x.normal.m), begun)
    assert is_start == (end["held_out"] <= start["held_out"])


@pytest.mark.parametrize(("step", "phase"), [(2, "warm-up"), (3, "states")])
def test_time_over_before_the_start_leaves_a_folder_that_goes_on(whole, tmp_path, monkeypatch, step, phase):
    """Nothing can be labelled by then, and the run says so."""

    def progress(steps, title):
        for told in steps:
            if told.step == step and told.phase == phase and told.share != 1.0:
                over(patch)()
            yield told

    with monkeypatch.context() as patch:
        run = runs.train(begin(tmp_path / "run"), walks(), progress=progress)
    assert run.provenance()["status"] == "time over" and not (run.path / "model").exists()
    assert "before there was a model to label with" in (run.path / "log.txt").read_text()
    assert ("the warm-up is saved" if phase == "states" else "no checkpoint yet") in runs.saved(run)
    phases = []

    def seen(steps, title):
        for told in steps:
            phases.append(told.phase)
            yield told

    assert fingerprint(runs.train(run, walks(), resume=True, progress=seen)) == fingerprint(whole)
    assert ("warm-up" in phases) == (phase == "warm-up")


def test_a_limit_keeps_the_time_of_the_answers_and_changes_nothing_else(whole, tmp_path):
    run = runs.train(begin(tmp_path / "run"), walks(), max_time=1e6)
    assert (run.path / "log.txt").read_text().count("s, which are kept for them") == 1
    assert fingerprint(run) == fingerprint(whole)


def test_time_over_in_the_middle_of_the_first_step_labels_with_the_start(tmp_path, monkeypatch, capfd):
    """As when it compiles: no step is taken, and nobody takes the answers for those of a fit."""
    monkeypatch.setattr(_train, "GRACE", 0.3)
    waiting, original = threading.Event(), loop.take_all

    def stuck(*arguments):
        patch.setattr(Watch, "is_over", lambda self: self.reserve >= 0)
        waiting.wait(60)
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "take_all", stuck)
        run = runs.train(begin(tmp_path / "run"), walks())
    waiting.set()
    assert run.provenance()["status"] == "time over" and len(run.bouts()) > 0
    assert "the time is over after 0 of 20 steps; what was going on is left behind" in capfd.readouterr().err
    begun = _checkpoints.newest(run.path)
    assert begun.step == 3 and np.array_equal(np.asarray(run.model().q.x.normal.m), begun.arrays["best.q.x.normal.m"])


def test_time_over_while_it_labels_keeps_the_answers_so_far(whole, tmp_path, monkeypatch):
    def progress(steps, title):
        for told in steps:
            yield told
            if told.phase == "labels" and told.step >= 60:  # the first two of five recordings
                patch.setattr(Watch, "is_over", lambda self: True)

    with monkeypatch.context() as patch:
        run = runs.train(begin(tmp_path / "run"), walks(), progress=progress)
    assert run.provenance()["status"] == "time over" and not (run.path / "bouts.csv").exists()
    assert "the time was over before all was labelled" in (run.path / "log.txt").read_text()
    assert "with the answers for 2 of 5 recordings" in runs.saved(run)
    assert fingerprint(runs.train(run, walks(), resume=True)) == fingerprint(whole)


def test_work_that_does_not_come_back_is_left_behind_and_its_last_step_is_saved(whole, tmp_path, monkeypatch):
    """As when a compiler takes minutes: the thread that answers does not wait for it."""
    monkeypatch.setattr(_train, "GRACE", 0.3)
    waiting, number = threading.Event(), 9
    original = loop.batch_at

    def stuck(data, config, i):
        if i == number and not waiting.is_set():
            sent("SIGTERM")()
            waiting.wait(60)
        return original(data, config, i)

    monkeypatch.setattr(loop, "batch_at", stuck)
    run = begin(tmp_path / "run")
    with pytest.raises(SystemExit):
        runs.train(run, walks())
    assert left_behind() and run.provenance()["status"] == "stopped" and not run.running
    assert f"step {_checkpoints.steps(run.path)[-1] - 3} of 20 is saved" in runs.saved(run)
    before = (run.path / "metrics.jsonl").read_bytes()
    waiting.set()
    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join(60)
    assert not left_behind() and (run.path / "metrics.jsonl").read_bytes() == before
    assert fingerprint(runs.train(run, walks(), resume=True)) == fingerprint(whole)


def test_kill_minus_nine_and_a_line_cut_in_half(whole, tmp_path):
    """A real process, killed while it takes steps; what it leaves is gone on with here."""
    run = begin(tmp_path / "run")
    settings = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(Path(sys.prefix) / ".cache" / "jax")}
    code = (
        "import jax; jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.0);"
        "jax.config.update('jax_persistent_cache_min_entry_size_bytes', -1);"
        "from tests.runs.conftest import walks; from svae import runs;"
        f"runs.train(runs.Run({str(run.path)!r}), walks())"
    )
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=settings)
    while len(run.metrics()) < 9 and child.poll() is None:
        time.sleep(0.005)
    child.kill()
    child.wait()
    with open(run.path / "metrics.jsonl", "ab") as stream:
        stream.write(b'{"step": 22, "pha')
    assert len(run.metrics()) >= 9 and run.provenance()["status"] == "running" and not run.running
    assert fingerprint(runs.train(run, walks(), resume=True)) == fingerprint(whole)


def test_a_damaged_checkpoint_is_passed_over(whole, tmp_path):
    shutil.copytree(whole.path, tmp_path / "run")
    newest = max((tmp_path / "run" / "checkpoints").glob("step-*"))
    (newest.parent / "step-00000020").mkdir()  # a save that was killed before its manifest
    (file,) = newest.glob("*.safetensors")
    file.write_bytes(file.read_bytes()[:-1] + b"\xee")
    shutil.rmtree(tmp_path / "run" / "model")
    again = runs.train(runs.Run(tmp_path / "run"), walks(), resume=True)
    assert again.provenance()["sessions"][-1]["after_step"] == 21 and fingerprint(again) == fingerprint(whole)
    assert len(list(newest.parent.iterdir())) == 4
    for manifest in (tmp_path / "run" / "checkpoints").glob("step-*/manifest.json"):
        manifest.write_text("{}")
    with pytest.raises(runs.RunError, match=r"no checkpoint .* is whole"):
        runs.train(again, walks(), resume=True)


def test_a_second_writer_is_refused_by_name(whole, tmp_path):
    run = begin(tmp_path / "run")
    with locked(run.path):
        assert run.running
        with pytest.raises(runs.RunError, match=f"written by process {os.getpid()} on "):
            runs.train(run, walks())
    assert not run.running
    with pytest.raises(runs.RunError, match="holds a run already"):
        begin(tmp_path / "run")
    with pytest.raises(runs.RunError, match="trained before"):
        runs.train(whole, walks())
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("x")
    with pytest.raises(runs.RunError, match="thesis"):
        begin(tmp_path / "other")


def test_a_start_that_was_killed_can_be_started_again(tmp_path):
    begin(tmp_path / "run")
    os.unlink(tmp_path / "run" / "provenance.json")
    (tmp_path / "run" / ".provenance.json.1.tmp").write_text("{")
    assert not runs.is_run(tmp_path / "run")
    assert begin(tmp_path / "run").config == CONFIG


def test_other_data_another_config_and_another_machine(whole, tmp_path):
    shutil.copytree(whole.path, tmp_path / "run")
    run = runs.Run(tmp_path / "run")
    other = walks()
    other.sequences[2][0, 0] += 1e-9
    with pytest.raises(runs.RunError, match="other data than walk 2"):
        runs.train(run, other, resume=True)
    with pytest.raises(runs.RunError, match="5 recordings, not 1"):
        runs.train(run, [other.sequences[0]], resume=True)
    written = (run.path / "config.toml").read_text()
    (run.path / "config.toml").write_text(Config.make(CONFIG.to_dict() | {"seed": 6}).to_toml())
    with pytest.raises(runs.RunError, match="changed after the run began"):
        runs.train(run, walks(), resume=True)
    (run.path / "config.toml").write_text(written)
    file = run.path / "provenance.json"
    file.write_text(file.read_text().replace('"threads": ', '"threads": 9'))
    with pytest.warns(UserWarning, match=r"may differ in its last bits .*: threads 9\d+ -> \d+"):
        assert fingerprint(runs.train(run, walks(), resume=True)) == fingerprint(whole)


def test_a_full_disk_is_one_sentence_and_the_run_goes_on(whole, tmp_path):
    run = begin(tmp_path / "run")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    full = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1500, hard))  # noqa: E731
    try:
        with pytest.raises(runs.RunError, match="could not be written") as caught:
            runs.train(run, walks(), progress=at_step(10, full))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "\n" not in str(caught.value) and _checkpoints.newest(run.path).step == 9
    assert fingerprint(runs.train(run, walks(), resume=True)) == fingerprint(whole)


def test_a_folder_that_cannot_be_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(runs.RunError, match="could not be written"):
        begin(tmp_path / "file" / "run")
    with pytest.raises(runs.RunError, match="could not be written"):
        begin("/proc/run")


def test_data_are_read_again_and_must_be_the_same(tmp_path):
    np.save(tmp_path / "walk.npy", walks().sequences[0])
    from svae.data import load

    data = load(tmp_path / "walk.npy", fps=10.0)
    run = runs.start(tmp_path / "run", data, CONFIG, source={"path": tmp_path / "walk.npy", "fps": 10.0})
    again = run.load_data()
    assert again.names == data.names and again.fps == 10.0
    np.testing.assert_array_equal(np.asarray(again.sequences[0]), walks().sequences[0])
    np.save(tmp_path / "walk.npy", walks().sequences[0] + 1)
    with pytest.raises(runs.RunError, match="other data"):
        run.load_data()
    with pytest.raises(runs.RunError, match="in memory"):
        begin(tmp_path / "memory").load_data()
