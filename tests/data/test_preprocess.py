"""Preprocessing: theorems about alignment and resizing, and what `find` chooses."""

import dataclasses
import json

import numpy as np
import pytest

from svae import data
from svae.config import Config
from svae.data import images, keypoints
from svae.data.views import Floats

NAMES = ("nose", "left ear", "right ear", "spine", "tail base", "rear paw")
BODY = np.array([[4.0, 0.2], [3, 1], [3, -1], [0, 0], [-4, -0.1], [-3, 1.2]])


def turn(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def animal(T=400, seed=0, noise=0.05, body=BODY):
    """A body that walks where it looks: points (T, P, 2), headings and places."""
    rng = np.random.default_rng(seed)
    heading = np.cumsum(rng.normal(size=T) * 0.1)
    place = np.cumsum(np.stack([np.cos(heading), np.sin(heading)], 1), 0)
    y = np.einsum("tij,pj->tpi", np.stack([turn(a) for a in heading]), body) + place[:, None]
    return y + noise * rng.normal(size=y.shape), heading, place


def found(y, names=(), **options):
    records = data.Recordings((Floats(y, points=names),), ("a",))
    return data.find_preprocess(records, Config.make({"preprocess": "auto", **options}))


@pytest.mark.parametrize("names", [(), NAMES])
def test_keypoints_come_to_rest_in_the_frame_of_the_body_with_its_head_to_the_right(names):
    y, _, _ = animal()
    p = found(y, names)
    z = p.apply(y)
    assert p.kind == "keypoints" and p.shape((6, 2)) == z.shape[1:] == (6, 2)
    assert z.std(0).max() < 0.15 < y.std(0).min()
    mean = z.mean(0)
    assert mean[0, 0] > 3 and mean[4, 0] < -3 and mean[1, 1] * mean[2, 1] < 0
    distances = lambda y: np.linalg.norm(y[:, :, None] - y[:, None], axis=-1)  # noqa: E731
    np.testing.assert_allclose(distances(z), distances(y), atol=1e-4)


def test_alignment_does_not_see_where_the_animal_is_or_looks():
    y, _, _ = animal(100)
    p = found(y)
    moved = y @ turn(1.7).T + [300.0, -20.0]
    np.testing.assert_allclose(p.apply(moved), p.apply(y), atol=1e-4)


def test_alignment_is_frame_by_frame_so_windows_do_not_matter():
    y, _, _ = animal(100)
    p = found(y)
    np.testing.assert_array_equal(np.concatenate([p.apply(y[:33]), p.apply(y[33:])]), p.apply(y))


def test_missing_points_stay_missing_and_do_not_move_the_others():
    y, _, _ = animal(noise=0.0)
    p = found(y)
    gappy = y.copy()
    gappy[::3, 0] = np.nan
    gappy[5, 1:] = np.nan
    z, whole = p.apply(gappy), p.apply(y)
    assert np.isnan(z[::3, 0]).all() and np.isnan(z[5]).all()
    seen = np.isfinite(z)
    assert seen.sum() == np.isfinite(gappy).sum() - 2  # the one point alone of frame 5 has no frame of reference
    np.testing.assert_allclose(z[seen], whole[seen], atol=1e-3)


def test_the_reference_is_found_with_a_third_of_the_points_missing():
    y, _, _ = animal(1000)
    y[np.random.default_rng(1).random(y.shape[:2]) < 0.33] = np.nan
    z = found(y).apply(y)
    assert np.nanstd(z, 0).max() < 0.3


def test_corners_of_the_room_are_left_out():
    y, _, _ = animal()
    corners = np.array([[0.0, 0], [50, 0]]) + 0.01 * np.random.default_rng(0).normal(size=(400, 2, 2))
    p = found(np.concatenate([corners, y], 1))
    assert p.keep == (2, 3, 4, 5, 6, 7) and p.shape((8, 2)) == (6, 2)


ROOM = np.array([[0.0, 0], [300, 0], [300, 200], [0, 200], [150, 100]])  # four corners and the centre


def in_a_room(T=300):
    """An animal that visits all of a room whose corners are tracked, noise apart."""
    y, _, place = animal(T, noise=0.0)
    low, high = place.min(0), place.max(0)
    y = y - place[:, None] + ((place - low) / (high - low) * [300, 200])[:, None]
    corners = ROOM + 0.01 * np.random.default_rng(0).normal(size=(T, 5, 2))
    return np.concatenate([corners, y], 1)


def test_tracked_corners_tell_how_far_the_body_and_its_front_are_from_a_wall():
    y = in_a_room()
    p = found(y, ("tl", "tr", "br", "bl", "centre", *NAMES))
    z = p.apply(y)
    far = keypoints.body_length(np.array(p.body))
    distance = lambda xy: np.clip(np.minimum(xy, [300, 200] - xy).min(-1), -far, far)  # noqa: E731
    assert sorted(p.room) == [0, 1, 2, 3] and z.shape[1:] == p.shape((11, 2)) == (7, 2)
    np.testing.assert_allclose(z[:, 6, 0], distance(y[:, 5:].mean(1)), atol=0.1)
    np.testing.assert_allclose(z[:, 6, 1], distance(y[:, 5]), atol=0.1)
    assert z[:, 6].std(0).min() > 0.5


def test_the_place_does_not_see_where_the_camera_stands_and_bears_corners_that_are_missing():
    y = in_a_room()
    p = found(y)
    np.testing.assert_allclose(p.apply(y @ turn(2.1).T + [-40.0, 900.0]), p.apply(y), atol=1e-2)
    gappy = y.copy()
    gappy[::2, 1] = np.nan
    np.testing.assert_allclose(p.apply(gappy), p.apply(y), atol=0.1)


def test_points_in_line_are_no_room_and_a_height_has_no_wall():
    y = in_a_room()
    line = np.concatenate([y[:, [0, 1]], (y[:, :1] + y[:, 1:2]) / 2, y[:, 5:]], 1)
    line[:, :3, 1] = 0.0
    assert found(line).room == ()
    tall = np.concatenate([y, np.ones((300, 11, 1))], -1)
    z = found(tall).apply(tall)
    assert z.shape == (300, 7, 3) and (z[:, 6, 2] == 0).all()


def test_distances_are_of_the_body_alone_and_its_place_comes_last():
    y = in_a_room()
    p, aligned = found(y, preprocess="distances"), found(y)
    z, points = p.apply(y), y[:, 5:]
    assert z.shape[1:] == p.shape((11, 2)) == (6 * 5 // 2 + 2, 1) and p.room == aligned.room
    far = keypoints.body_length(np.array(p.body))
    between = np.linalg.norm(points[:, 0] - points[:, 5], axis=-1)
    np.testing.assert_allclose(np.exp(z[:, 4, 0] / far) - 0.05 * far, between, rtol=1e-4)
    np.testing.assert_allclose(z[:, -2:, 0], 5**0.5 * aligned.apply(y)[:, -1], rtol=1e-6)
    np.testing.assert_allclose(p.apply(y @ turn(0.4).T + [7.0, 9.0]), z, atol=1e-2)


def test_height_stays_and_only_the_ground_plane_turns():
    y, _, _ = animal()
    height = np.random.default_rng(0).normal(size=(400, 6, 1)) + 7
    z = found(np.concatenate([y, height], -1)).apply(np.concatenate([y, height], -1))
    assert z.shape == (400, 6, 3) and abs(z[..., 2].mean()) < 0.2
    np.testing.assert_allclose(z[..., 2] - z[..., 2].mean(), (height - height.mean())[..., 0], atol=1e-5)


def test_an_infinite_point_is_left_for_the_check_to_find():
    y, _, _ = animal(100)
    p = found(y)
    y[7, 2, 1] = np.inf
    with pytest.raises(data.DataError, match="infinite"):
        data.check(data.preprocessed(data.recordings(y), p))


@pytest.mark.parametrize(("before", "after"), [(80, 32), (33, 8), (10, 10), (7, 20), (1, 4)])
def test_resizing_keeps_constants_and_the_mean_on_the_way_down(before, after):
    rows = images.resampling(before, after)
    np.testing.assert_allclose(rows.sum(1), 1, atol=1e-5)
    if after <= before:
        np.testing.assert_allclose(rows.sum(0), after / before, atol=1e-5)
    y = np.random.default_rng(0).normal(size=(3, before, before)).astype(np.float32)
    z = images.resize(y, (after, after))
    assert z.shape == (3, after, after)
    if after <= before:
        np.testing.assert_allclose(z.mean((1, 2)), y.mean((1, 2)), atol=1e-5)


def test_resizing_by_a_whole_number_is_the_mean_of_blocks_and_ignores_missing_pixels():
    y = np.random.default_rng(0).normal(size=(2, 12, 8)).astype(np.float32)
    blocks = y.reshape(2, 4, 3, 4, 2)
    np.testing.assert_allclose(images.resize(y, (4, 4)), blocks.mean((2, 4)), atol=1e-6)
    y[0, :3, :2], y[1, 4, 5] = np.nan, np.nan
    expected = np.full((2, 4, 4), np.nan)
    expected = np.where(np.isnan(blocks).all((2, 4)), np.nan, np.nansum(blocks, (2, 4)) / np.maximum(1, np.isfinite(blocks).sum((2, 4))))  # fmt: skip  # noqa: E501
    np.testing.assert_allclose(images.resize(y, (4, 4)), expected, atol=1e-6)


def test_depth_is_clipped_at_percentiles_that_hot_pixels_do_not_move():
    rng = np.random.default_rng(0)
    y = rng.uniform(0, 60, (300, 80, 80)).astype(np.float32)
    y[rng.integers(300, size=20), 3, 3] = 5000
    records = data.Recordings((Floats(y, kind="depth"),), ("a",))
    p = data.find_preprocess(records, Config())
    assert p.kind == "depth" and p.size == (32, 32) and -1 < p.low < 2 and 58 < p.high < 61
    assert data.preprocessed(records, p).sequences[0][:].max() < 61


CHOICES = [
    ((5,), {}, "none"), ((30, 30), {}, "none"), ((64, 64), {}, "none"), ((100, 80), {}, "frames"),
    ((6, 2), {}, "keypoints"),
    ((6, 3), {}, "keypoints"), ((2, 2), {}, "none"), ((70, 70, 3), {}, "frames"), ((30, 30), {"size": 16}, "frames"),
    ((6, 3), {"preprocess": "distances"}, "distances"),
    ((6, 2), {"preprocess": "none"}, "none"), ((30, 30), {"preprocess": "frames"}, "frames"), ((4, 100), {}, "none"),
]  # fmt: skip


@pytest.mark.parametrize(("event", "options", "kind"), CHOICES)
def test_what_is_chosen_for_which_frames(event, options, kind):
    y = np.random.default_rng(0).normal(size=(30, *event))
    p = found(y, **options)
    assert p.kind == kind
    after = p.apply(y.astype(np.float32))
    assert after.shape[1:] == p.shape(event)
    if kind == "frames":
        assert max(p.size) == options.get("size", min(32, max(event))) and len(p.size) == 2
    assert data.Preprocess.from_dict(json.loads(json.dumps(p.to_dict()))) == p and hash(p) is not None


@pytest.mark.parametrize(
    ("event", "kind"), [((5,), "keypoints"), ((6, 4), "keypoints"), ((5,), "frames"), ((2, 2, 2), "depth")]
)
def test_a_kind_that_cannot_be_gets_one_sentence(event, kind):
    with pytest.raises(data.DataError, match=r"needs frames|needs images"):
        found(np.random.default_rng(0).normal(size=(9, *event)), preprocess=kind)


def test_frames_of_another_shape_than_fitted_get_one_sentence():
    p = found(animal()[0])
    for event in [(5, 2), (6, 3), (12,)]:
        with pytest.raises(data.DataError, match="keypoints are 6 points"):
            p.shape(event)
    with pytest.raises(data.DataError, match="needs images"):
        found(np.zeros((3, 99, 99)) + np.arange(99)).shape((5,))


NONE = data.Preprocess().to_dict()


@pytest.mark.parametrize(
    "values", [{}, {"kind": "none"}, {"kind": "exec"}, NONE | {"kind": "x"}, NONE | {"extra": 1}, NONE | {"size": 3}]
)
def test_nothing_but_a_preprocessing_is_read_back(values):
    with pytest.raises(ValueError, match="no preprocessing"):
        data.Preprocess.from_dict(values)


def test_a_preprocessing_from_before_there_was_a_place_is_read():
    p = found(animal(100)[0])
    old = {name: value for name, value in p.to_dict().items() if name not in ("room", "floor", "limits")}
    assert data.Preprocess.from_dict(old) == dataclasses.replace(p, limits=())


def test_rotation_of_the_body_itself_is_none():
    cos, sin = keypoints.rotation(BODY[None], BODY, np.ones((1, len(BODY))))
    np.testing.assert_allclose([cos[0], sin[0]], [1, 0], atol=1e-12)


def walking(frames=300, wild=0.03, seed=0):
    """A rigid body that walks and turns, with some points anywhere; and which they are."""
    rng = np.random.default_rng(seed)
    angle = np.cumsum(0.1 * rng.normal(size=frames))
    turn = np.stack([np.stack([np.cos(angle), -np.sin(angle)], -1), np.stack([np.sin(angle), np.cos(angle)], -1)], 1)
    place = np.cumsum(rng.normal(size=(frames, 2)), 0)
    frames = np.einsum("tij,pj->tpi", turn, BODY) + place[:, None]
    far = rng.random(frames.shape[:2]) < wild
    return np.where(
        far[..., None], rng.uniform(-300, 300, frames.shape), frames + 0.02 * rng.normal(size=frames.shape)
    ), far


def test_wild_points_are_missing_and_do_not_turn_the_frame():
    y, far = walking()
    clean, _ = walking(wild=0.0)
    p, without = found(y), found(clean)
    assert np.mean(p.wild(y)[far]) > 0.98 and np.mean(p.wild(y)[~far]) < 0.001
    apart = p.apply(y) - without.apply(clean)
    assert np.nanmax(np.abs(apart)) < 0.2
    assert np.isnan(p.apply(y)[far]).all()


def test_wild_shares_are_those_of_the_points():
    y, far = walking(wild=0.05)
    data_ = data.recordings(y)
    shares = data.wild_shares(data_, found(y))
    np.testing.assert_allclose(shares, far.mean(0), atol=0.03)
