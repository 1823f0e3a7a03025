"""The making of a graph: each block in its place, with its prior and the start of its ordinary parameters."""

from collections.abc import Callable
from typing import Any

from svae.pgm import _group_transitions
from svae.pgm._block import names, parents
from svae.pgm._check import ordered
from svae.pgm._graph import Graph
from svae.pgm._mean_field import implicit, step_by_step
from svae.pgm._sweep import Node, Nodes, recorded


def graph(*, show: str | None = None, solve: Callable | None = None, **blocks: Any) -> Graph:
    """A latent graph of named blocks: graph(z=Markov(20), x=Dynamics(8, given="z")).

    `show` names the discrete block that stands for all where there is room for one (default: the one nearest to x).
    GraphError says in one sentence what cannot be inferred.

    Args:
        show: The name of a discrete block.
        solve: How mean field finds its fixed point, and how derivatives go through it; None for the usual way.
        blocks: The blocks by name, parents before or after their children.

    Returns:
        `Graph`, for `svae.make(shape, pgm=...)`.

    Examples:
        >>> from svae.pgm import Dynamics, Markov, graph
        >>> graph(mood=Markov(2), z=Markov(5, given="mood"), x=Dynamics(3, given="z")).discrete
        {'mood': 2, 'z': 5}
    """
    nodes = tuple(_in_place(name, blocks) for name in ordered(blocks, show))
    drivers = [{} if node.driver is None else {"driver": blocks[node.driver].size} for node in nodes]
    each = list(zip(nodes, drivers, strict=True))
    prior = recorded(nodes, [node.block.prior(node.every_size, **driver) for node, driver in each])
    ordinary = recorded(nodes, [_group_transitions.ordinary(node, driver.get("driver", 0)) for node, driver in each])
    usual = step_by_step if any(node.block.nonlinear for node in nodes) else implicit
    made = Graph(prior, nodes, _nearest(nodes) if show is None else show, solve or usual, ordinary)
    return made.for_groups(0)


def _in_place(name: str, blocks: dict[str, Any]) -> Node:
    sizes = lambda found: tuple(blocks[parent].size for parent in found)  # noqa: E731
    within, earlier = parents(blocks[name]), names(blocks[name].after)
    before = tuple(parent for parent in earlier if not blocks[parent].continuous)
    driver = next((parent for parent in earlier if blocks[parent].continuous), None)
    return Node(name, blocks[name], within, sizes(within), before, sizes(before), driver)


def _nearest(nodes: Nodes) -> str | None:
    """The first discrete parent of a continuous block."""
    found = [parent for node in nodes if node.block.continuous for parent in node.parents]
    return found[0] if found else None
