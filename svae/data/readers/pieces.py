"""What a reader finds in a file, and what is common to keypoints and to time in every format."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..recordings import DataError
from ..views import Floats, View

CONFIDENCE = 0.3  # a keypoint that its tracker trusts less is missing
LARGEST_ARRAY = 2**32  # bytes that are read into memory at once; larger arrays belong in a format read by windows
LARGEST_FRAME = 2**28  # bytes of one frame


class Piece(NamedTuple):
    """One recording of a file: its name within the file ("" for the only one), frames, and seconds if irregular."""

    name: str
    y: View
    times: np.ndarray | None = None


class Contents(NamedTuple):
    """All recordings of a file."""

    pieces: list[Piece]
    fps: float | None = None


def numbers_in(shape: Sequence[int]) -> int:
    """The product of a shape that a file declares, without overflow."""
    total = 1
    for n in shape:
        total *= int(n)
    return total


def require_size(what: str, shape: Sequence[int], itemsize: int, available: int) -> None:
    """Raise unless an array that a header declares can be within the bytes that are there."""
    if any(int(n) < 0 for n in shape) or numbers_in(shape) * itemsize > available:
        raise DataError(
            f"{what} declares an array of shape {_short(shape)}, more than its {available} bytes can hold; "
            "it is damaged or cut short."
        )
    if len(shape) > 1 and numbers_in(shape[1:]) * itemsize > LARGEST_FRAME:
        raise DataError(f"{what} has frames of shape {_short(shape[1:])}, too large for a model; make them smaller.")


def _short(shape):
    text = str(tuple(int(n) for n in shape))
    return text if len(text) < 80 else text[:80] + "...)"


def require_in_memory(what: str, bytes_needed: int) -> None:
    """Raise for an array that would have to be unpacked into memory and is too large for that."""
    if bytes_needed > LARGEST_ARRAY:
        raise DataError(f"{what} unpacks to {bytes_needed / 2**30:.0f} GB, too much to hold; save it as .npy instead.")


def keypoints(xy: np.ndarray, confidence: np.ndarray | None, names: Sequence[str]) -> View:
    """Points (T, P, 2 or 3), missing where the tracker was not confident (T, P)."""
    xy = xy.astype(np.float32 if xy.dtype.itemsize <= 4 else np.float64, copy=True)
    if confidence is not None:
        xy[~(confidence >= CONFIDENCE)] = np.nan
    xy[~np.isfinite(xy).all(-1)] = np.nan
    return Floats(xy, kind="keypoints", points=tuple(map(str, names)))


def time_base(times: np.ndarray) -> tuple[float | None, np.ndarray | None]:
    """Frames per second, and the seconds themselves where they are not frame / fps."""
    times = np.asarray(times, np.float64)
    steps = np.diff(times)
    if len(steps) == 0 or not np.isfinite(steps).all() or (steps <= 0).any():
        return None, None
    fps = 1 / float(np.median(steps))
    regular = float(len(steps) / (times[-1] - times[0]))
    even = np.abs(times - np.arange(len(times)) / regular).max() < 0.5 / fps
    return (regular, None) if even else (fps, times)
