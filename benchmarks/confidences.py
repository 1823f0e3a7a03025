"""Is the confidence of a tracker a precision? What weights do to a smoothed latent, and what real trackers say.

python benchmarks/confidences.py [FILE ...]

First, latents that follow a known linear dynamics are smoothed from 16 noisy entries that have a confidence c from 0.3
to 1: without it, with it as a precision, N(y; C x, s² / c), and with it as a temper, N(y; C x, s²) to the power of c.
The variance s² is learned each time, as a fit would. Then, for each FILE of keypoints with confidences: how far points
are from the middle of the frames beside them, by confidence.
"""

import itertools
import sys
from collections.abc import Iterator

import numpy as np

FRAMES, D, ENTRIES, SD, KEEP = 1500, 4, 16, 0.3, 0.95
JUMP, DOUBTED, JUMPING = 3.0, 0.45, 0.3  # sd of a jump, the confidence below which it happens, and how often
REPEATS = 4
EDGES = (0.3, 0.5, 0.7, 0.9, 0.99, 1.01)


def smoothed(y: np.ndarray, weights: np.ndarray, C: np.ndarray, variance: float) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and sd (T, D) of x_t = KEEP x_{t-1} + noise of unit variance in all, y_t = C x_t + noise."""
    T = len(y)
    means, covariances = np.zeros((2, T, D)), np.zeros((2, T, D, D))  # predicted, filtered
    mean, S = np.zeros(D), np.eye(D)
    for t in range(T):
        if t:
            mean, S = KEEP * means[1, t - 1], KEEP**2 * covariances[1, t - 1] + (1 - KEEP**2) * np.eye(D)
        precision = np.where(np.isnan(y[t]), 0, weights[t]) / variance
        V = np.linalg.inv(np.linalg.inv(S) + C.T @ (precision[:, None] * C))
        means[:, t] = mean, V @ (np.linalg.solve(S, mean) + C.T @ (precision * np.nan_to_num(y[t])))
        covariances[:, t] = S, V
    x, V = means[1], covariances[1]
    for t in range(T - 2, -1, -1):
        G = KEEP * V[t] @ np.linalg.inv(covariances[0, t + 1])
        x[t] += G @ (x[t + 1] - means[0, t + 1])
        V[t] += G @ (V[t + 1] - covariances[0, t + 1]) @ G.T
    return x, np.sqrt(np.einsum("tii->ti", V))


def cases(rng: np.random.Generator, clean: np.ndarray) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """A name, the entries and their confidences."""
    noise, c = rng.standard_normal(clean.shape), rng.uniform(EDGES[0], 1, clean.shape)
    jumps = np.where((c < DOUBTED) & (rng.random(c.shape) < JUMPING), JUMP, SD)
    for name, sd, told in (
        ("the confidence is the precision", SD / np.sqrt(c), c),
        ("it says nothing", np.full(c.shape, SD), c),
        ("it is the same for all", np.full(c.shape, SD), np.full(c.shape, 0.6)),
        ("low ones may be jumps", jumps, c),
    ):
        yield name, clean + sd * noise, told
    yield "the same, low ones missing", np.where(c < DOUBTED, np.nan, clean + jumps * noise), np.ones(c.shape)


def simulated() -> None:
    """Error of the smoothed latent, and how often 90 % intervals hold it, with and without."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for repeat in range(REPEATS):
        rng = np.random.default_rng(repeat)
        C, x = rng.standard_normal((ENTRIES, D)) / 2, np.zeros((FRAMES, D))
        for t in range(1, FRAMES):
            x[t] = KEEP * x[t - 1] + np.sqrt(1 - KEEP**2) * rng.standard_normal(D)
        for name, y, c in cases(rng, x @ C.T):
            square, there = (y - x @ C.T) ** 2, ~np.isnan(y)
            for how, weights, variance in (
                ("without", np.ones(c.shape), np.nanmean(square)),
                ("precision", c, np.nanmean(c * square)),
                ("temper", c, np.nansum(c * square) / np.sum(c[there])),
            ):  # each at the maximum of its own likelihood
                mean, sd = smoothed(y, weights, C, float(variance))
                error = float(np.sqrt(np.mean((mean - x) ** 2)))
                found.setdefault((name, how), []).append((error, float(np.mean(np.abs(mean - x) < 1.645 * sd))))
    for (name, how), rows in found.items():
        error, inside = np.mean(rows, 0)
        print(f"{name}, {how}: error {error:.3f}, inside 90 %: {100 * inside:.0f} %")


def real(file: str) -> None:
    """How far points are from the middle of the two frames beside them, by confidence, as shares of the surest."""
    import svae

    apart, trust = [], []
    for y in svae.load(file).sequences:
        xy = np.asarray(y[:], float)
        apart.append(np.linalg.norm(xy[1:-1] - (xy[2:] + xy[:-2]) / 2, axis=-1).ravel())
        trust.append(np.asarray(y.confidence)[1:-1].ravel())
    away, c = np.concatenate(apart), np.concatenate(trust)
    print(f"{file}: {100 * np.mean((c >= EDGES[0]) & (c < EDGES[3])):.1f} % between {EDGES[0]} and {EDGES[3]}")
    for low, high in itertools.pairwise(EDGES):
        here = away[np.isfinite(away) & (c >= low) & (c < high)]
        if len(here):
            middle, tail = np.quantile(here, [0.5, 0.95])
            print(f"  {low} to {min(high, 1)}: {len(here)} points, median {middle:.2f}, 95 % below {tail:.1f}")


if __name__ == "__main__":
    simulated()
    for each in sys.argv[1:]:
        real(each)
