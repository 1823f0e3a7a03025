"""A recording with its states scrolling by: the path, the probability of each state, and the frame."""

from collections.abc import Iterator

import numpy as np

from svae.data import Recordings
from svae.report import _raster
from svae.report._look import Look, paint
from svae.report._material import Material
from svae.report._palette import label, short_label

WIDTH, MARGIN, HEAD, NAMES = 720, 14, 40, 108
WIDE = WIDTH - NAMES - MARGIN  # pixels of the strip of states
TALL = 336  # of the frame
BAND, ROW, MOST = 26, 16, 16  # heights of the path and of a state's probability; states that are shown
SECONDS = 3.0  # to each side of the moment


def scroll(material: Material, look: Look, data: Recordings, i: int, frames: int) -> Iterator[np.ndarray]:
    """Pictures of the first `frames` frames of recording i."""
    found = list(material.posteriors.values())[i]
    states = sorted(material.states[:MOST])
    others = [(part, list(part.posteriors.values())[i].state) for part in material.blocks[1:]]
    strip = _strip(material, found, states, others)
    look = look._replace(around=round(SECONDS * (material.fps or 30.0)))  # traces on the clock of the states
    block = 128
    for first in range(0, min(frames, len(found.state)), block):
        room = look.around if look.kind == "traces" else 0
        start = max(0, first - room)
        piece = np.asarray(data.sequences[i][start : first + block + room])
        for t in range(first, min(first + block, frames, len(found.state))):
            yield _picture(material, look, piece, t - start, found.state, strip, states, t)


def _strip(material, found, states, others):
    """(rows, T, 3): the path above the probability of every shown state, one column a frame; paths of other blocks."""
    colours = material.colours
    ground = np.array(_raster.DARK) / 255
    path = colours[found.state]
    faint = found.probability[:, states, None]
    chance = ground * (1.25 - 0.25 * faint) * (1 - faint) + colours[states] * faint
    rows = [np.repeat(path[None], BAND, 0), np.tile(ground, (6, len(path), 1))]
    for r in range(len(states)):
        rows += [np.repeat(chance[None, :, r], ROW - 1, 0), np.tile(ground, (1, len(path), 1))]
    for part, state in others:
        rows += [np.tile(ground, (6, len(path), 1)), np.repeat(part.colours[state][None], BAND, 0)]
    return np.round(255 * np.clip(np.concatenate(rows), 0, 1)).astype(np.uint8)


def _picture(material, look, piece, place, state, strip, states, t):
    top = HEAD + TALL + MARGIN
    out = _raster.canvas(top + strip.shape[0] + 30, WIDTH)
    colour = _raster.bytes_of(material.colours[state[t]])
    video = paint(look, piece, place, TALL if look.kind != "traces" else WIDE // 2, colour)
    _raster.paste(out, video, HEAD, (WIDTH - video.shape[1]) // 2 if look.kind != "traces" else NAMES)
    _caption(out, material, state, t, colour)
    _scrolled(out, material, strip, states, t, top)
    return out


def _caption(out, material, state, t, colour):
    """The state of the moment and the clock."""
    out[11:29, MARGIN : MARGIN + 18] = colour
    _raster.text(out, _raster.known(label(int(state[t]), material.names), f"state {state[t]}"), 8, MARGIN + 28, 18)
    clock = f"{t / material.fps:.2f} s" if material.fps else f"frame {t}"
    _raster.text(out, clock, 8, WIDTH - MARGIN - _raster.text_width(clock, 18), 18)


def _scrolled(out, material, strip, states, t, top):
    """The strip around t, names on its left, a line through the moment."""
    width, around = WIDE, SECONDS * (material.fps or 30.0)
    columns = np.round(np.linspace(t - around, t + around, width)).astype(int)
    inside = (columns >= 0) & (columns < strip.shape[1])
    window = strip[:, np.clip(columns, 0, strip.shape[1] - 1)]
    window = np.where(inside[None, :, None], window, np.array(_raster.DARK, np.uint8))
    _raster.paste(out, window, top, NAMES)
    out[top - 5 : top + strip.shape[0] + 4, NAMES + width // 2 - 1 : NAMES + width // 2 + 1] = (255, 255, 255)
    _raster.text(out, f"state{material.each[0].of}", top + 4, MARGIN, 14)
    for b, part in enumerate(material.blocks[1:]):
        below = top + BAND + 6 + len(states) * ROW + b * (BAND + 6) + 6
        _raster.text(out, _raster.known(f"state{part.of}", "state"), below + 4, MARGIN, 14)
    for r, k in enumerate(states):
        colour = _raster.bytes_of(0.45 + 0.55 * material.colours[k])
        _raster.text(
            out, _raster.known(short_label(k, material.names), str(k)), top + BAND + 5 + r * ROW, MARGIN, 13, colour
        )
    for s in (-2, 0, 2):
        words = "now" if s == 0 else f"{s:+d} s" if material.fps else f"{30 * s:+d}"
        x = NAMES + round(width * (s / SECONDS + 1) / 2) - _raster.text_width(words, 13) // 2
        _raster.text(out, words, top + strip.shape[0] + 7, x, 13, _raster.DIM)
