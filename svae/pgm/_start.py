"""Where a graph starts: q(theta) after complete data, and ordinary parameters by regression on it."""

import dataclasses
from typing import Any

import numpy as np

from svae.pgm import _group_transitions, _inputs
from svae.pgm._block import Said
from svae.pgm._sweep import Node, recorded

ROW = 20  # frames in one state, where a discrete block starts from nothing


def initialize(graph: Any, latents: list, states: list, inputs: list | None, groups: list[int] | None) -> Any:
    """q(theta) = prior + statistics of complete data."""
    for i, x in enumerate(latents):
        _inputs.check(graph, None if inputs is None else inputs[i], len(x))
    fitted = [
        _group_transitions.initialize(graph, node, own, said, groups)
        if node.block.by
        else node.block.initialize(getattr(graph.prior, node.name), node.every_size, own, said, **known)
        for node, own, said, known in _complete(graph, latents, states, inputs)
    ]
    return recorded(graph.nodes, fitted)


def start(graph: Any, q: Any, latents: list, states: list, inputs: list | None) -> Any:
    """The graph with ordinary parameters that follow from complete data, and from q(theta) of it."""
    parts, found = graph.parts(), []
    for node, own, said, known in _complete(graph, latents, states, inputs):
        x = None if node.driver is None else [path[:, parts[node.driver]] for path in latents]
        ordinary, of_node = getattr(graph.ordinary, node.name), getattr(q, node.name)
        regressed = lambda: node.block.start(ordinary, of_node, own, said, x, **known)  # noqa: B023, E731
        found.append(_group_transitions.start(graph, node, of_node) if node.block.by else regressed())
    return dataclasses.replace(graph, ordinary=recorded(graph.nodes, found))


def _complete(graph: Any, latents: list, states: list, inputs: Any) -> list[tuple[Node, list, list[Said], dict]]:
    """Complete data of every node: its own values and its discrete parents', by recording, and its inputs if any."""
    every = [_responsibilities(graph, w, len(x), i) for i, (x, w) in enumerate(zip(latents, states, strict=True))]
    parts, found = graph.parts(), []
    for node in graph.nodes:
        own = [x[:, parts[node.name]] for x in latents] if node.block.continuous else [w[node.name] for w in every]
        said = [tuple(w[parent] for parent in (*node.parents, *node.before)) for w in every]
        found.append((node, own, said, {"inputs": inputs} if node.block.inputs else {}))
    return found


def _responsibilities(graph: Any, found: Any, T: int, seed: int) -> dict[str, np.ndarray]:
    """Responsibilities of every discrete block: as given, or random where none are given."""
    if not isinstance(found, dict):
        found = {} if graph.shown is None else {graph.shown: found}
    rng = np.random.default_rng(seed)
    missing = {name: K for name, K in graph.discrete.items() if name not in found}
    return found | {
        name: np.eye(K)[np.repeat(rng.integers(K, size=T // ROW + 1), ROW)[:T]] for name, K in missing.items()
    }
