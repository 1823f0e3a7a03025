import numpy as np
import pytest

from svae.cli._runs import frame_rate, new_folder, stem
from svae.cli._values import assignments, duration, whole_frames
from svae.config import ConfigError
from svae.data import Recordings


@pytest.mark.parametrize(
    ("text", "seconds"), [("400ms", 0.4), ("0.4s", 0.4), (".5 S", 0.5), ("2min", 120.0), ("1h", 3600.0), ("1e1s", 10.0)]
)
def test_times_become_frames_by_the_rate(text, seconds):
    assert duration(text, "--x").frames(30.0, "--x") == pytest.approx(30 * seconds)
    assert duration(text, "--x").seconds(30.0) == pytest.approx(seconds)


def test_frames_need_no_rate():
    assert duration("12frames", "--x").frames(None, "--x") == 12 == whole_frames("12 frames", None, "--x")
    assert duration("12frames", "--x").seconds(24.0) == 0.5 and duration("12frames", "--x").seconds(None) == 12
    with pytest.raises(ConfigError, match="give --fps"):
        duration("1s", "--x").frames(None, "--x")


@pytest.mark.parametrize("text", ["", "400", "-3s", "s", "4 parsecs", "1e999s", "nan s", "1s2", "0x3s"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ConfigError, match="--start"):
        duration(text, "--start")
    with pytest.raises(ConfigError, match="at least 1"):
        whole_frames("1ms", 30.0, "--horizon")


def test_assignments_are_toml_or_text():
    given = [
        "states=20",
        "hidden=[64, 32]",
        "network=conv",
        "learning_rate = 1e-2",
        "missing=true",
        'likelihood="poisson"',
    ]
    assert assignments(given) == {
        "states": 20,
        "hidden": [64, 32],
        "network": "conv",
        "learning_rate": 0.01,
        "missing": True,
        "likelihood": "poisson",
    }


def test_the_rate_is_given_or_found_from_times():
    y = (np.zeros((5, 2)),)
    assert frame_rate(Recordings(y, ("a",), 25.0)) == 25.0
    assert frame_rate(Recordings(y, ("a",), None, (np.arange(5) / 50,))) == pytest.approx(50)
    assert frame_rate(Recordings(y, ("a",))) is None


def test_folders_get_names_that_are_free(tmp_path):
    assert new_folder(tmp_path / "a") == tmp_path / "a"
    (tmp_path / "a").mkdir(), (tmp_path / "a-2").mkdir()
    assert new_folder(tmp_path / "a") == tmp_path / "a-3"
    assert stem("day1/*.csv") == "day1" and stem("x/walk.npy") == "walk"
