"""Bouts of the states of a run, and which of them to show."""

import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from svae.data.scores import IN_USE


class Stretch(NamedTuple):
    """Frames [first, last) of one recording in one state."""

    recording: int
    state: int
    first: int
    last: int

    @property
    def frames(self) -> int:
        return self.last - self.first


def stretches(recording: int, state: Int[np.ndarray, " T"]) -> list[Stretch]:
    """Maximal stretches of one state, in order."""
    edges = np.flatnonzero(np.r_[True, state[1:] != state[:-1], True])
    return [Stretch(recording, int(state[a]), int(a), int(b)) for a, b in itertools.pairwise(edges)]


def bouts(paths: list[np.ndarray]) -> list[Stretch]:
    """The bouts of every recording."""
    return [bout for i, path in enumerate(paths) for bout in stretches(i, path)]


def in_use(paths: list[np.ndarray]) -> list[int]:
    """States with a share of the frames worth showing, the commonest first."""
    counts = np.bincount(np.concatenate(paths))
    return [int(k) for k in np.argsort(-counts, kind="stable") if counts[k] >= IN_USE * counts.sum()]


def median(every: list[Stretch], state: int) -> float:
    """Frames of a bout of a state."""
    return float(np.median([b.frames for b in every if b.state == state]))


def typical(every: list[Stretch], state: int, number: int, room: int, lengths: list[int]) -> list[Stretch]:
    """At most `number` bouts near the median duration of their state; those with room on both sides come first."""
    middle = median(every, state)
    inside = lambda b: b.first >= room and b.last + room <= lengths[b.recording]  # noqa: E731
    mine = [b for b in every if b.state == state]
    return sorted(mine, key=lambda b: (not inside(b), abs(b.frames - middle), b))[:number]
