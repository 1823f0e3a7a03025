"""Numbers that may stand for something else: a mark of missing values, or a clock among the columns."""

from typing import Any

import numpy as np

from .readers.pieces import listed
from .recordings import Recordings
from .views import is_points, names_of

MARKS = (-1, *(sign * (10**n - 1) for n in range(2, 6) for sign in (-1, 1)), -32768)  # that people write for missing
SHARE, FEWEST = 0.005, 5  # of the entries, and how many at least, that hold the same number
APART = 0.1  # of the range of the others, by which a mark lies outside of it
ORIGIN = 0.9  # of the frames in which a point lies there that is the origin of what was written
VALUES = 20  # different numbers that measurements have at least; fewer are codes
EVEN = 0.01  # of a step, by which the steps of a clock differ


def marks(data: Recordings, samples: list[np.ndarray]) -> list[str]:
    """Recordings in which one number occurs so often, and so far from the others, that it may mean missing."""
    found: dict[str, list[str]] = {}
    for name, frames in zip(data.names, samples, strict=True):
        for words in _marks(frames):
            found.setdefault(words, []).append(name)
    return [
        f"{listed(names, 3)}: {words}; if that means missing, leave these cells empty."
        for words, names in found.items()
    ]


def _marks(frames):
    places = [f"({', '.join([f'{v:g}'] * frames.shape[2])})" for v in _places(frames)] if is_points(frames) else []
    at = [f"points lie at exactly {place} again and again" for place in places]
    rows = frames.reshape(len(frames), -1)
    return at or [f"{v} stands far from all other numbers" for v in MARKS if _is_mark(rows, v)]


def _places(frames):
    """Numbers v for which all coordinates of many points are v: 0 and -1 are the usual ones."""
    equal = (frames[..., :1] == frames).all(-1)
    equal &= equal.mean(0) < ORIGIN
    same = frames[..., 0][equal]
    values, counts = np.unique(same, return_counts=True)
    return values[counts >= max(FEWEST, SHARE * frames.shape[0] * frames.shape[1])].tolist()


def _is_mark(rows, value):
    hit = rows == value
    if hit.sum() < max(FEWEST, SHARE * rows.size) or hit.mean() > 0.5:
        return False
    own = rows[:, hit.any(0)]
    rest = own[np.isfinite(own) & (own != value)]
    if len(np.unique(rest)) < VALUES:
        return False
    low, high = rest.min(), rest.max()
    return max(low - value, value - high) > APART * (high - low)


def counters(data: Recordings, samples: list[np.ndarray]) -> list[str]:
    """Columns that go up by the same step at each frame, as a clock does that was not known as one."""
    first = data.sequences[0]
    if first.ndim != 2 or len(first) < VALUES:
        return []
    rising = np.logical_and.reduce([_rises(y) for y in data.sequences if len(y) >= VALUES])
    names = names_of(first) or tuple(map(str, range(first.shape[1])))
    called = [names[i] for i in np.flatnonzero(rising)]
    if not called:
        return []
    which = f"Column {called[0]} goes" if len(called) == 1 else f"Columns {listed(called)} go"
    return [f"{which} up by the same step at each frame, as a clock does, but counts as data; leave it out."]


def _rises(y: Any) -> np.ndarray:
    """Which columns do so, in the first frames."""
    steps = np.diff(np.asarray(y[:1000], np.float64), axis=0)
    usual = np.median(steps, 0)
    return (usual > 0) & (np.abs(steps - usual) <= EVEN * usual).all(0)
