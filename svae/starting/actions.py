"""What a start of the states looks at: where x is, how fast it goes and how it turns, over a window; and k-means."""

import numpy as np

FEATURE_WINDOW = 9  # frames, where no duration is asked for
WINDOW_SHARE = 0.45  # of the duration of a bout: long enough to span a phase, short enough to meet one action
FEATURES = 12
FARTHEST = 3.0  # sd from the mean at which what lies beyond is seen: a glitch must not get a state of its own


def window_frames(duration: float | None) -> int:
    """An odd number of frames."""
    return FEATURE_WINDOW if duration is None else max(3, int(WINDOW_SHARE * duration) // 2 * 2 + 1)


def action_features(latents: list[np.ndarray], window: int = FEATURE_WINDOW) -> np.ndarray:
    """Position, log speed and turning of all sequences, averaged over a window: an action, whatever its phase.

    Each of the three weighs the same, however many columns it has: of D dimensions there are D² / 2 turnings.
    """
    moved = [_motion(np.asarray(x, float), window) for x in latents]
    centred = np.concatenate([_weighed(np.concatenate(kind)) for kind in zip(*moved, strict=True)], 1)
    if centred.shape[1] <= FEATURES:
        return centred
    _, _, Vt = np.linalg.svd(centred[:: max(1, len(centred) // 5000)], full_matrices=False)
    return centred @ Vt[:FEATURES].T


def _weighed(columns: np.ndarray) -> np.ndarray:
    """Columns (N, n) of about unit variance together."""
    return bounded(columns) / np.sqrt(max(1, columns.shape[1]))


def bounded(columns: np.ndarray) -> np.ndarray:
    """Columns (N, n) at mean 0 and unit variance, then bounded."""
    return np.clip((columns - columns.mean(0)) / (columns.std(0) + 1e-9), -FARTHEST, FARTHEST)


def _motion(x: np.ndarray, window: int) -> tuple[np.ndarray, ...]:
    v = np.gradient(x, axis=0) if len(x) > 1 else np.zeros_like(x)
    i, j = np.triu_indices(x.shape[1], 1)
    turning = x[:, i] * v[:, j] - x[:, j] * v[:, i]
    return smooth(x, window), np.log(smooth(v**2, window) + 1e-3), smooth(turning, window)


def smooth(x: np.ndarray, window: int = FEATURE_WINDOW) -> np.ndarray:
    """Moving average of (T, N) over an odd number of frames, shorter at the ends."""
    kernel = np.hanning(window + 2)[1:-1]
    padded = np.pad(np.c_[np.ones(len(x)), x], ((window // 2, window // 2), (0, 0)))
    sums = sum(w * padded[i : i + len(x)] for i, w in enumerate(kernel))
    return sums[:, 1:] / sums[:, :1]


def kmeans(x: np.ndarray, K: int, rng: np.random.Generator, *, sweeps: int = 30) -> np.ndarray:
    """Labels (N,) by Lloyd's algorithm from a k-means++ start."""
    centres = x[rng.integers(len(x))][None]
    for _ in range(min(K, len(x)) - 1):
        nearest = np.min(_distances(x, centres), 1)
        total = nearest.sum()
        chosen = rng.choice(len(x), p=nearest / total) if total > 0 else rng.integers(len(x))
        centres = np.concatenate([centres, x[chosen][None]])
    for _ in range(sweeps):
        labels = np.argmin(_distances(x, centres), 1)
        centres = np.stack([x[labels == k].mean(0) if np.any(labels == k) else c for k, c in enumerate(centres)])
    return labels


def _distances(x: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return np.maximum((x**2).sum(1)[:, None] - 2 * x @ centres.T + (centres**2).sum(1)[None], 0)
