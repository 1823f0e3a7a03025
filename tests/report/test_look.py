"""Colours and pictures."""

import numpy as np
import pytest

from svae.report import _raster
from svae.report._bouts import examples, followed, stretches
from svae.report._look import _image, _points, _traces, paint, picture_width
from svae.report._palette import palette


def test_states_keep_their_colour_and_no_two_share_one():
    many = palette(64)
    assert np.array_equal(palette(5), many[:5]) and many.min() >= 0 and many.max() <= 1
    gaps = np.linalg.norm(many[:32, None] - many[None, :32], axis=-1) + 9 * np.eye(32)
    assert gaps.min() > 0.1 and len({tuple(c) for c in many}) == 64


def test_colours_stay_apart_for_a_deuteranope():
    """Viénot's projection in linear light."""
    linear = palette(12) ** 2.2
    seen = linear @ np.array([[0.29, 0.71, 0.0], [0.29, 0.71, 0.0], [-0.02, 0.02, 1.0]]).T
    gaps = np.linalg.norm(seen[:, None] - seen[None], axis=-1) + 9 * np.eye(12)
    assert gaps.min() > 0.03


@pytest.mark.parametrize("shape", [(20, 30), (16, 16, 1), (16, 12, 3), (6, 2), (6, 3), (4,)], ids=str)
def test_a_picture_has_the_size_that_was_asked_for(shape):
    frames = np.random.default_rng(0).normal(size=(50, *shape)).astype(np.float32)
    frames[3].flat[0] = np.nan
    flat = frames.reshape(50, -1)
    look = _points(frames) if shape[-1] in (2, 3) and len(shape) == 2 else _traces(flat) if len(shape) == 1 else None
    look = look or _image(frames, "magma")
    picture = paint(look, frames, 3, 64, (200, 30, 30))
    assert (
        picture.shape == (64, picture_width(look, shape, 64), 3) and picture.dtype == np.uint8 and np.ptp(picture) > 50
    )


def test_a_place_in_the_room_is_not_drawn():
    points = np.random.default_rng(0).normal(size=(50, 6, 2)).astype(np.float32)
    placed = np.concatenate([points, np.full((50, 1, 2), 70, np.float32)], 1)
    look = _points(points)
    assert np.array_equal(paint(look, placed, 3, 64), paint(look, points, 3, 64))


def test_a_line_covers_the_pixels_it_passes_and_no_others():
    image = _raster.canvas(20, 20, (0, 0, 0))
    _raster.segment(image, np.array([2.0, 10.0]), np.array([17.0, 10.0]), 1.0, (255, 255, 255))
    assert (image[10, 2:18, 0] == 255).all() and image[8].max() == 0 and image[12].max() == 0


def test_words_are_drawn_and_cut_at_the_edge():
    image = _raster.canvas(20, 40, (0, 0, 0))
    _raster.text(image, "state 12 and more", 2, 2, 14, (255, 255, 255))
    assert image.max() > 200 and _raster.text_width("wide words", 14) > _raster.text_width("w", 14)


def test_bouts_follow_each_other_within_recordings_only():
    found = stretches(0, np.array([0, 0, 1, 1, 0])) + stretches(1, np.array([2, 2, 2, 1, 1]))
    assert [(s.state, s.first, s.last) for s in found[:3]] == [(0, 0, 2), (1, 2, 4), (0, 4, 5)]
    assert np.array_equal(followed(found, 3), [[0, 1, 0], [1, 0, 0], [0, 1, 0]])
    shown = examples(found, 1, [5, 5], 2, 1, 2)
    assert {s.recording for s in shown} == {0, 1} and all(s.state == 1 for s in shown)
