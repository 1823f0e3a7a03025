"""Time on the command line: who is asked to end answers while it reads, and a forecast is measured."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import svae.data
from svae import cli, runs
from svae.cli import _cost
from svae.config import Config
from svae.data import recordings
from svae.runs._attended import left_behind

OPTIONS = {"model": "slds", "states": 2, "latent_dim": 2, "network": "affine", "batch_size": 2, "window": 20}


@pytest.fixture
def reading(monkeypatch):
    """A disk that never answers: an event that is set lets it go in the end."""
    free, begun = threading.Event(), threading.Event()

    def load(*_, **__):
        begun.set()
        free.wait(60)
        raise svae.data.DataError("nobody waits for this")

    monkeypatch.setattr(svae.data, "load_source", load)
    monkeypatch.setattr(cli, "_leave_work_behind", lambda code: None)  # it would end this process
    yield begun
    free.set()
    while left_behind():  # a verb that ends meanwhile would end this process
        time.sleep(0.01)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_is_answered_while_it_reads(reading, tmp_path, monkeypatch, capfd, number, code):
    monkeypatch.chdir(tmp_path)

    def send():
        reading.wait(60)
        os.kill(os.getpid(), number)

    threading.Thread(target=send).start()
    assert cli.main(["fit", "walk.npy"]) == code
    told = capfd.readouterr().err
    assert "saving and ending" in told and "svae: stopped by" in told and not list(tmp_path.iterdir())


def test_the_time_ends_while_it_reads(reading, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["fit", "walk.npy", "--max-time", "100ms"]) == 4
    assert "nothing was fitted" in capfd.readouterr().err and not list(tmp_path.iterdir())


def test_sigterm_ends_any_verb_with_a_sentence(monkeypatch, capsys):
    def load(*_, **__):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)

    monkeypatch.setattr(svae.data, "load", load)
    before = signal.getsignal(signal.SIGTERM)
    assert cli.main(["show", "walk.npy"]) == 143 and signal.getsignal(signal.SIGTERM) == before
    assert capsys.readouterr().err.startswith("svae: stopped by SIGTERM")


def test_warnings_of_the_compiler_stay_away_unless_they_are_asked_for(monkeypatch):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    cli.main(["--version"])
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3"
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    cli.main(["--version"])
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"


def test_a_forecast_takes_real_steps_and_its_parts_add_up():
    data = recordings([np.random.default_rng(i).normal(size=(60, 3)).cumsum(0) for i in range(4)])
    found = runs.forecast(data, Config(**OPTIONS, steps=50, patience=3, warmup_steps=10, target_duration=5.0))
    parts = found.compiling + found.reading + found.warm_up + found.states + found.answers + found.baselines
    assert found.most == pytest.approx(parts + found.fit, abs=0.01) and found.frames_in_a_step == 80
    assert found.fit >= 50 * (found.step - 0.0005) > 0 and parts < found.least < found.most  # a step in whole ms
    assert _cost.words(found, Config(**OPTIONS, steps=50, patience=3)).startswith("this will take ")


@pytest.mark.parametrize(
    ("least", "most", "words"),
    [
        (40.0, 80.0, "40 to 80 s"),
        (50.2, 50.4, "about 50 s"),
        (100.0, 250.0, "1.7 to 4.2 min"),
        (700.0, 1300.0, "12 to 22 min"),
        (3000.0, 9000.0, "0.8 to 2.5 h"),
    ],
)
def test_a_range_of_time_has_one_unit(least, most, words):
    assert _cost.span(least, most) == words
