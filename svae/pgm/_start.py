"""Where a graph starts: q(theta) after complete data, and ordinary parameters by regression on it."""

from typing import Any

import numpy as np

from svae.pgm._block import Said
from svae.pgm._sweep import Node

ROW = 20  # frames in one state, where a discrete block starts from nothing


def complete(graph: Any, latents: list, states: list, inputs: list | None) -> list[tuple[Node, list, list[Said], dict]]:
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
