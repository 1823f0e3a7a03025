"""What a reader finds in a file, and what is common to keypoints and to time in every format."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..recordings import DataError
from ..views import Floats, View

CONFIDENCE = 0.3  # a keypoint that its tracker trusts less is missing
LARGEST_ARRAY = 2**32  # bytes that are read into memory at once; larger arrays belong in a format read by windows
NOUN = re.compile(r"\b(column|dataset|track|animal|file|array|table|skeleton|point|height)\b")
LARGEST_FRAME = 2**28  # bytes of one frame


class Note(NamedTuple):
    """What a reader left out, took for granted or changed, in words; `percent` of the frames or points concerned."""

    words: str
    percent: float | None = None


class Piece(NamedTuple):
    """One recording of a file: its name within the file ("" for the only one), frames, and seconds if irregular.

    fps: its own frame rate, where it differs from that of the file; first: the frame of the file that it begins at.
    """

    name: str
    y: View
    times: np.ndarray | None = None
    fps: float | None = None
    first: int = 0


class Contents(NamedTuple):
    """All recordings of a file, and what the user should know of how they were read."""

    pieces: list[Piece]
    fps: float | None = None
    notes: Sequence[Note] = ()


class Clock(NamedTuple):
    """Frames per second, seconds where frames are not evenly spaced, and what is wrong with them."""

    fps: float | None = None
    times: np.ndarray | None = None
    notes: Sequence[Note] = ()


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


def keypoints(xy: np.ndarray, confidence: np.ndarray | None, names: Sequence[str], unit: str = "") -> View:
    """Points (T, P, 2 or 3), missing where the tracker was not confident (T, P)."""
    xy = xy.astype(np.float32 if xy.dtype.itemsize <= 4 else np.float64, copy=True)
    if confidence is not None:
        xy[~(confidence >= CONFIDENCE)] = np.nan
    xy[~np.isfinite(xy).all(-1)] = np.nan
    found = Floats(xy, kind="keypoints", points=tuple(map(str, names)), unit=unit)
    found.confidence = confidence
    return found


def joined(pieces: list[Piece], edges: Iterable[Sequence[int]]) -> list[Piece]:
    """The same keypoints with the pairs of points that their file joins; pairs of points that are not there go."""
    for piece in pieces:
        P = len(piece.y.points)
        pairs = [(int(p), int(q)) for p, q in edges]
        piece.y.edges = tuple((p, q) for p, q in pairs if p != q and 0 <= p < P and 0 <= q < P)
    return pieces


def doubted(xy: np.ndarray, confidence: np.ndarray | None) -> list[Note]:
    """How many points are missing though they have a place, or part of one."""
    placed = np.isfinite(xy).all(-1)
    low = np.zeros_like(placed) if confidence is None else placed & ~(confidence >= CONFIDENCE)
    infinite = np.isinf(xy).any(-1)
    half = ~placed & ~infinite & np.isfinite(xy).any(-1)
    words = {f"points with a confidence below {CONFIDENCE}": low}
    words |= {"points with a coordinate that is infinite": infinite, "points of which one coordinate is missing": half}
    total = max(1, int((placed | infinite | half).sum()))
    found = {said: int(which.sum()) for said, which in words.items()}
    return [Note(f"{said} count as missing", 100 * n / total) for said, n in found.items() if n]


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names divided by commas, the first few of many."""
    shown = ", ".join(map(str, names[:most]))
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def text(word: object) -> str:
    """A name as HDF5 has it."""
    return word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word)


def left_aside(what: str, names: Sequence[str]) -> list[Note]:
    """One note that names what is not used: `what` is "column" or "dataset"; nothing where all is used."""
    if not names:
        return []
    if len(names) == 1:
        return [Note(f"the {what} {names[0]} is left aside")]
    several = NOUN.sub(r"\1s", what, count=1)
    return [Note(f"the {several} {listed(names)} are left aside")]


def time_base(times: np.ndarray) -> Clock:
    """The clock of one recording from the seconds of its frames; of times that make no sense it says so."""
    times = np.asarray(times, np.float64)
    steps = np.diff(times)
    known = steps[np.isfinite(steps) & (steps > 0)]
    if len(times) < 2:
        return Clock()
    if wrong := _disorder(times, steps):
        usable = len(known) > len(steps) / 2
        fps = 1 / float(np.median(known)) if usable else None
        rate = f"they give the frame rate alone, {fps:.4g}, and frames" if usable else "they are not used; frames"
        return Clock(fps, None, [Note(f"{wrong}; {rate} count as evenly spaced")])
    usual = float(np.median(steps))
    regular = float(len(steps) / (times[-1] - times[0]))
    if np.abs(times - times[0] - np.arange(len(times)) / regular).max() < 0.5 * usual:
        return Clock(regular, times if abs(times[0]) > 0.5 * usual else None)
    odd = int(np.sum(np.abs(steps - usual) > 0.5 * usual))
    words = f"its times are uneven: {odd} steps differ from {usual:.4g} s, the longest is {steps.max():.4g} s"
    return Clock(1 / usual, times, [Note(f"{words}; bouts are timed by them, while the model counts frames")])


def _disorder(times, steps):
    """What is wrong with times that do not increase, or nothing."""
    missing, repeats, back = int((~np.isfinite(times)).sum()), steps == 0, steps < 0
    found = [f"are missing in {missing} frames"] if missing else []
    found += [f"repeat {int(repeats.sum())} times"] if repeats.any() else []
    found += [f"go back {int(back.sum())} times"] if back.any() else []
    if not found:
        return ""
    wrong = ~np.isfinite(times)
    wrong[1:] |= repeats | back
    return f"its times {' and '.join(found)}, first at frame {int(np.argmax(wrong))}"
