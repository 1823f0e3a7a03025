"""Where several chains of states begin that act on the same latents, or on each other. numpy only.

States of all chains together are found as those of one chain; `parted` says which combination each of them is, where
effects on the latent add. A chain above another one is seen in what its states do next: `habits`.
"""

import itertools

import numpy as np

from svae.starting.actions import kmeans

TRIES = 300
SWEEPS = 50
RIDGE = 1e-2  # counts that hold an offset at 0
BOUTS = 8  # of the lower chain, in a window that shows what the upper one is in


def parted(latents: list[np.ndarray], weights: list[np.ndarray], sizes: tuple[int, ...], seed: int) -> list[list]:
    """Responsibilities (T_i, K) of every chain, by recording, from those (T_i, C) of states of all chains together.

    Each of the C states has an offset of how x moves; it becomes the combination whose sum of offsets, one for each
    chain, is nearest. The best of many starts is taken.
    """
    offsets, frames = _offsets(latents, weights)
    every = list(itertools.product(*map(range, sizes)))
    ones = [np.eye(K)[[combination[b] for combination in every]] for b, K in enumerate(sizes)]
    H, rng = np.concatenate(ones, 1), np.random.default_rng(seed)
    place = min((_nearest(offsets, frames, H, rng) for _ in range(TRIES)), key=lambda found: found[0])[1]
    return [[w @ one[place] for one in ones] for w in weights]


def _offsets(latents, weights):
    """What each state adds to x (C, D) in units of the noise, x before regressed out, and its frames (C,)."""
    before, x = (np.concatenate([a[part] for a in latents]) for part in (slice(None, -1), slice(1, None)))
    w = np.concatenate([a[1:] for a in weights])
    rows, D = np.concatenate([before, w], 1), before.shape[1]
    M = np.linalg.solve(rows.T @ rows + 1e-3 * np.eye(rows.shape[1]), rows.T @ x)
    left = x - rows @ M
    noise = left.T @ left / len(x) + 1e-6 * np.eye(D)
    return M[D:] @ np.linalg.inv(np.linalg.cholesky(noise)).T, w.sum(0)


def _nearest(offsets, frames, H, rng):
    """What one start leaves, and the combination of each state."""
    place = rng.integers(len(H), size=len(offsets))
    for _ in range(SWEEPS):
        rows = H[place]
        B = np.linalg.solve(
            rows.T @ (frames[:, None] * rows) + RIDGE * np.eye(H.shape[1]), rows.T @ (frames[:, None] * offsets)
        )
        away = ((offsets[:, None] - (H @ B)[None]) ** 2).sum(-1)
        last, place = place, away.argmin(1)
        if (last == place).all():
            break
    return float(frames @ away[np.arange(len(place)), place]), place


def habits(weights: list[np.ndarray], K: int, seed: int) -> list[np.ndarray]:
    """First states (T_i, K) of a chain above one with states `weights` (T_i, C): which switches are near in time."""
    paths = [w.argmax(1) for w in weights]
    switches = sum(int(np.sum(np.diff(z) != 0)) for z in paths)
    width = BOUTS * max(1, sum(map(len, paths)) // max(1, switches))
    features = np.concatenate(
        [np.sqrt(_near(_switches(z, w.shape[1]), width)) for z, w in zip(paths, weights, strict=True)]
    )
    found = kmeans(features, K, np.random.default_rng(seed))
    return np.split(np.eye(K)[found], np.cumsum(list(map(len, paths)))[:-1])


def _switches(z, C):
    """Which switch leads into each frame (T, C C); none where the state stays."""
    found = np.zeros((len(z), C * C))
    at = np.flatnonzero(np.diff(z)) + 1
    found[at, z[at - 1] * C + z[at]] = 1
    return found


def _near(x, width):
    """Means over `width` frames around each, as far as there are any."""
    total = np.concatenate([np.zeros((1, x.shape[1])), np.cumsum(x, 0)])
    t = np.arange(len(x))
    first, last = np.maximum(t - width // 2, 0), np.minimum(t + width // 2 + 1, len(x))
    return (total[last] - total[first]) / (last - first)[:, None]
