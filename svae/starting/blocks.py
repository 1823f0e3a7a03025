"""First states of every discrete block of a graph that has several: a search for each latent that they act on.

Blocks that share a latent are searched for together, on its columns alone, and then parted. A block above others alone
begins with what these do next. numpy only.
"""

import math
from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np

from svae.starting.effort import SEARCHED
from svae.starting.several import habits, parted
from svae.starting.states import Starts, States, search

MOST_TOGETHER = 24  # states that blocks which share a latent are searched for together


class Group(NamedTuple):
    """Discrete blocks that are searched for together."""

    names: tuple[str, ...]
    columns: list[int]  # of the latents below them
    dynamic: bool  # whether one of these depends on the frame before


def search_each(pgm: Any, latents: list, places: list | None, asked: dict) -> Generator[float, None, tuple]:
    """States of the block that is shown, and of every discrete block by name, for each recording.

    `asked` is what `search` takes of duration, seed and hurry. Yields the share done.
    """
    groups, found, weights, seed = groups_of(pgm), {}, {}, asked["seed"]
    for number, (names, columns, dynamic) in enumerate(groups):
        sizes = tuple(pgm.discrete[name] for name in names)
        own, where = (None if kind is None else [x[:, columns] for x in kind] for kind in (latents, places))
        leading = [x[:, :SEARCHED] for x in own]
        looking = search(leading, min(math.prod(sizes), MOST_TOGETHER), dynamic=dynamic, places=where, **asked)
        found[names] = together = yield from _shares(looking, number, len(groups))
        each = [[w] for w in together.weights]
        if len(names) > 1:
            each = parted(leading, together.weights, sizes, seed)
        weights |= {name: [w[b] for w in each] for b, name in enumerate(names)}
    for node in pgm.nodes[::-1] * len(pgm.nodes):  # what is above is known once what is below it is
        for parent in (*node.parents, *node.before):
            if parent not in weights and node.name in weights:
                weights[parent] = habits(weights[node.name], pgm.discrete[parent], seed)
    shown = _shown(pgm.shown, found, weights[pgm.shown])
    return shown, [{name: w[i] for name, w in weights.items()} for i in range(len(latents))]


def groups_of(pgm: Any) -> list[Group]:
    """Discrete blocks with a latent below them, those that share one together; none is in two groups."""
    parts, found = pgm.parts(), {}
    for node in pgm.nodes:
        if node.block.continuous and node.parents:
            columns, moves = found.get(node.parents, ([], False))
            part = parts[node.name]
            found[node.parents] = [*columns, *range(part.start, part.stop)], moves or node.block.remembers
    taken, groups = set(), []
    for names, (columns, moves) in sorted(found.items(), key=lambda one: -len(one[0])):
        if left := tuple(name for name in names if name not in taken):
            groups.append(Group(left, columns, moves))
            taken |= set(left)
    return groups


def _shown(name: str, found: dict[tuple[str, ...], States], weights: list[np.ndarray]) -> States:
    """What was found of one block; starts are compared and places known only where it was searched for alone."""
    if (name,) in found:
        return found[name,]
    K, frames = weights[0].shape[1], np.concatenate(weights).sum(0)
    searched = next((states for names, states in found.items() if name in names), next(iter(found.values())))
    starts = Starts(1, (float("nan"),) * K, searched.starts.duration)
    switches = sum(float(np.sum(1 - np.sum(w[1:] * w[:-1], 1))) for w in weights)
    place = searched.place if any(name in names for names in found) else 0.0
    number = int(np.sum(frames >= 1))
    return searched._replace(weights=weights, starts=starts, switches=switches, place=place, number=number)


def _shares(search: Generator, number: int, of: int) -> Generator[float, None, States]:
    """A search as the `number`-th part of several."""
    while True:
        try:
            share = next(search)
        except StopIteration as ended:
            return ended.value
        yield (number + share) / of
