"""The time scale of a process whose autocorrelation is known, and of recordings with hand labels."""

from pathlib import Path

import numpy as np
import pytest

from svae.data import mouse, recordings
from svae.data.timescale import BOUT, bout_frames

REAL = Path(__file__).parents[3] / "shared" / "data"


def autoregression(decay, *, T=20_000, P=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(T, P))
    for t in range(1, T):
        y[t] += decay * y[t - 1]
    return y


@pytest.mark.parametrize("lag", [5, 20])
def test_an_autoregression_forgets_at_its_own_lag(lag):
    assert bout_frames(recordings(autoregression(np.exp(-1 / lag)))) == pytest.approx(BOUT * lag, rel=0.2)


def test_actions_that_repeat_themselves_last_longer_than_their_period():
    rng, bouts = np.random.default_rng(0), 40
    hertz = np.repeat(rng.permutation(bouts) % 2 * 0.08 + 0.04, 150)  # per frame: a period is 8 or 25 frames
    phase = np.cumsum(2 * np.pi * hertz)
    y = np.c_[np.cos(phase), np.sin(phase), np.cos(phase + 1)] + 0.02 * rng.normal(size=(150 * bouts, 3))
    assert 2 * 25 < bout_frames(recordings(y)) <= 300  # half of the bouts follow one of their own kind


def test_units_constant_columns_and_gaps_change_nothing():
    y = autoregression(0.9)
    odd = np.c_[y * [1.0, 1e6, 1e-6], np.full(len(y), 7.0)]
    odd[::50, 0] = np.nan
    assert bout_frames(recordings(odd)) == pytest.approx(bout_frames(recordings(y)), rel=0.15)


@pytest.mark.parametrize("y", [np.zeros((1, 2)), np.ones((50, 2)), np.full((9, 1), np.nan)])
def test_data_without_a_time_scale_have_some(y):
    assert np.isfinite(bout_frames(recordings(y)))


def test_the_mouse_at_the_scale_of_its_actions():
    made = mouse(sequences=8, length=250, seed=0)
    found = bout_frames(recordings(list(made.y)))
    changes = np.sum(made.labels[:, 1:] != made.labels[:, :-1])
    assert found == pytest.approx(2000 / (changes + 8), rel=0.7)


def test_birdsong_at_the_scale_of_its_syllables():
    file = REAL / "birdsong" / "gy6or6_day1_logmel48.npz"
    if not file.exists():
        pytest.skip("the recordings are not here")
    with np.load(file) as song:
        y = np.split(song["logmel"].astype(np.float32), np.cumsum(song["length"])[:-1])
    assert 8 <= bout_frames(recordings(y)) <= 24  # syllables and gaps last 15 frames in the median
