"""Bouts in frames: how long, how often, after which, and which of them to show."""

import itertools

import numpy as np
from jaxtyping import Float, Int

from svae.experiments._bouts import Stretch, stretches
from svae.runs import Posterior

__all__ = ["Stretch", "durations", "examples", "followed", "stretches", "usage"]


def usage(found: list[Posterior]) -> Float[np.ndarray, " K"]:
    """Share of all frames in each state."""
    counts = sum(np.bincount(p.state, minlength=p.probability.shape[1]) for p in found)
    return counts / counts.sum()


def durations(found: list[Stretch], state: int) -> Int[np.ndarray, " n"]:
    """Frames of each bout of a state."""
    return np.array([s.frames for s in found if s.state == state], int)


def followed(found: list[Stretch], K: int) -> Float[np.ndarray, "K K"]:
    """How often a bout of one state is followed by one of another; rows sum to 1, or to 0 where nothing follows."""
    counts = np.zeros((K, K))
    for this, following in itertools.pairwise(found):
        if this.recording == following.recording:
            counts[this.state, following.state] += 1
    return counts / np.maximum(counts.sum(1, keepdims=True), 1)


def examples(found: list[Stretch], state: int, lengths: list[int], number: int, before: int, after: int):
    """At most `number` bouts of a state: first those with room on both sides, of about median length, spread out.

    Bouts of many recordings come before many bouts of one.
    """
    mine = [s for s in found if s.state == state]
    middle = np.median([s.frames for s in mine]) if mine else 0
    room = lambda s: s.first >= before and s.first + after <= lengths[s.recording]  # noqa: E731
    ordered = sorted(
        mine, key=lambda s: (not room(s), abs(np.log(s.frames / middle)) > np.log(2), s.recording, s.first)
    )
    return _in_turn(ordered[: 4 * number])[:number]


def _in_turn(ordered: list[Stretch]) -> list[Stretch]:
    """One of each recording, then a second of each, and so on."""
    turn: dict[int, int] = {}
    keyed = []
    for place, s in enumerate(ordered):
        turn[s.recording] = turn.get(s.recording, -1) + 1
        keyed.append((turn[s.recording], place, s))
    return [s for _, _, s in sorted(keyed)]
