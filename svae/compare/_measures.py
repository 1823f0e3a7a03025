"""What each animal says: how much of its time is in each state, how long bouts last, and what follows them."""

import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from svae.runs import Bout

IN_USE = 0.01  # of the time of the average animal, for a state to be tested
FREQUENT = 0.05  # of the bouts of a state in the average animal, for what follows it to be tested
SHORTEST = 1e-6  # seconds: what bouts.csv can tell from nothing
FEWEST_BOUTS = 5  # of a state, below which an animal says nothing of their length or of what follows


class Measure(NamedTuple):
    """One family of tests: a number for each animal and key, NaN where the animal says nothing."""

    name: str
    keys: list[tuple[int, ...]]  # (state,) or (state, next state)
    values: Float[np.ndarray, "n m"]  # on the scale on which groups are compared
    logarithmic: bool  # then differences are told as ratios
    unit: str  # of a value that is shown

    def shown(self, value):
        """In its unit."""
        return np.exp(value) if self.logarithmic else value

    @property
    def effect_unit(self) -> str:
        return "ratio" if self.logarithmic else "percentage points"


def measures(bouts: list[Bout], animal: dict[str, int], animals: int) -> list[Measure]:
    """Usage, duration and transitions; `animal` is the number of each recording's animal.

    Which states and transitions are tested depends on all animals together, never on their groups.
    """
    found = _tally(bouts, animal, animals)
    usage = found.seconds / found.seconds.sum(1, keepdims=True)
    states = np.flatnonzero(usage.mean(0) >= IN_USE)
    return [
        Measure("usage", [(int(k),) for k in states], 100 * usage[:, states], False, "% of the time"),
        Measure("duration", [(int(k),) for k in states], _mean(found.logs, found.count)[:, states], True, _unit(bouts)),
        _transitions(found.follows, states),
    ]


class _Tally(NamedTuple):
    """Sums of each animal (n, K): time, log durations and number of whole bouts; (n, K, K) what followed what."""

    seconds: np.ndarray
    logs: np.ndarray
    count: np.ndarray
    follows: np.ndarray


def _tally(bouts, animal, animals):
    K = 1 + max(bout.state for bout in bouts)
    found = _Tally(*np.zeros((3, animals, K)), np.zeros((animals, K, K)))
    for name, group in itertools.groupby(bouts, key=lambda bout: bout.recording):
        i, recording = animal[name], list(group)
        for bout in recording:
            found.seconds[i, bout.state] += bout.stop - bout.start
        for bout in recording[1:-1]:  # the first and the last are cut off by the recording
            found.logs[i, bout.state] += np.log(max(bout.stop - bout.start, SHORTEST))
            found.count[i, bout.state] += 1
        for bout, following in itertools.pairwise(recording):
            found.follows[i, bout.state, following.state] += 1
    return found


def _mean(total, count):
    """NaN where there are too few."""
    return np.where(count >= FEWEST_BOUTS, total, np.nan) / np.maximum(count, 1)


def _transitions(follows, states):
    rows = _mean(follows, follows.sum(2, keepdims=True))
    with_any = np.isfinite(rows).any(0)
    average = np.where(with_any, np.nansum(rows, axis=0) / np.maximum(np.isfinite(rows).sum(0), 1), 0)
    keys = [(int(i), int(j)) for i, j in itertools.permutations(states, 2) if average[i, j] >= FREQUENT]
    values = np.stack([rows[:, i, j] for i, j in keys], -1) if keys else np.zeros((len(follows), 0))
    return Measure("transitions", keys, 100 * values, False, "% of the bouts")


def _unit(bouts):
    """Frames where no clock was known."""
    return "frames" if any(bout.unit == "frames" for bout in bouts) else "s"
