"""The block that is shown; of q(theta) conditionals at their mean, and transitions without the price of a switch."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from svae._linalg import cholesky, mm, mT
from svae.expfam import NIW, LinearGaussian
from svae.pgm import _nonlinear
from svae.pgm._nonlinear import Expansion
from svae.pgm._sweep import Node


def can_stick(node: Node) -> bool:
    """Whether it is a chain with one table of transitions, which nothing makes lean."""
    return hasattr(node.block, "as_seen") and not (node.parents or node.earlier or node.block.inputs or node.block.by)


def sticky(graph: Any) -> str | None:
    """The name of the shown block, if it can stick."""
    node = None if graph.shown is None else graph.node(graph.shown)
    return node.name if node is not None and can_stick(node) else None


def paced(graph: Any) -> bool:
    """Whether the shown block can stick or lean, or any block has durations."""
    shown = None if graph.shown is None else graph.node(graph.shown)
    leans = shown is not None and (shown.driver or shown.block.inputs or shown.block.by)
    return graph.sticky is not None or graph.longest > 1 or bool(leans)


def as_seen(graph: Any, q: Any) -> Any:
    """q(theta) without sticky counts."""
    for node in graph.nodes:
        child = _child(graph, node.name)
        if not can_stick(node) or child is None:
            continue
        own, prior = getattr(q, node.name), getattr(graph.prior, node.name)
        place = child.parents.index(node.name)
        frames = child.block.frames(getattr(graph.prior, child.name), getattr(q, child.name), child.sizes, place)
        q = q._replace(**{node.name: node.block.as_seen(own, prior, frames)})
    return q


def _child(graph: Any, name: str) -> Node | None:
    """A continuous child, whose statistics count the frames in each state."""
    return next((node for node in graph.nodes if name in node.parents and node.block.continuous), None)


def conditionals(graph: Any, q: Any) -> LinearGaussian | None:
    """x_t given each state that is shown; None where no continuous block has them for a parent."""
    child = None if graph.shown is None else _child(graph, graph.shown)
    if child is None and graph.shown is not None:
        return None
    node = _of(graph)
    tables = list(getattr(q, node.name))
    if not tables:
        return None
    each = node.block.form.by_state(_at_mean(tables[-1]), node.sizes)
    if node.block.inputs:
        each = each._replace(W=jnp.delete(each.W, np.arange(node.block.size, each.W.shape[-1] - 1), -1))
    if node.block.nonlinear:
        each = each._replace(W=each.W + _about_0(graph, node).map)
    if child is None or len(node.sizes) == 1:
        return each
    place = node.parents.index(graph.shown)
    others = tuple(axis for axis in range(len(node.sizes)) if axis != place)
    return jax.tree.map(lambda a: jnp.mean(a.reshape(*node.sizes, *a.shape[1:]), others), each)


def durations(graph: Any, q: Any) -> Any:
    """E p(a bout lasts r frames) (K, longest) of the states that are shown; None where they have no durations."""
    counts = getattr(None if graph.shown is None else getattr(q, graph.shown), "durations", None)
    return None if counts is None else counts.counts / jnp.sum(counts.counts, -1, keepdims=True)


def beyond(graph: Any, x: Float[Array, "N D"]) -> Float[Array, "N D"] | None:
    """What a network adds to those conditionals at x, with inputs of 0."""
    node = _of(graph)
    if not node.block.nonlinear:
        return None
    g, (about, level, slope) = getattr(graph.ordinary, node.name), _about_0(graph, node)
    return _nonlinear.value(g, x, jnp.zeros((len(x), node.block.inputs), x.dtype)) - level - mm(x - about, mT(slope[0]))


def _of(graph: Any) -> Node:
    """The continuous block that conditionals speak of: the child of the discrete one that is shown, or the first."""
    child = None if graph.shown is None else _child(graph, graph.shown)
    return child or next(node for node in graph.nodes if node.block.continuous)


def _about_0(graph: Any, node: Node) -> Expansion:
    """The network about x = 0 and inputs of 0."""
    g = getattr(graph.ordinary, node.name)
    none = lambda n: jnp.zeros((1, n), g.out.dtype)  # noqa: E731
    return _nonlinear.expansion(g, none(node.block.size), none(node.block.inputs))


def _at_mean(family: Any) -> LinearGaussian:
    """E W, and a root of E[Sigma^-1]^-1."""
    W = family.m[..., None] if isinstance(family, NIW) else family.M
    return LinearGaussian(W, cholesky(family.S / family.nu[..., None, None]))
