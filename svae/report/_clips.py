"""A grid of bouts of one state, all at their onset at the same time."""

from collections.abc import Iterator

import numpy as np

from svae.data import Recordings
from svae.report import _raster
from svae.report._bouts import Stretch, durations, examples
from svae.report._film import Painter
from svae.report._look import Look, paint, picture_width
from svae.report._material import Material
from svae.report._palette import label

CLIPS = 16
SIDE = 128  # pixels of a clip
GAP, HEAD = 6, 34
SECONDS = (0.3, 2.0)  # before the onset; the longest after it


def grid(
    material: Material, look: Look, data: Recordings, k: int, paint_body: Painter | None = None, most: int = CLIPS,
    every: int = 1,
) -> Iterator[np.ndarray]:  # fmt: skip
    """Every so many frames from shortly before the onset until most of the bouts are over."""
    before, after = _span(material, k)
    lengths = [len(y) for y in data.sequences]
    shown = examples(material.stretches, k, lengths, most, before, after)
    shown = shown if len(shown) <= 9 or len(shown) == CLIPS else shown[:9] if len(shown) < 12 else shown[:12]
    columns = 4 if len(shown) > 9 else 3 if len(shown) > 4 else max(1, min(2, len(shown)))
    if paint_body is None:
        clips = [_clip(look, data, s, before, after) for s in shown]
        width = picture_width(look, clips[0][1].shape[1:], SIDE)
        cell = lambda i, t, ink: _painted(look, *clips[i], shown[i].first + t, ink)  # noqa: E731
    else:
        width, cell = SIDE, lambda i, t, ink: paint_body(shown[i], shown[i].first + t, SIDE, ink)
    for t in range(0, before + after, every):
        yield _picture(material, k, shown, lengths, cell, (columns, width), t - before)


def _span(material, k) -> tuple[int, int]:
    fps = material.fps or 30.0
    long = float(np.percentile(durations(material.stretches, k), 80)) + SECONDS[0] * fps
    return round(SECONDS[0] * fps), int(np.clip(long, 8, SECONDS[1] * fps))


def _clip(look, data, s: Stretch, before, after):
    """(first frame, frames): what there is of the recording around an onset, with room for traces."""
    y = data.sequences[s.recording]
    room = look.around if look.kind == "traces" else 0
    first = max(0, s.first - before - room)
    return first, np.asarray(y[first : min(len(y), s.first + after + room)])


def _picture(material, k, shown, lengths, cell, layout, t):
    columns, width = layout
    rows = -(-len(shown) // columns)
    out = _raster.canvas(HEAD + rows * (SIDE + GAP) + GAP, max(columns * (width + GAP) + GAP, 360))
    colour = _raster.bytes_of(material.colours[k])
    left = (out.shape[1] - columns * (width + GAP) + GAP) // 2
    for i, s in enumerate(shown):
        place = HEAD + i // columns * (SIDE + GAP), left + i % columns * (width + GAP)
        inside, on = 0 <= s.first + t < lengths[s.recording], 0 <= t < s.frames
        part = cell(i, t, colour if on else None) if inside else _raster.canvas(SIDE, width, (30, 31, 36))
        if inside and on:
            _raster.frame(part, 4, colour)
        _raster.paste(out, part, *place)
    _head(out, material, k, colour, t)
    return out


def _painted(look, first, frames, t, ink):
    """A frame of one clip."""
    return paint(look, frames, t - first, SIDE, ink)


def _head(out, material, k, colour, t):
    """Colour and name on the left, time from the onset on the right."""
    out[9:27, GAP : GAP + 18] = colour
    _raster.text(out, _raster.known(f"{label(k, material.names)}{material.of}", f"state {k}"), 6, GAP + 28, 17)
    now = (f"{t / material.fps:+.2f} s" if material.fps else f"{t:+d}").replace("-", "−")
    _raster.text(out, now, 7, out.shape[1] - 82, 15, _raster.LIGHT if t >= 0 else _raster.DIM)
