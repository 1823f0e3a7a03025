"""How long a bout lasts, guessed from the data alone: behaviour that is known for longer is made of longer units."""

import numpy as np

from .recordings import Recordings
from .views import cut

BOUT = 4.0  # autocorrelation times of position
SPEED_BOUT = 1.5  # autocorrelation times of speed
COMPONENTS = 10
STRETCHES, STRETCH = 10, 2000  # frames that are looked at: stretches of each recording, and frames of one
LONGEST_LAG = 1000  # frames of lag that are tried
STILL = 1e-3  # squared speed, of components of unit variance, that counts as none


def bout_frames(data: Recordings) -> float:
    """Frames that a bout may last, from how long the leading components of the data stay correlated.

    The memory is the lag at which their autocorrelation, averaged over the components at unit variance, falls below
    1/e. An action that repeats itself forgets within a period where it is, but not how fast it goes. So both are
    asked, and the longer answer counts: BOUT memories of position or SPEED_BOUT of speed.

    Args:
        data: Recordings.

    Returns:
        A number of frames.
    """
    pieces = _components([np.asarray(piece, float).reshape(len(piece), -1) for piece in _stretches(data)])
    return max(2.0, BOUT * _forgetting(pieces), SPEED_BOUT * _forgetting(_speeds(pieces)))


def _speeds(pieces: list[np.ndarray]) -> list[np.ndarray]:
    """Log squared speed (T, 1) of each piece, over all components and five frames: one frame says little of it."""
    squared = [np.sum(np.gradient(x, axis=0) ** 2, 1) for x in pieces if len(x) > 2]
    return [np.log(np.convolve(v, (0.25, 0.5, 0.25), "valid") + STILL)[:, None] for v in squared]


def _stretches(data: Recordings) -> list[np.ndarray]:
    """Parts of the recordings spread over all of them, few enough to hold in memory."""
    starts = [(y, first) for y in data.sequences for first in range(0, len(y), STRETCH)]
    chosen = np.unique(np.linspace(0, len(starts) - 1, STRETCHES * 2).astype(int))
    return [np.asarray(cut(y, first, min(first + STRETCH, len(y)))[:]) for y, first in (starts[i] for i in chosen)]


def _components(pieces: list[np.ndarray]) -> list[np.ndarray]:
    """Principal components at unit variance of standardised columns; what is missing is at its mean."""
    rows = np.concatenate(pieces)
    seen = np.isfinite(rows)
    mean = np.where(seen, rows, 0).sum(0) / np.maximum(seen.sum(0), 1)
    sd = np.sqrt((np.where(seen, rows - mean, 0) ** 2).sum(0) / np.maximum(seen.sum(0), 1))
    scale = np.where(sd > 1e-6 * max(sd.max(), 1e-300), sd, np.inf)  # a constant column tells nothing
    standard = [np.where(np.isfinite(y), y - mean, 0) / scale for y in pieces]
    sample = np.concatenate(standard)
    _, _, Vt = np.linalg.svd(sample[:: max(1, len(sample) // 5000)], full_matrices=False)
    found = [y @ Vt[:COMPONENTS].T for y in standard]
    spread = np.concatenate(found).std(0)
    return [x[:, spread > 1e-9] / spread[spread > 1e-9] for x in found]


def _forgetting(pieces: list[np.ndarray]) -> int:
    """The first lag whose mean autocorrelation is below 1/e."""
    if not pieces:
        return 1
    mean = np.concatenate(pieces).mean(0)
    away = [x - mean for x in pieces]
    total = sum(np.sum(x**2) for x in away)
    for lag in range(1, min(LONGEST_LAG, max(map(len, pieces)))):
        if sum(np.sum(x[lag:] * x[:-lag]) for x in away if len(x) > lag) < total / np.e:
            return lag
    return min(LONGEST_LAG, max(map(len, pieces)))
