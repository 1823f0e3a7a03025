"""Frames with missing entries: principal components by EM, and each frame as scores that are seen through noise.

Of a frame z = b + L x + r, with scores x and a rest r, only some entries o are seen. With L_o = [Q1 Q2] [R; 0]
(QR), Q1' (z_o - b_o) is R x + noise, correlated with Q2' (z_o - b_o), which is noise alone. So the frame has the
density of the second, times that of D numbers y = H x + noise of covariance C. Nothing is approximated.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

ROUNDS, CLOSE = 50, 1e-5  # of EM at most, and nats per frame below which it has settled
LOG_2PI = math.log(2 * math.pi)


class Seen(NamedTuple):
    """What frames in a row say of their scores: y = H x + noise of covariance C, and log p of all else (T,)."""

    y: Float[np.ndarray, "T D"]
    rest: Float[np.ndarray, " T"]
    pattern: Int[np.ndarray, " T"]  # of missing entries: the row of H and C
    H: Float[np.ndarray, "M D D"]
    C: Float[np.ndarray, "M D D"]

    def at(self, t: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """y, H and C of one frame."""
        return self.y[t], self.H[self.pattern[t]], self.C[self.pattern[t]]


class Completed(NamedTuple):
    """Mean and covariance of frames whose missing entries are integrated out, under probabilistic PCA."""

    mean: Float[np.ndarray, " P"]
    covariance: Float[np.ndarray, "P P"]
    log_likelihood: list[float]  # nats per frame before each round of EM


def patterns(seen: Bool[np.ndarray, "N P"]) -> tuple[Bool[np.ndarray, "M P"], Int[np.ndarray, " N"]]:
    """The different rows of `seen`, and which of them each frame has."""
    found, where = np.unique(seen, axis=0, return_inverse=True)
    return found, where.reshape(-1)


def completed(frames: Float[np.ndarray, "N P"], D: int, least_sd: float) -> Completed:
    """EM for probabilistic PCA with D components, over all frames and their missing entries."""
    seen = np.isfinite(frames)
    found, where = patterns(seen)
    rows = [np.flatnonzero(where == m) for m in range(len(found))]
    mean = np.where(seen, frames, 0).sum(0) / np.maximum(seen.sum(0), 1)
    covariance, told = np.cov(np.where(seen, frames, mean).T, bias=True).reshape(len(mean), -1), []
    for _ in range(ROUNDS):
        W, noise = _loadings(covariance, D, least_sd**2)
        value, z, more = 0.0, np.empty_like(frames), np.zeros_like(covariance)
        for o, these in zip(found, rows, strict=True):
            value += _filled(z, more, frames, o, these, mean, W, noise)
        told.append(value / len(frames))
        mean = z.mean(0)
        covariance = ((z - mean).T @ (z - mean) + more) / len(frames)
        if len(told) > 1 and told[-1] - told[-2] < CLOSE:
            break
    return Completed(mean, covariance, told)


def _loadings(covariance: np.ndarray, D: int, least: float) -> tuple[np.ndarray, float]:
    """W (P, D) and the noise of the probabilistic PCA that is likeliest for a covariance."""
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = values[::-1], vectors[:, ::-1]
    D = min(D, len(values) - 1)
    noise = max(float(values[D:].mean()), least)
    return vectors[:, :D] * np.sqrt(np.maximum(values[:D] - noise, 0)), noise


def _filled(z, more, frames, o, rows, mean, W, noise) -> float:
    """Fill in z of the frames of one pattern, add the covariance of what is missing; gives their log likelihood."""
    away, Wo = frames[rows][:, o] - mean[o], W[o]
    inverse = np.linalg.inv(np.eye(W.shape[1]) + Wo.T @ Wo / noise)
    x = away @ Wo @ inverse / noise
    z[np.ix_(rows, o)] = frames[rows][:, o]
    z[np.ix_(rows, ~o)] = mean[~o] + x @ W[~o].T
    missing = np.ix_(~o, ~o)
    more[missing] += len(rows) * (W[~o] @ inverse @ W[~o].T + noise * np.eye(int((~o).sum())))
    square = np.sum((away - x @ Wo.T) * away) / noise
    volume = o.sum() * (LOG_2PI + math.log(noise)) - np.linalg.slogdet(inverse)[1]
    return -(square + len(rows) * volume) / 2


def seen_scores(V, centre, sd, noise, z: Float[np.ndarray, "T P"]) -> Seen:
    """What frames say of their scores, whichever of their entries are missing."""
    found, where = patterns(np.isfinite(z))
    U = np.eye(len(V)) - V @ V.T
    covariance, loadings = U @ np.diag(noise) @ U, V * sd
    D, T = V.shape[1], len(z)
    y, rest = np.zeros((T, D)), np.zeros(T)
    H, C = np.zeros((len(found), D, D)), np.zeros((len(found), D, D))
    for m, o in enumerate(found):
        rows = np.flatnonzero(where == m)
        away = z[rows][:, o] - centre[o]
        y[rows], rest[rows], H[m], C[m] = _compressed(away, loadings[o], covariance[np.ix_(o, o)])
    return Seen(y, rest, where, H, C)


def _compressed(away, L, R):
    """y, log p of the rest, H and C of frames (n, |o|) = L x + noise of covariance R."""
    D, number = L.shape[1], min(L.shape)
    Q, upper = np.linalg.qr(L, mode="complete")
    own, other = Q[:, :number], Q[:, number:]
    w = away @ other
    S = other.T @ R @ other
    gain = np.linalg.solve(S, other.T @ R @ own)
    y, H, C = np.zeros((len(away), D)), np.zeros((D, D)), np.eye(D)
    y[:, :number], H[:number] = away @ own - w @ gain, upper[:number]
    C[:number, :number] = own.T @ R @ own - own.T @ R @ other @ gain
    square = np.sum(w * np.linalg.solve(S, w.T).T, 1)
    volume = np.linalg.slogdet(S)[1] + len(S) * LOG_2PI
    return y, -(square + volume) / 2 + (D - number) * LOG_2PI / 2, H, (C + C.T) / 2


def posterior_means(seen: Seen) -> Float[np.ndarray, "T D"]:
    """E[x | y] where x ~ N(0, I)."""
    S = seen.H @ seen.H.transpose(0, 2, 1) + seen.C
    gain = np.linalg.solve(S, seen.H).transpose(0, 2, 1)
    return np.einsum("tij,tj->ti", gain[seen.pattern], seen.y)


def runs(good: Bool[np.ndarray, " T"]) -> Iterator[tuple[int, int]]:
    """[first, last) of every run of True."""
    edges = np.flatnonzero(np.diff(np.r_[False, good, False].astype(int)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
