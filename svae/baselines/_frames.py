"""Frames as principal scores and a rest, which together have a density.

A frame z in model units is D principal scores x and a rest, e = z - b - V x. In the space that V leaves, the rest has
the density of independent noise with a variance of its own for every entry.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from svae.baselines._gaps import Seen, completed, posterior_means, runs, seen_scores
from svae.data import DataError, Recordings
from svae.nets import LEAST_SD

STRETCH_FRAMES = 2000  # frames of a stretch
MOST_ENTRIES = 512  # entries of a frame whose gaps are integrated out; of a larger one with a gap, nothing counts
LEAST_SEEN = 0.5  # share of the entries that a frame must have for its scores to be fitted to
NOTHING = "The training frames do not vary; there is nothing to compare."


class Projection(NamedTuple):
    """Principal directions of frames, and the noise around them."""

    V: Float[np.ndarray, "P D"]  # orthonormal
    centre: Float[np.ndarray, " P"]
    sd: Float[np.ndarray, " D"]  # of the scores
    noise: Float[np.ndarray, " P"]  # variance of each entry


class Stretches(NamedTuple):
    """Frames in a row: scores of unit variance (T, D), and log p of the rest of each frame (T,).

    Where frames have gaps, `x` are what their other entries say of the scores, and `seen` has their density.
    """

    x: list[np.ndarray]
    rest: list[np.ndarray]
    whole: float  # share of the frames that have no gap
    observed: float  # share of the entries of a frame that its density has, on average
    volume: float  # nats per frame that model units add
    seen: tuple[Seen, ...] = ()
    kept: tuple[tuple[int, int, int], ...] = ()  # which of `seen`, and from which frame to which, each x is

    @property
    def frames(self) -> int:
        """The number of frames that have a density."""
        return sum(map(len, self.rest))


def project(frames: Float[np.ndarray, "N P"], D: int) -> Projection:
    """PCA, and the noise that makes the rest of these frames likeliest.

    No entry has less noise than models may learn (LEAST_SD): the density of one that hardly varies would grow without
    bound and say nothing of the frames.
    """
    if frames.shape[1] <= MOST_ENTRIES and not np.isfinite(frames).all():
        return _of_moments(*completed(frames.astype(float), D, LEAST_SD)[:2], D)
    seen = np.isfinite(frames)
    count = np.maximum(seen.sum(0), 1)
    centre = np.where(seen, frames, 0).sum(0, dtype=float) / count
    centred = np.where(seen, frames - centre, 0)
    V, sd = _principal(centred, min(D, *frames.shape))
    moving = np.sqrt((centred**2).sum(0) / count) >= LEAST_SD
    away = centred - centred @ V @ V.T
    noise = np.maximum((np.where(seen, away, 0) ** 2).sum(0) / count, LEAST_SD**2)
    free = int(moving.sum()) - len(sd)
    factor = float(np.mean(_square(V, noise, away[seen.all(1)]))) / free if free > 0 and seen.all(1).any() else 1.0
    return Projection(V, centre, sd, np.where(moving, np.maximum(noise * factor, LEAST_SD**2), LEAST_SD**2))


def _of_moments(centre: np.ndarray, covariance: np.ndarray, D: int) -> Projection:
    """The same of frames with gaps, from their mean and covariance."""
    moving = np.sqrt(np.diag(covariance)) >= LEAST_SD
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = values[::-1][:D], vectors[:, ::-1][:, :D]
    kept = values > max(1e-12 * values[0], 0.0)
    if not kept.any():
        raise DataError(NOTHING)
    V, free = vectors[:, kept], int(moving.sum()) - int(kept.sum())
    left = np.eye(len(V)) - V @ V.T
    left = left @ covariance @ left
    noise = np.maximum(np.diag(left), LEAST_SD**2)
    inverse = np.diag(1 / noise) - (V / noise[:, None]) @ np.linalg.solve((V.T / noise) @ V, V.T / noise)
    factor = float(np.sum(inverse * left)) / free if free > 0 else 1.0
    noise = np.where(moving, np.maximum(noise * factor, LEAST_SD**2), LEAST_SD**2)
    return Projection(V, centre, np.sqrt(values[kept]), noise)


def _principal(centred: np.ndarray, D: int) -> tuple[np.ndarray, np.ndarray]:
    """Directions (P, D) and the sd of the scores along each; those along which nothing varies are left out."""
    N, P = centred.shape
    values, vectors = np.linalg.eigh(centred.T @ centred if P <= N else centred @ centred.T)
    values, vectors = np.maximum(values[::-1][:D], 0), vectors[:, ::-1][:, :D]
    kept = values > 1e-12 * values[0]
    if not kept.any():
        raise DataError(NOTHING)
    values, vectors = values[kept], vectors[:, kept]
    V = vectors if P <= N else centred.T @ vectors / np.sqrt(values)
    return V, np.sqrt(values / N)


def _square(V, noise, e):
    """e' U (U' N U)^-1 U' e of rows e, where U spans what V leaves and N is the noise."""
    g = (e / noise) @ V
    return np.sum(e**2 / noise, 1) - np.sum(g * np.linalg.solve((V.T / noise) @ V, g.T).T, 1)


def scores(found: Projection, z: Float[np.ndarray, "T P"]) -> tuple[np.ndarray, np.ndarray]:
    """Scores (T, D) of unit variance, and what else log p(z) (T,) has: that of the rest, and the change of unit."""
    V, noise = found.V, found.noise
    x = (z - found.centre) @ V
    volume = np.sum(np.log(noise)) + np.linalg.slogdet((V.T / noise) @ V)[1]
    square = _square(V, noise, z - found.centre - x @ V.T)
    rest = -(square + volume + (V.shape[0] - V.shape[1]) * math.log(2 * math.pi)) / 2
    return x / found.sd, rest - np.sum(np.log(found.sd))


def stretches(data: Recordings, found: Projection, log_scale: np.ndarray, most: int) -> Stretches:
    """The first part of every recording in model units, `most` frames in all about.

    Large frames are cut where one has a gap.
    """
    pieces = list(_pieces(data, most))
    seen = [np.isfinite(z) for z in pieces]
    frames, whole = sum(map(len, pieces)), sum(int(s.all(1).sum()) for s in seen)
    count = np.sum([s.sum(0) for s in seen], 0)
    volume = float(count @ log_scale / frames)
    if whole == frames or len(log_scale) > MOST_ENTRIES:
        pairs = [scores(found, z[a:b]) for z, s in zip(pieces, seen, strict=True) for a, b in runs(s.all(1))]
        parts = [x for x, _ in pairs], [rest for _, rest in pairs]
        return Stretches(*parts, whole / frames, float(count.mean() / frames), volume)
    told = tuple(seen_scores(*found, z) for z in pieces)
    kept = tuple((i, a, b) for i, s in enumerate(seen) for a, b in runs(s.mean(1) >= LEAST_SEEN))
    x = [posterior_means(told[i])[a:b] for i, a, b in kept]
    return Stretches(x, [t.rest for t in told], whole / frames, 1.0, volume, told, kept)


def _pieces(data: Recordings, most: int) -> Iterator[np.ndarray]:
    """Rows (T, P) of at most STRETCH_FRAMES frames."""
    share = min(1.0, most / data.frames)
    for y in data.sequences:
        last = math.ceil(share * len(y))
        for first in range(0, last, STRETCH_FRAMES):
            z = np.asarray(y[first : min(first + STRETCH_FRAMES, last)], float)
            yield z.reshape(len(z), -1)
