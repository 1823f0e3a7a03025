"""Are there states at all: the same search on recordings with the same spectrum and without states. numpy only.

Any smooth recording can be cut into pieces, and every piece moves a little differently. So a likelihood that rises with
the number of states says nothing by itself. What says something is how much more it rises than for data that cannot
have states: a stationary linear-Gaussian process with the same spectrum. Its surrogates are the recording with random
phases, the same for all columns, so that what columns have to do with each other and with their past stays (Prichard
and Theiler, 1994). Frames in random order would be the wrong comparison here, since they lose the dynamics together
with the states; they are the right one for dynamics.
"""

import itertools
from typing import NamedTuple

import numpy as np

from svae.data.scores import adjusted_rand_index
from svae.starting import conditionals
from svae.starting.em import Runs, em

FRAMES, PIECE = 3000, 1000  # that are compared, and of a stretch of them: what it costs is bounded
MOST_STATES, MOST_COLUMNS = 8, 8
SURROGATES, STARTS = 3, 2
TAPER = 0.1  # of a stretch, at each end
FEWEST = 100  # frames, of which so much can be said


ABOVE, LEAST = 1.25, 0.05  # times the largest number without, and nats above it, that a recording has which is more


class Pair(NamedTuple):
    """A number of the recordings, and of others without what it is about."""

    found: float
    without: tuple[float, ...]

    @property
    def above(self) -> bool:
        """Whether the recordings have more of it."""
        return self.found >= max(ABOVE * max(self.without), max(self.without) + LEAST)


class Null(NamedTuple):
    """Recordings beside others without states, or without dynamics; None where the model has none either."""

    frames: int
    states: int
    gain: Pair | None  # nats a frame of so many states over one
    agreement: Pair | None  # of the starts (adjusted Rand index)
    dynamics: Pair | None  # nats that the frame before tells of a frame by one linear map
    why: str = ""  # nothing could be compared


def compared(latents: list[np.ndarray], states: int, *, dynamic: bool, seed: int) -> Null:
    """Warm latents (T_i, D) beside surrogates of them; one state means that the model has none."""
    some, rng = _leading(_some(latents)), np.random.default_rng(seed)
    frames, K = sum(map(len, some)), min(states, MOST_STATES)
    if frames < FEWEST:
        return unknown(f"the recordings have fewer than {FEWEST} frames in stretches of two and more")
    dynamics = Pair(_told(some), (_told([rng.permutation(np.concatenate(some))]),)) if dynamic else None
    if K < 2:
        return Null(frames, 1, None, None, dynamics)
    others = [[surrogate(x, rng) for x in some] for _ in range(SURROGATES)]
    gain, agreement = zip(*(_searched(each, K, dynamic, seed) for each in [some, *others]), strict=True)
    return Null(frames, K, Pair(gain[0], gain[1:]), Pair(agreement[0], agreement[1:]), dynamics)


def unknown(why: str) -> Null:
    """Nothing was compared, and why."""
    return Null(0, 0, None, None, None, why)


def surrogate(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A sequence (T, D) with the mean and the spectrum of another, whose phases are random, all columns turned alike.

    Its ends are faded out before: the Fourier transform would take a jump from the end to the beginning for movement.
    """
    T, mean = len(x), x.mean(0)
    fade = _fade(T)
    waves = np.fft.rfft((x - mean) * fade[:, None] / np.sqrt(np.mean(fade**2)), axis=0)
    turn = np.exp(2j * np.pi * rng.random(len(waves)))
    turn[0] = 1
    if T % 2 == 0:
        turn[-1] = rng.choice([-1, 1])
    return np.fft.irfft(waves * turn[:, None], T, axis=0) + mean


def _fade(T: int) -> np.ndarray:
    """1, and from 0 to 1 and back at the ends (T,)."""
    rise = np.sin(np.pi / 2 * (np.arange(int(TAPER * T)) + 0.5) / max(1, int(TAPER * T)))
    return np.concatenate([rise, np.ones(T - 2 * len(rise)), rise[::-1]])


def _some(latents: list[np.ndarray]) -> list[np.ndarray]:
    """Stretches spread over all recordings, FRAMES in all about."""
    pieces = [x[first : first + PIECE] for x in latents for first in range(0, len(x), PIECE)]
    pieces = [np.asarray(x, float) for x in pieces if len(x) > 1]
    number = max(1, round(len(pieces) * FRAMES / max(1, sum(map(len, pieces)))))
    return [pieces[i] for i in np.linspace(0, len(pieces) - 1, number).astype(int)] if number < len(pieces) else pieces


def _leading(latents: list[np.ndarray]) -> list[np.ndarray]:
    """The principal components of latents that vary most, MOST_COLUMNS at most."""
    if not latents or latents[0].shape[1] <= MOST_COLUMNS:
        return latents
    rows = np.concatenate(latents)
    _, _, Vt = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
    return [x @ Vt[:MOST_COLUMNS].T for x in latents]


def _told(latents: list[np.ndarray]) -> float:
    """Nats that the frame before tells of a frame, by one linear map."""
    sd = np.concatenate(latents).std(0)
    scaled = [x[:, sd > 0] / sd[sd > 0] for x in latents]
    before, x = (np.concatenate([each[part] for each in scaled]) for part in (slice(None, -1), slice(1, None)))
    ones = np.ones((len(x), 1))
    alone, after = (_one_state(np.concatenate(v, 1), x.shape[1]) for v in ([ones, x], [before, ones, x]))
    return (after - alone) / len(x)


def _one_state(rows: np.ndarray, D: int) -> float:
    return float(conditionals.log_prob(rows, np.ones((len(rows), 1)), D).sum())


def _searched(latents: list[np.ndarray], K: int, dynamic: bool, seed: int) -> tuple[float, float]:
    """Nats a frame over one state of the likeliest start, and how far the starts agree."""
    run = em([(x, x) for x in latents], K, np.zeros(STARTS), [None] * STARTS, dynamic, seed, lambda: False)
    while True:
        try:
            next(run)
        except StopIteration as ended:
            return _found(ended.value)


def _found(runs: Runs) -> tuple[float, float]:
    view, likely = runs.search.views[0], runs.swept.log_likelihood
    rows = view.pairs[view.counted]
    agreed = [adjusted_rand_index(a, b) for a, b in itertools.combinations(runs.labels(range(len(likely))), 2)]
    return float(likely.max() - _one_state(rows, view.D)) / len(rows), float(np.mean(agreed))
