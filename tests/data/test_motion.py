"""How an animal moves as a whole: slopes of known paths, noise that is left out, windows that do not matter."""

import dataclasses

import numpy as np
import pytest

from svae import data
from svae.config import Config
from svae.data import keypoints, motion
from svae.data.views import Floats

BODY = np.array([[4.0, 0.2], [3, 1], [3, -1], [0, 0], [-4, -0.1], [-3, 1.2]])
BODY = BODY - BODY.mean(0)  # so that its middle is where it turns
LENGTH = keypoints.body_length(BODY)


def rolled(speed, turning, noise=0.0, seed=0):
    """BODY (T, P, 2) that goes forward and turns by so much at each frame."""
    angle = np.cumsum(turning)
    turn = np.stack([np.stack([np.cos(angle), -np.sin(angle)], -1), np.stack([np.sin(angle), np.cos(angle)], -1)], 1)
    place = np.cumsum(speed[:, None] * turn[..., 0], 0)
    y = np.einsum("tij,pj->tpi", turn, BODY) + place[:, None]
    return y + noise * np.random.default_rng(seed).normal(size=y.shape)


def stop_and_go(T=600, bout=30, seed=0):
    """Speeds and turns that last for bouts, and the body that makes them."""
    rng = np.random.default_rng(seed)
    speed, turning = (np.repeat(rng.choice(values, T // bout), bout) for values in ([0.0, 0.5], [-0.05, 0.0, 0.05]))
    return speed, turning, rolled(speed, turning, 0.02)


def found(y):
    return data.find_preprocess(data.Recordings((Floats(y),), ("a",)), Config())


def test_speeds_are_those_of_the_path():
    speed, turning = np.full(50, 0.3), np.full(50, 0.02)
    y = rolled(speed, turning)
    got = motion.speeds(y, BODY, np.ones(y.shape[:2]), 2)
    np.testing.assert_allclose(got[:, 1], 0.02 / 2, rtol=1e-3)
    np.testing.assert_allclose(got[1:-1, 0], 0.3 / LENGTH, rtol=1e-2)


@pytest.mark.parametrize("seen", [np.s_[:, :2], np.s_[:, 3:]])
def test_speeds_do_not_depend_on_which_points_are_seen_or_where_the_camera_stands(seen):
    speed, turning, _ = stop_and_go()
    y = rolled(speed, turning)
    weights = np.zeros(y.shape[:2])
    weights[seen] = 1
    whole = motion.speeds(y, BODY, np.ones(y.shape[:2]), 2)
    np.testing.assert_allclose(motion.speeds(y, BODY, weights, 2), whole, atol=1e-9)
    turned = y @ np.array([[0.6, -0.8], [0.8, 0.6]]).T + [100.0, -30.0]
    np.testing.assert_allclose(motion.speeds(turned, BODY, np.ones(y.shape[:2]), 2), whole, atol=1e-9)


def test_the_last_row_tells_bouts_of_speed_and_of_turning():
    speed, turning, y = stop_and_go()
    p = found(y)
    z = p.apply(y)
    assert p.shape((6, 2)) == (7, 2) == z.shape[1:]
    assert np.corrcoef(z[:, -1, 0], speed)[0, 1] > 0.9 and np.corrcoef(z[:, -1, 1], turning)[0, 1] > 0.9
    assert data.Preprocess.from_dict(p.to_dict()) == p


def test_windows_do_not_matter():
    _, _, y = stop_and_go()
    p = found(y)
    seen = data.preprocessed(data.Recordings((Floats(y),), ("a",)), p).sequences[0]
    pieces = np.concatenate([seen[a : a + 7] for a in range(0, len(y), 7)])
    np.testing.assert_array_equal(pieces, p.apply(y).astype(np.float32))


def test_an_animal_that_stays_has_no_such_row():
    zeros = np.zeros(600)
    assert found(rolled(zeros, zeros, 0.05)).motion == ()


def test_a_gap_is_missing_and_a_single_frame_has_no_speed():
    _, _, y = stop_and_go()
    p = found(y)
    y[200:220] = np.nan
    z = p.apply(y)
    assert np.isnan(z[202:218, -1]).all() and np.isfinite(z[:198, -1]).all()
    assert np.isnan(p.apply(y[:1])[:, -1]).all()


def test_a_preprocessing_from_before_there_were_speeds_is_read():
    p = found(stop_and_go()[2])
    old = {name: value for name, value in p.to_dict().items() if name not in ("motion", "reach")}
    assert data.Preprocess.from_dict(old) == dataclasses.replace(p, motion=(), reach=0)
