"""log p(x | theta) with theta known, the states of all discrete blocks summed over: what a graph is checked against."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from svae import messages
from svae.messages import HMMChain
from svae.pgm._block import GraphError, Sizes

MOST_COMBINATIONS = 4096  # of the states of all discrete blocks, which an exact density enumerates


def log_prob(graph: Any, theta: Any, x: dict[str, Array], mask: Bool[Array, " T"], inputs: Any) -> Float[Array, " T"]:
    """log p(x_t | past), of the paths x of all continuous blocks; 0 at padding."""
    sizes, places = tuple(graph.discrete.values()), {name: i for i, name in enumerate(graph.discrete)}
    total, T = int(np.prod(sizes)), len(mask)
    if total > MOST_COMBINATIONS:
        raise GraphError(f"{total} combinations of states are too many to sum over; at most {MOST_COMBINATIONS}")
    scores = jnp.zeros((1,) * (len(sizes) + 1), next(iter(x.values())).dtype)
    for name, path in x.items():
        node = graph.node(name)
        known = graph.beside(node, inputs)
        found = node.block.log_prob_by_state(getattr(theta, name), node.sizes, path, **known)
        axes = (0, *(1 + places[parent] for parent in node.parents))
        scores = scores + _placed(found.reshape(T, *node.sizes), axes, len(sizes) + 1)
    scores = jnp.broadcast_to(scores, (T, *sizes)).reshape(T, total)
    if not sizes:
        return jnp.where(mask, scores[:, 0], 0)
    if len(sizes) == 1 and not jax.tree.leaves(getattr(graph.ordinary, next(iter(graph.discrete)), ())):
        (name,) = graph.discrete
        return graph.node(name).block.evidence(getattr(theta, name), scores, mask)
    alone = [name for name in graph.discrete if not hasattr(graph.node(name).block, "log_rows")]
    if alone:
        raise GraphError(f"the density of {alone[0]} is known only where it is the one discrete block")
    init, rows = _together(graph, theta, x, inputs, sizes, places)
    return messages.hmm.filter(HMMChain(init, rows, scores, mask)).log_z


def _together(graph: Any, theta: Any, x: dict, inputs: Any, sizes: Sizes, places: dict[str, int]):
    """All discrete blocks as one chain over the combinations of their states: exact."""
    n = len(sizes)
    init, rows = jnp.zeros((1,) * n), jnp.zeros((1,) * (2 * n + 1))
    for name in graph.discrete:
        node = graph.node(name)
        known = graph.beside(node, inputs) | ({} if node.driver is None else {"x": x[node.driver]})
        first, following = node.block.log_rows(getattr(theta, name), node.every_size, **known)
        above, earlier = tuple(places[p] for p in node.parents), tuple(places[p] for p in node.before)
        init = init + _placed(first, (*above, places[name]), n)
        own = (places[name],) if node.block.remembers else ()
        axes = (*(n + place for place in above), *earlier, *own, n + places[name])
        rows = rows + _placed(following, (0, *(1 + axis for axis in axes)), 2 * n + 1)
    total = int(np.prod(sizes))
    rows = jnp.broadcast_to(rows, (len(rows), *sizes, *sizes)).reshape(len(rows), total, total)
    return jnp.broadcast_to(init, sizes).reshape(total), rows


def _placed(array: Array, axes: tuple[int, ...], ndim: int) -> Array:
    """The array with its axes at the given places of `ndim`, and length 1 at all others."""
    order = np.argsort(axes)
    array = jnp.transpose(array, tuple(int(i) for i in order))
    shape = [1] * ndim
    for i in order:
        shape[axes[i]] = array.shape[list(order).index(i)]
    return array.reshape(shape)
