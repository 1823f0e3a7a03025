"""Pictures of a body in a bout, or of its video: the animal in the middle, its heading at the onset up."""

import functools
from collections.abc import Callable

import numpy as np

from svae.report import _raster
from svae.report._bodies import Bodies, on_screen
from svae.report._bouts import Stretch
from svae.report._look import BONE, GREY, PAPER, shade
from svae.report._motion import turned
from svae.report._video import Video, crops

REACH = 0.85  # body lengths to each side
BLOCK = 32  # frames of a video that are read at once
FLOOR = (228, 231, 235)  # of lines one body length apart, which show where the animal goes

Painter = Callable[[Stretch, int, int, tuple | None], np.ndarray]  # bout, frame, pixels, ink -> picture


def painter(found: Bodies, video: Video | None) -> Painter:
    """How frames of this run are drawn."""
    if video is None:
        return lambda s, t, side, ink: _drawn(found, s, t, side, ink)
    block = functools.lru_cache(64)(lambda s, number: crops(video, found, s, BLOCK * number, BLOCK * (number + 1)))
    return lambda s, t, side, ink: _filmed(block(s, t // BLOCK)[t % BLOCK], side)


def _filmed(picture, side):
    rows = np.linspace(0, len(picture) - 1, side).round().astype(int)
    return np.repeat(picture[np.ix_(rows, rows)][..., None], 3, -1)


def _drawn(found, s, t, side, ink):
    moved, points = found.moved[s.recording], found.points[s.recording]
    out = _raster.canvas(side, side, PAPER)
    origin, heading = moved.place[s.first], moved.heading[s.first]
    if not np.isfinite(heading) or not np.isfinite(moved.place[t]).all():
        return out
    reach = max(REACH * found.unit, 1.1 * float(np.abs(found.body - found.body.mean(0)).max()))
    poses, place = (on_screen(found, turned(a - origin, heading)) for a in (points[t], moved.place[t]))
    pixel = lambda xy: ((xy - place) / reach * [1, -1] + 1) * (side - 1) / 2  # noqa: E731
    _floor(out, place, reach, found.unit, pixel)
    xy = np.clip(pixel(poses), -side, 2 * side)
    for p, q in found.skeleton.edges:
        _raster.segment(out, xy[p], xy[q], side / 50, BONE if ink else GREY)
    for i, p in enumerate(xy):
        wide = side / (12 if i == found.skeleton.nose else 17)
        _raster.segment(out, p, p, wide, shade(ink or GREY, found.skeleton.sides[i]))
    nose = xy[found.skeleton.nose]
    _raster.segment(out, nose, nose, side / 24, PAPER)
    return out


def _floor(out, place, reach, unit, pixel):
    """Lines that stand still in the room."""
    for axis in (0, 1):
        first, last = (place[axis] + sign * reach for sign in (-1, 1))
        for number in range(int(np.ceil(first / unit)), int(np.floor(last / unit)) + 1):
            point = np.array(place, float)
            point[axis] = number * unit
            at = int(np.clip(round(pixel(point)[axis]), 0, len(out) - 1))
            out[(slice(None), at) if axis == 0 else (at,)] = FLOOR
