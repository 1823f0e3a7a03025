"""A recording's answers at any zoom, in bins of the stretch that is looked at: a page never gets more than it shows.

Frames are also kept in blocks of 64; wide stretches are answered from those, and a million frames take no longer than a
thousand.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from svae.runs import Posterior

BLOCK = 64  # frames
LANES = 12  # latent dimensions that are shown, those that move most
BOUTS = 1500  # that a stretch is drawn with one by one
LIMITS = (0.5, 99.5)  # percentiles that a lane shows
SAMPLED = 20_000  # frames from which they are found


class Coarse(NamedTuple):
    """Summaries of the frames between edges: blocks, or bins."""

    low: Float[np.ndarray, "n D"]
    high: Float[np.ndarray, "n D"]
    sd: Float[np.ndarray, "n D"]
    probability: Float[np.ndarray, "n K"]
    error: Float[np.ndarray, " n"]  # the largest
    least: Float[np.ndarray, " n"]  # the smallest


class Track(NamedTuple):
    """The answers of one recording, and their blocks."""

    found: Posterior
    lanes: Int[np.ndarray, " L"]  # the latent dimensions that are shown
    blocks: Coarse


def track(found: Posterior) -> Track:
    """Make the blocks once."""
    lanes = np.sort(np.argsort(-found.mean.var(0), kind="stable")[:LANES])
    shown = _frames(found, lanes, 0, len(found.time))
    return Track(found, lanes, summary(shown, np.arange(0, len(found.time), BLOCK)))


def _frames(found, lanes, first, last) -> Coarse:
    """Single frames as summaries of themselves."""
    mean, error = found.mean[first:last, lanes], found.error[first:last]
    return Coarse(mean, mean, found.sd[first:last, lanes], found.probability[first:last], error, error)


def summary(parts: Coarse, starts: Int[np.ndarray, " n"]) -> Coarse:
    """Summaries of the parts from each start to the next."""
    count = np.diff(np.r_[starts, len(parts.low)])[:, None].astype(np.float32)
    return Coarse(
        np.minimum.reduceat(parts.low, starts),
        np.maximum.reduceat(parts.high, starts),
        np.add.reduceat(parts.sd, starts) / count,
        np.add.reduceat(parts.probability, starts) / count,
        np.fmax.reduceat(parts.error, starts),
        np.fmin.reduceat(parts.least, starts),
    )


def window(of: Track, first: int, last: int, bins: int) -> tuple[Int[np.ndarray, " edges"], Coarse]:
    """Edges of at most `bins` bins over frames [first, last), and the summary of each."""
    size = (last - first) / bins
    if size < 2 * BLOCK:
        edges = _edges(first, last, bins)
        return edges, summary(_frames(of.found, of.lanes, first, last), edges[:-1] - first)
    a, b = first // BLOCK, -(-last // BLOCK)
    edges = _edges(a, b, bins)
    blocks = Coarse(*(values[a:b] for values in of.blocks))
    return np.minimum(edges * BLOCK, len(of.found.time)), summary(blocks, edges[:-1] - a)


def _edges(first, last, bins):
    bins = min(bins, last - first)
    return first + np.arange(bins + 1) * (last - first) // bins


def limits(of: Track) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    """Low and high of each lane, and of the error."""
    every = max(1, len(of.found.time) // SAMPLED)
    low, high = np.percentile(of.found.mean[::every, of.lanes], LIMITS, axis=0)
    room = 0.15 * (high - low) + 1e-6
    return low - room, high + room, _error_limits(of.found.error[::every])


def _error_limits(error) -> tuple[float, float]:
    """From a little below the smallest, since how it changes is what people look for."""
    seen = error[np.isfinite(error)]
    low, high = np.percentile(seen, LIMITS) if seen.size else (0.0, 1.0)
    return max(0.0, float(low - 0.4 * (high - low))), float(max(high, low + 1e-6))
