"""How heavy the tails of keypoints are once wild points are taken out: what Student's t would gain over a Gaussian.

python benchmarks/heavy_tails.py

Two generators with 0, 1 and 3 % wild points that no likelihood tells of: the keypoint exam, and a swimmer with another
body. Points are aligned and wild ones taken out as in a fit; six principal components of two recordings then explain a
third. What is left of every entry gets a Gaussian and a Student's t with its own scale and degrees of freedom, both
found on the two recordings; the gain is in nats a frame of the third.
"""

import numpy as np
from keypoint_exam import FPS, NOISE, make
from scipy import optimize, stats

import svae
from svae.data import find_preprocess, preprocessed, recordings
from svae.fitting.initialize import pca

RECORDINGS, FRAMES, COMPONENTS = 3, 900, 6
POINTS, SEGMENT = 9, 8.0  # of the swimmer, and pixels between two of them
WAYS = ((0.0, 0.0, 0.05), (1.5, 0.5, 0.0), (3.5, 0.9, 0.0), (1.0, 0.3, 0.9), (1.0, 0.3, -0.9))  # hertz, swing, bend


def swimmer(seed: int, wild: float) -> list[np.ndarray]:
    """Points (T, 9, 2) on a midline whose bending switches between five ways."""
    return [_swims(np.random.default_rng((seed, number)), wild) for number in range(RECORDINGS)]


def _swims(rng, wild):
    ways: list[int] = []
    while len(ways) < FRAMES:
        ways += [int(rng.integers(len(WAYS)))] * int(np.clip(rng.gamma(5, 0.18 * FPS), 10, 60))
    xy, bend, phase, heading, place = np.zeros((FRAMES, POINTS, 2)), np.zeros(3), 0.0, 0.0, np.full(2, 300.0)
    along = np.linspace(0, 1, POINTS)
    for t, way in enumerate(ways[:FRAMES]):
        hertz, swing, turn = WAYS[way]
        phase += 2 * np.pi * hertz / FPS
        wave = swing * np.sin(phase - np.array([0, 1.2, 2.4])) * [1, 1, 0.6]
        bend = 0.7 * bend + 0.3 * (wave + np.array([turn, 0, 0])) + 0.04 * rng.standard_normal(3)
        heading += 0.03 * turn + 0.03 * rng.standard_normal()
        place = np.clip(place + (0.5 + 3 * swing) * np.array([np.cos(heading), np.sin(heading)]), 60, 540)
        angle = heading + np.pi + bend @ [0.8 * along, along**2, along**3]
        step = SEGMENT * np.stack([np.cos(angle), np.sin(angle)], -1)
        xy[t] = place + np.cumsum(step, 0) - step[0]
    return _with_wild(rng, xy + NOISE * rng.standard_normal(xy.shape), wild)


def _with_wild(rng, xy, wild):
    """Half of the wild points anywhere, half on another point of the body."""
    chosen, anywhere = rng.random(xy.shape[:2]) < wild, rng.random(xy.shape[:2]) < 0.5
    other = (np.arange(POINTS) + rng.integers(1, POINTS, xy.shape[:2])) % POINTS
    moved = np.where(anywhere[..., None], rng.uniform(0, 600, xy.shape), np.take_along_axis(xy, other[..., None], 1))
    return np.where(chosen[..., None], moved, xy)


def left_over(y: np.ndarray, found) -> np.ndarray:
    """What probabilistic PCA leaves of every entry (T, P); NaN where it is missing."""
    out, noise = np.full(y.shape, np.nan), float(np.mean(found.sd**2))
    for row, frame in zip(out, y, strict=True):
        seen = np.isfinite(frame)
        W, away = found.W[seen], frame[seen] - found.b[seen]
        x = np.linalg.solve(W.T @ W + noise * np.eye(W.shape[1]), W.T @ away)
        row[seen] = away - W @ x
    return out


def students(rest: np.ndarray) -> tuple[float, float]:
    """Degrees of freedom above 1, and scale."""

    def loss(p):
        return -np.mean(stats.t.logpdf(rest, 1 + np.exp(p[0]), 0, np.exp(p[1])))

    at = optimize.minimize(loss, [1.1, np.log(rest.std() / 2)], method="Nelder-Mead", options={"maxiter": 120}).x
    return 1 + float(np.exp(at[0])), float(np.exp(at[1]))


def gained(frames: list[np.ndarray]) -> tuple[float, float]:
    """Nats a frame of the last recording, and the median degrees of freedom."""
    data = recordings(frames, fps=FPS)
    seen = preprocessed(data, find_preprocess(data, svae.Config()))
    *train, test = (np.asarray(y[:], float).reshape(len(y), -1) for y in seen.sequences)
    found = pca(np.concatenate(train), COMPONENTS)
    ours, theirs = left_over(np.concatenate(train), found), left_over(test, found)
    total, freedom = 0.0, []
    for rest, held in ((a[np.isfinite(a)], b[np.isfinite(b)]) for a, b in zip(ours.T, theirs.T, strict=True)):
        if rest.std() > 1e-6:
            nu, scale = students(rest)
            total += float(np.sum(stats.t.logpdf(held, nu, 0, scale) - stats.norm.logpdf(held, 0, rest.std())))
            freedom.append(nu)
    return total / len(test), float(np.median(freedom))


if __name__ == "__main__":
    for share in (0.0, 0.01, 0.03):
        for number in (0, 1):
            exam = [y[..., :2] for y in make(number, share, False, RECORDINGS, FRAMES)[0]]
            for name, frames in (("exam", exam), ("swimmer", swimmer(number, share))):
                nats, freedom = gained(frames)
                print(f"{name}, {100 * share:g} % wild, seed {number}: {nats:.2f} nats a frame, {freedom:.0f} degrees")
