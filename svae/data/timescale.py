"""How long a bout lasts, guessed from the data alone: behaviour that is known for longer is made of longer units."""

import numpy as np

from .recordings import Recordings
from .views import cut

BOUT = 4.0  # autocorrelation times
COMPONENTS = 10
STRETCHES, STRETCH = 10, 2000  # frames that are looked at: stretches of each recording, and frames of one
LONGEST = 1000  # frames of lag that are tried


def bout_frames(data: Recordings) -> float:
    """Frames that a bout may last: BOUT times the lag at which the leading components of the data forget themselves.

    The lag is where their autocorrelation, averaged over the components at unit variance, falls below 1/e. On three
    labelled recordings (motion capture at 10 and 30 Hz, birdsong at 250 Hz) bouts last 5 to 8 such lags.
    """
    pieces = _components([np.asarray(piece, float).reshape(len(piece), -1) for piece in _stretches(data)])
    return max(2.0, BOUT * _forgetting(pieces))


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
    mean = np.concatenate(pieces).mean(0)
    away = [x - mean for x in pieces]
    total = sum(np.sum(x**2) for x in away)
    for lag in range(1, min(LONGEST, max(map(len, pieces)))):
        if sum(np.sum(x[lag:] * x[:-lag]) for x in away if len(x) > lag) < total / np.e:
            return lag
    return min(LONGEST, max(map(len, pieces)))
