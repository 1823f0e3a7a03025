"""Frames side by side, as pictures of one scale of colours."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from svae.data import Recordings, sample_frames

GAP = 1  # pixels between frames
CMAP = "magma"
SQUARE = 0.2  # of a frame's side, in its lower right corner
DARK, SELDOM = 0.2, 0.01  # of the scale: what is darker is background; share of frames in which a pixel may stand out


class Scale(NamedTuple):
    """Darkest and brightest of what is shown, and the part of a frame where anything ever is."""

    low: float
    high: float
    rows: slice
    columns: slice


def find_scale(data: Recordings) -> Scale:
    """All but a few pixels lie between its ends; its part leaves out dark margins, and a hot pixel is no animal."""
    frames = np.nan_to_num(sample_frames(data, 400, 0))
    low, high = np.percentile(frames, (0.5, 99.8))
    often = np.mean(frames > low + DARK * (high - low), 0) > SELDOM
    return Scale(float(low), float(max(high, low + 1e-9)), _part(often.sum(1) > 1), _part(often.sum(0) > 1))


def _part(used: np.ndarray) -> slice:
    """From the first to the last that is used, with room around them; everything where none is."""
    places = np.flatnonzero(used)
    room = len(used) // 15
    return slice(max(0, int(places[0]) - room), int(places[-1]) + 1 + room) if len(places) else slice(None)


def cropped(frames: Float[np.ndarray, "n H W"], scale: Scale) -> Float[np.ndarray, "n h w"]:
    """The frames without their dark margins."""
    return frames[:, scale.rows, scale.columns]


def beside(frames: Float[np.ndarray, "n H W"], gap: int = GAP) -> Float[np.ndarray, "H L"]:
    """A row of frames with nothing (NaN) between them."""
    wide = np.pad(np.asarray(frames, float), ((0, 0), (0, 0), (0, gap)), constant_values=np.nan)
    return np.concatenate(list(wide), 1)[:, : -gap or None]


def stacked(rows: list[Float[np.ndarray, "H L"]], gap: int = GAP) -> Float[np.ndarray, "M N"]:
    """Rows of equal width above each other, with nothing between them."""
    high = [np.pad(row, ((0, gap), (0, 0)), constant_values=np.nan) for row in rows]
    return np.concatenate(high)[: -gap or None]


def grid(frames: Float[np.ndarray, "n m H W"], gap: int = GAP) -> Float[np.ndarray, "M N"]:
    """Frames in rows and columns."""
    return stacked([beside(row, gap) for row in frames], gap)


def marked(frame: Float[np.ndarray, "H W"], value: float) -> Float[np.ndarray, "H W"]:
    """The frame with a square in its lower right corner."""
    side, frame = max(3, round(SQUARE * min(frame.shape))), np.array(frame, float)
    frame[-side - 1 : -1, -side - 1 : -1] = value
    return frame


def show(axes, picture: Float[np.ndarray, "M N"], scale: Scale) -> None:
    """A picture without axes; white where there is nothing."""
    axes.imshow(picture, cmap=CMAP, vmin=scale.low, vmax=scale.high, interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
