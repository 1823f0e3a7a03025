"""Where states begin if some frames have labels: a linear discriminant on what frames and their surroundings are like.

It needs few labels, and knows nothing of what follows what. EM on the hidden chain, with labelled frames in their
states, then does.
"""

import numpy as np

from svae.starting.actions import kmeans

WINDOWS = (5, 15, 45)  # frames around each whose mean and spread are looked at
LEAST = 1e-9  # spread of a column that varies


def windowed(latents: list[np.ndarray]) -> np.ndarray:
    """Features of every frame of all sequences (T_i, D): place, velocity, and mean and spread of both over windows."""
    return np.concatenate([_windowed(np.asarray(x, float)) for x in latents])


def _windowed(x: np.ndarray) -> np.ndarray:
    moving = np.concatenate([x, np.gradient(x, axis=0) if len(x) > 1 else np.zeros_like(x)], 1)
    found = [moving]
    for width in WINDOWS:
        mean = _mean(moving, width)
        found += [mean, np.sqrt(np.maximum(_mean(moving**2, width) - mean**2, 0))]
    return np.concatenate(found, 1)


def _mean(x: np.ndarray, width: int) -> np.ndarray:
    """Moving average of (T, N), shorter at the ends."""
    sums = np.concatenate([np.zeros((1, x.shape[1])), np.cumsum(x, 0)])
    t = np.arange(len(x))
    first, last = np.maximum(t - width // 2, 0), np.minimum(t + width // 2 + 1, len(x))
    return (sums[last] - sums[first]) / (last - first)[:, None]


def begun(features: np.ndarray, labels: np.ndarray, K: int, rng: np.random.Generator) -> np.ndarray:
    """A state (N,) for each frame (N, F): its label, or the one that the discriminant gives it.

    States without any labelled frame get the frames that are farthest from all others, a share of their own each.
    """
    own = np.unique(labels[labels >= 0])
    free = np.setdiff1d(np.arange(K), own)
    scores, away = discriminant(features, labels)
    found = np.where(labels >= 0, labels, own[scores.argmax(1)])
    spare = np.flatnonzero(labels < 0)
    number = min(len(spare), int(len(features) * len(free) / K))
    if number:
        far = spare[np.argsort(-away[spare])[:number]]
        found[far] = free[kmeans(features[far], len(free), rng)]
    return found


def discriminant(features: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log p(label | frame) (N, L) up to a constant, and the distance (N,) to the nearest label."""
    known = labels >= 0
    own, place, count = np.unique(labels[known], return_inverse=True, return_counts=True)
    scale = features[known].std(0) + LEAST * (1 + np.abs(features[known]).max(0))
    x = features / scale
    means = np.stack([x[known][place == k].mean(0) for k in range(len(own))])
    S = shrunk(x[known] - means[place])
    across = np.linalg.solve(S, means.T)  # (F, L)
    scores = x @ across - np.sum(means * across.T, 1) / 2 + np.log(count / count.sum())
    square = np.stack([np.sum((x - m) * np.linalg.solve(S, (x - m).T).T, 1) for m in means], 1)
    return scores, np.sqrt(square.min(1))


def shrunk(x: np.ndarray) -> np.ndarray:
    """The covariance of centred rows (n, F), towards a multiple of the identity (Ledoit and Wolf, 2004)."""
    n, F = x.shape
    S = x.T @ x / n
    mean = np.trace(S) / F
    away = np.sum((S - mean * np.eye(F)) ** 2)
    noise = min((np.sum(np.sum(x**2, 1) ** 2) / n - np.sum(S**2)) / n, away)
    share = noise / away if away > 0 else 1.0
    return (1 - share) * S + (share * mean + LEAST) * np.eye(F)
