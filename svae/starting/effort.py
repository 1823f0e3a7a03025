"""How much of a search for states is done, and how much there is to do."""

import itertools
from collections.abc import Generator
from typing import Any

import numpy as np

STARTS = 4
PLACES = (0.0, 0.3, 1.0, 3.0)  # weights of where x is, beside 1 for how it moves
COMPARED_FRAMES = 6000  # on which the weights are compared
MORE = 2  # times as many states as asked for at a start; those that are most alike are merged
MERGERS = 16  # rounds of them at most, about: one pair in each where few states are asked for
FIRST, EACH, LAST = 8, 2, 20  # sweeps of EM with all of them, after each round, and in the end
SETTLE = 6  # sweeps after each merger below the number of states that was asked for
PATIENCE = 8  # rounds of mergers in a row that are not worth it, after which no more are tried
FEWEST = 2  # states that are left in any case


def counted(run: Generator[None, None, Any], work: list[int], *, first: bool) -> Generator[float, None, Any]:
    """The share of the work that is done, after each sweep; more durations than one are not foreseen."""
    done = np.cumsum([0, *work]) / sum(work)
    for number in itertools.count():
        yield float(min(done[min(number, len(work))], 0.99)) if first else 0.99
        try:
            next(run)
        except StopIteration as ended:
            return ended.value


def effort(frames: int, K: int, *, places: bool, starts: int = STARTS) -> int:
    """What a search among so many frames takes: frames times runs times states, over all of its sweeps."""
    return sum(sweeps(frames, K, len(PLACES) if places else 1, starts))


def sweeps(frames: int, K: int, weights: int, starts: int) -> list[int]:
    """The effort of each sweep: the weights are compared on some of the frames, then one is taken for all.

    Mergers below K end when they are not worth it; here none is, so that a search does a little more or less.
    """
    twice = weights > 1 and frames > COMPARED_FRAMES
    compared = _of_a_stage(weights * starts * (COMPARED_FRAMES if twice else frames), K)
    again = _of_a_stage(starts * frames, K) if twice else []
    return compared + again + [starts * frames * states for states in _fewer(K) for _ in range(SETTLE)]


def _fewer(K: int) -> list[int]:
    """Numbers of states below K, as long as mergers are tried that are not worth it."""
    found = []
    while K > FEWEST and len(found) < PATIENCE:
        K = max(FEWEST, K - -(-K // MERGERS))
        found.append(K)
    return found


def _of_a_stage(frames, K):
    """There are more states at first."""
    number = -(-K // MERGERS)
    merging = [states for states in range(MORE * K - number, K, -number) for _ in range(EACH)]
    return [frames * n for n in [MORE * K] * FIRST + merging + [K] * (EACH + LAST)]
