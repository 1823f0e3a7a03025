"""Pictures by numpy: colours on a canvas of bytes, with soft edges."""

import functools
import warnings
from typing import Any

import numpy as np

DARK, LIGHT, DIM = (17, 18, 22), (240, 240, 240), (120, 122, 128)  # background, text, what stands back


def canvas(height: int, width: int, colour: tuple = DARK) -> np.ndarray:
    """(height, width, 3) bytes of one colour."""
    return np.tile(np.array(colour, np.uint8), (height, width, 1))


def paste(image: np.ndarray, part: np.ndarray, y: int, x: int) -> None:
    """Put a part into an image; what sticks out is left out."""
    room = image[max(y, 0) : y + part.shape[0], max(x, 0) : x + part.shape[1]]
    room[:] = part[max(-y, 0) :, max(-x, 0) :][: room.shape[0], : room.shape[1]]


def blend(room: np.ndarray, alpha: np.ndarray, colour: Any) -> None:
    """room = (1 - alpha) room + alpha colour, in place."""
    room[:] = np.round(room + alpha[..., None] * (np.asarray(colour, float) - room)).astype(np.uint8)


def segment(image: np.ndarray, a: np.ndarray, b: np.ndarray, width: float, colour: Any) -> None:
    """A line with round ends from a to b, (x, y) in pixels; a dot where they are one point."""
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return
    edge = width / 2 + 1
    left, top = np.floor(np.minimum(a, b) - edge).astype(int).clip(0)
    right, bottom = np.ceil(np.maximum(a, b) + edge + 1).astype(int).clip(0)
    room = image[top:bottom, left:right]
    if room.size == 0:
        return
    p = np.stack(np.meshgrid(np.arange(room.shape[1]) + left, np.arange(room.shape[0]) + top), -1) - a
    d = b - a
    along = np.clip(p @ d / max(float(d @ d), 1e-12), 0, 1)
    distance = np.linalg.norm(p - along[..., None] * d, axis=-1)
    blend(room, np.clip(width / 2 + 0.5 - distance, 0, 1), colour)


def curve(image: np.ndarray, y: np.ndarray, width: float, colour: Any) -> None:
    """A function of the column: y (W,) in rows, NaN where there is none."""
    rows = np.arange(image.shape[0])[:, None]
    slope = np.gradient(y) if len(y) > 1 else np.zeros_like(y)
    distance = np.abs(rows - y[None]) / np.sqrt(1 + np.nan_to_num(slope)[None] ** 2)
    blend(image, np.nan_to_num(np.clip(width / 2 + 0.5 - distance, 0, 1)), colour)


def frame(image: np.ndarray, width: int, colour: Any) -> None:
    """A border, in place."""
    for edge in (image[:width], image[-width:], image[:, :width], image[:, -width:]):
        edge[:] = np.asarray(colour, np.uint8)


def bytes_of(colour: np.ndarray) -> tuple[int, int, int]:
    """A colour of 0..1 as three bytes."""
    r, g, b = (round(255 * float(c)) for c in colour)
    return r, g, b


# --- letters ------------------------------------------------------------------------------------------------------


def text(image: np.ndarray, words: str, y: int, x: int, size: int, colour: Any = LIGHT) -> None:
    """Words with their top left corner at (y, x), `size` pixels high; what does not fit is left out."""
    letters = _letters(words, size)
    room = image[y : y + letters.shape[0], x : x + letters.shape[1]]
    blend(room, letters[: room.shape[0], : room.shape[1]], colour)


def text_width(words: str, size: int) -> int:
    """Pixels that they take."""
    return _letters(words, size).shape[1]


def known(words: str, otherwise: str) -> str:
    """The words, if the font has all their letters."""
    return words if all(_font(14).get_char_index(ord(c)) for c in words) else otherwise


@functools.lru_cache(1024)
def _letters(words: str, size: int) -> np.ndarray:
    """(height, width) in 0..1, all words of a size on one baseline."""
    tall = "Ág"  # letters that reach as high and as low as any
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        return _drawn(tall + words, size)[:, _drawn(tall, size).shape[1] :]


def _drawn(words, size):
    font = _font(size)
    font.set_text(words)
    font.draw_glyphs_to_bitmap(antialiased=True)
    return np.asarray(font.get_image(), float) / 255


@functools.lru_cache(8)
def _font(size: int):
    from matplotlib import font_manager, ft2font

    font = ft2font.FT2Font(font_manager.findfont("DejaVu Sans"))
    font.set_size(size, 72)
    return font
