"""How much of a search for states is done, and how much there is to do."""

import itertools
from collections.abc import Generator
from typing import Any

import numpy as np

STARTS = 4
SEARCHED = 8  # leading latent dimensions in which states are looked for
PLACES = (0.0, 0.3, 1.0, 3.0)  # weights of where x is, beside 1 for how it moves
COMPARED_FRAMES = 6000  # on which weights are compared, and starts that ask for a duration with starts that do not
PAIR = 2  # starts that are compared where there is one weight: with the duration, and without
MOST_PAIRS = 8  # of starts at a weight: of few frames many more are affordable, and EM ends in many places
PAIRED = 100_000  # frames times states, at first, that one side of all pairs of a weight sees at most
MORE = 2  # times as many states as asked for at a start; those that are most alike are merged
MERGERS = 16  # rounds of them at most, about: one pair in each where few states are asked for
FIRST, EACH, LAST = 8, 2, 20  # sweeps of EM with all of them, after each round, and in the end
SETTLE = 6  # sweeps after each merger below the number of states that was asked for
PATIENCE = 8  # rounds of mergers in a row that are not worth it, after which no more are tried
FEWEST = 2  # states that are left in any case


def counted(run: Generator[None, None, Any], work: list[int]) -> Generator[float, None, Any]:
    """The share of the work that is done, after each sweep; a second search of all frames is not foreseen."""
    done = np.cumsum([0, *work]) / sum(work)
    for number in itertools.count():
        yield float(min(done[min(number, len(work))], 0.99))
        try:
            next(run)
        except StopIteration as ended:
            return ended.value


def effort(frames: int, K: int, *, places: bool, starts: int = STARTS) -> int:
    """What a search among so many frames takes: frames times runs times states, over all of its sweeps."""
    return sum(sweeps(frames, K, places, starts))


def compared_starts(frames: int, K: int, places: bool, starts: int) -> int:
    """Starts at each weight that are compared on some of the frames; half ask for the duration, if there is one."""
    if not places or starts == 1:
        return PAIR if starts > 1 else 0
    affordable = PAIRED // (min(frames, COMPARED_FRAMES) * MORE * K)
    return 2 * min(max(starts // 2, affordable), MOST_PAIRS)


def goes_on(frames: int, compared: int, starts: int) -> bool:
    """Whether compared starts are taken further: they have seen all frames, and there are enough of each kind."""
    return frames <= COMPARED_FRAMES and compared >= 2 * starts


def sweeps(frames: int, K: int, places: bool, starts: int) -> list[int]:
    """The effort of each sweep: runs are compared on some of the frames, then the starts see all.

    Mergers below K end when they are not worth it; here none is, so that a search does a little more or less.
    """
    compared = compared_starts(frames, K, places, starts)
    runs = (len(PLACES) if places else 1) * compared
    first = _of_a_stage(runs * min(frames, COMPARED_FRAMES), K) if runs else []
    again = [] if goes_on(frames, compared, starts) else _of_a_stage(starts * frames, K)
    return first + again + [starts * frames * states for states in _fewer(K) for _ in range(SETTLE)]


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
