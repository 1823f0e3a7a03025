"""Paths of all blocks of a graph: each block in one go, or, where one looks back at another, frame by frame."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from svae.pgm._posterior import keys_of
from svae.pgm._sweep import Node, recorded


def simulate(graph: Any, theta: Any, length: int, key: PRNGKeyArray, start: Any, inputs: Array | None) -> Any:
    """A path of every block, by name; `start` are paths, of which the last frame counts."""
    way = _frame_by_frame if any(node.earlier for node in graph.nodes) else _together
    paths = way(graph, theta, length, key, None if start is None else start._asdict(), inputs)
    return recorded(graph.nodes, [paths[node.name] for node in graph.nodes])


def states_of(path: Any) -> Any:
    """The states of a discrete block's path, which may say more of a frame than its state."""
    return getattr(path, "states", path)


def _together(graph: Any, theta: Any, length: int, key: PRNGKeyArray, start: Any, inputs: Array | None) -> dict:
    paths: dict[str, Any] = {}
    for node, key_own in zip(graph.nodes, keys_of(key, len(graph.nodes)), strict=True):
        said, own = tuple(states_of(paths[parent]) for parent in node.parents), getattr(theta, node.name)
        known = graph.beside(node, inputs) | (_earlier(node, start) if node.earlier else {})
        last = None if start is None else start[node.name]
        paths[node.name] = node.block.simulate(own, node.every_size, said, length, key=key_own, start=last, **known)
    return paths


def _frame_by_frame(graph: Any, theta: Any, length: int, key: PRNGKeyArray, start: Any, inputs: Array | None) -> dict:
    key_first, key_rest = jax.random.split(key)
    known = jnp.zeros((length, 0)) if inputs is None else inputs
    asked = lambda u: None if inputs is None else u[None]  # noqa: E731

    def advance(last, step):
        u, key = step
        now = _together(graph, theta, 1, key, last, asked(u))
        return now, now

    last = None if start is None else jax.tree.map(lambda a: a[-1:], start)
    first = _together(graph, theta, 1, key_first, last, asked(known[0]))
    _, rest = jax.lax.scan(advance, first, (known[1:], jax.random.split(key_rest, length - 1)))
    return jax.tree.map(lambda a, b: jnp.concatenate([a, b[:, 0]]), first, rest)


def _earlier(node: Node, last: dict | None) -> dict[str, Any]:
    """What the frame before holds of the parents; before the first frame, nothing that counts."""
    if last is None:
        return {"before": tuple(jnp.zeros(1, int) for _ in node.before), "x": None}
    x = None if node.driver is None else last[node.driver]
    return {"before": tuple(states_of(last[parent]) for parent in node.before), "x": x}
