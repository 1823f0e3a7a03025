"""A grid of bouts of one state, all at their onset at the same time."""

from collections.abc import Iterator

import numpy as np

from svae.data import Recordings
from svae.report import _raster
from svae.report._bouts import Stretch, durations, examples
from svae.report._look import Look, paint, picture_width
from svae.report._material import Material
from svae.report._palette import label, palette

CLIPS = 16
SIDE = 128  # pixels of a clip
GAP, HEAD = 6, 34
SECONDS = (0.3, 2.0)  # before the onset; the longest after it


def grid(material: Material, look: Look, data: Recordings, k: int) -> Iterator[np.ndarray]:
    """Pictures from shortly before the onset until most of the bouts are over."""
    before, after = _span(material, k)
    lengths = [len(y) for y in data.sequences]
    shown = examples(material.stretches, k, lengths, CLIPS, before, after)
    shown = shown if len(shown) <= 9 or len(shown) == CLIPS else shown[:9] if len(shown) < 12 else shown[:12]
    columns = 4 if len(shown) > 9 else 3 if len(shown) > 4 else max(1, min(2, len(shown)))
    clips = [_clip(look, data, s, before, after) for s in shown]
    for t in range(before + after):
        yield _picture(material, look, k, shown, clips, columns, t - before)


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


def _picture(material, look, k, shown, clips, columns, t):
    width = picture_width(look, clips[0][1].shape[1:], SIDE)
    rows = -(-len(shown) // columns)
    out = _raster.canvas(HEAD + rows * (SIDE + GAP) + GAP, max(columns * (width + GAP) + GAP, 360))
    colour = _raster.bytes_of(palette(len(material.usage))[k])
    left = (out.shape[1] - columns * (width + GAP) + GAP) // 2
    for i, (s, (first, frames)) in enumerate(zip(shown, clips, strict=True)):
        place = HEAD + i // columns * (SIDE + GAP), left + i % columns * (width + GAP)
        _raster.paste(out, _cell(look, frames, s, first, t, colour, (SIDE, width)), *place)
    _head(out, material, k, colour, t, len(shown))
    return out


def _cell(look, frames, s, first, t, colour, size):
    """A frame of one clip: with a border while the state is on, empty outside the recording."""
    place, on = s.first + t - first, 0 <= t < s.frames
    if s.first + t < 0 or not 0 <= place < len(frames):
        return _raster.canvas(*size, (30, 31, 36))
    picture = paint(look, frames, place, SIDE, colour if on else None)
    if on:
        _raster.frame(picture, 4, colour)
    return picture


def _head(out, material, k, colour, t, number):
    """Colour and name on the left, time from the onset on the right."""
    out[9:27, GAP : GAP + 18] = colour
    _raster.text(out, _raster.known(label(k, material.names), f"state {k}"), 6, GAP + 28, 17)
    now = f"{t / material.fps:+.2f} s" if material.fps else f"{t:+d}"
    _raster.text(out, now, 7, out.shape[1] - 82, 15, _raster.LIGHT if t >= 0 else _raster.DIM)
