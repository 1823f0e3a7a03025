"""Frames as principal scores and a rest, which together have a density.

A frame z in model units is D principal scores x and a rest, e = z - b - V x. In the space that V leaves, the rest has
the density of independent noise with a variance of its own for every entry.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from svae.data import DataError, Recordings
from svae.nets import LEAST_SD

LONGEST = 2000  # frames of a stretch


class Projection(NamedTuple):
    """Principal directions of frames, and the noise around them."""

    V: Float[np.ndarray, "P D"]  # orthonormal
    centre: Float[np.ndarray, " P"]
    sd: Float[np.ndarray, " D"]  # of the scores
    noise: Float[np.ndarray, " P"]  # variance of each entry


class Stretches(NamedTuple):
    """Frames in a row without a gap: scores of unit variance (T, D), and log p of the rest of each frame (T,)."""

    x: list[np.ndarray]
    rest: list[np.ndarray]
    whole: float  # share of the frames that have no gap
    observed: float  # share of the entries
    volume: float  # nats per frame that model units add

    @property
    def frames(self) -> int:
        """Of all stretches together."""
        return sum(map(len, self.x))


def project(frames: Float[np.ndarray, "N P"], D: int) -> Projection:
    """PCA, and the noise that makes the rest of these frames likeliest.

    No entry has less noise than models may learn (LEAST_SD): the density of one that hardly varies would grow without
    bound and say nothing of the frames.
    """
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


def _principal(centred: np.ndarray, D: int) -> tuple[np.ndarray, np.ndarray]:
    """Directions (P, D) and the sd of the scores along each; those along which nothing varies are left out."""
    N, P = centred.shape
    values, vectors = np.linalg.eigh(centred.T @ centred if P <= N else centred @ centred.T)
    values, vectors = np.maximum(values[::-1][:D], 0), vectors[:, ::-1][:, :D]
    kept = values > 1e-12 * values[0]
    if not kept.any():
        raise DataError("The training frames do not vary; there is nothing to compare.")
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
    """The first part of every recording in model units, `most` frames in all about, cut where a frame has a gap."""
    share, pairs, whole, frames = min(1.0, most / data.frames), [], 0, 0
    count = np.zeros(len(log_scale))
    for y in data.sequences:
        last = math.ceil(share * len(y))
        for first in range(0, last, LONGEST):
            z = np.asarray(y[first : min(first + LONGEST, last)], float)
            z = z.reshape(len(z), -1)
            seen = np.isfinite(z)
            pairs += [scores(found, z[a:b]) for a, b in _runs(seen.all(1))]
            whole, count, frames = whole + int(seen.all(1).sum()), count + seen.sum(0), frames + len(z)
    parts = [x for x, _ in pairs], [rest for _, rest in pairs]
    return Stretches(*parts, whole / frames, float(count.mean() / frames), float(count @ log_scale / frames))


def _runs(good: np.ndarray) -> list[tuple[int, int]]:
    """[first, last) of every run of True."""
    edges = np.flatnonzero(np.diff(np.r_[False, good, False].astype(int)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
