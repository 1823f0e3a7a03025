"""Mean and spread of every entry of a frame in one pass over recordings of any length."""

import functools
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from .recordings import Recordings
from .views import blocks

SMALLEST_SD = 1e-30  # a spread whose inverse float32 holds with room to spare


class Moments(NamedTuple):
    """Moments of the finite values of each entry (P,): how many, their mean, and the sum of squares about it."""

    count: Float[np.ndarray, " P"]
    mean: Float[np.ndarray, " P"]
    squares: Float[np.ndarray, " P"]

    def sd(self) -> Float[np.ndarray, " P"]:
        """Standard deviation; 0 where an entry varies by rounding only or was never seen."""
        return _cleaned(self.mean, np.sqrt(self.squares / np.maximum(self.count, 1)))

    def pooled(self) -> "Moments":
        """The moments of all entries as if they were one (1,)."""
        count = np.maximum(self.count.sum(), 1)
        mean = np.sum(self.count * self.mean) / count
        squares = np.sum(self.squares) + np.sum(self.count * (self.mean - mean) ** 2)
        return Moments(self.count.sum(keepdims=True), np.array([mean]), np.array([squares]))


def _cleaned(mean, sd):
    return np.where(sd <= np.maximum(1e-14 * np.abs(mean), SMALLEST_SD), 0.0, sd)


def moments(data: Recordings) -> Moments:
    """Over all frames of all recordings.

    Args:
        data: Recordings.

    Returns:
        `Moments`: sums over all frames, entry by entry.
    """
    return functools.reduce(merged, map(moments_of, data.sequences))


def moments_of(y: Any) -> Moments:
    """Over all frames of one sequence, block by block."""
    return functools.reduce(merged, (block_moments(frames) for _, frames in blocks(y)))


def block_moments(frames: np.ndarray) -> Moments:
    """In two passes over frames that are in memory."""
    rows = frames.reshape(len(frames), -1).astype(np.float64, copy=False)
    seen = np.isfinite(rows)
    if seen.all():
        count, mean = np.full(rows.shape[1], float(len(rows))), rows.mean(0)
        away = rows - mean
        return Moments(count, mean, np.einsum("tp,tp->p", away, away))
    count = seen.sum(0).astype(float)
    mean = np.where(seen, rows, 0).sum(0) / np.maximum(count, 1)
    return Moments(count, mean, (np.where(seen, rows - mean, 0) ** 2).sum(0))


def merged(a: Moments, b: Moments) -> Moments:
    """The moments of two sets of frames together."""
    count = a.count + b.count
    share = b.count / np.maximum(count, 1)
    away = b.mean - a.mean
    return Moments(count, a.mean + share * away, a.squares + b.squares + away**2 * a.count * share)
