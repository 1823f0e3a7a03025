"""Where mean field begins when several discrete blocks act on one latent.

From nothing, each block takes what the others do for noise, is soon sure of itself, and mean field ends where it should
not. So the blocks first speak about the frames together, with x as it is under all states alike: what a frame says to
one block is summed over the states of the others, weighed by what their own chains make of it (belief propagation in
place of an average of logarithms). A few rounds of that are the start; the fixed point is that of the sweeps.
"""

import math

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jax.nn import logsumexp
from jaxtyping import Array, Float

from svae.pgm import _sweep
from svae.pgm._sweep import Node, Nodes

ROUNDS = 4
MOST_COMBINATIONS = 1024  # combinations of states that are looked at together


def shared(nodes: Nodes) -> list[Node]:
    """The continuous blocks with several parents."""
    return [n for n in nodes if n.block.continuous and len(n.parents) > 1 and math.prod(n.sizes) <= MOST_COMBINATIONS]


def first_words(nodes: Nodes, words: dict, args: tuple) -> dict:
    """The words that mean field begins with; those of nothing where no blocks share a latent."""
    together = shared(nodes)
    if not together:
        return words
    words, args = stop_gradient((words, args))
    tables, _, mask = args
    q = _sweep.factors(nodes, words, args)
    about = {node.name: (words[node.name],) if node.block.nonlinear else () for node in together}
    scores = {n.name: _joint(n, tables[n.name], q[n.name], about[n.name], len(mask)) for n in together}
    discrete = [node.name for node in nodes if not node.block.continuous]
    for _ in range(ROUNDS):
        words = words | {name: _word(nodes, name, q, words, tables, scores, mask) for name in discrete}
        for node in nodes:
            if not node.block.continuous:
                q[node.name] = _sweep.infer_one(nodes, node, q, words, args)
    return words


def _word(nodes, name, q, words, tables, scores, mask) -> Float[Array, "T K"]:
    """What all children say to a discrete block."""
    total = 0
    for node in nodes:
        for i, parent in enumerate((*node.parents, *node.before)):
            if parent == name:
                alone = node.name not in scores
                total = total + (_sweep.said_to(node, q, words, tables, i) if alone else _summed(node, q, scores, i))
    return jnp.where(mask[:, None], total, 0)


def _summed(node: Node, q: dict, scores: dict, i: int) -> Float[Array, "T K"]:
    """log sum over the states of all other parents."""
    score, n = scores[node.name], len(node.parents)
    for j, parent in enumerate(node.parents):
        if j != i:
            weights = jnp.log(q[parent].states + jnp.finfo(score.dtype).tiny)
            score = score + weights.reshape(len(weights), *(-1 if axis == j else 1 for axis in range(n)))
    found = logsumexp(score, tuple(1 + j for j in range(n) if j != i))
    return found - jnp.max(found, -1, keepdims=True)


def _joint(node: Node, tables, local, about: tuple, T: int) -> Float[Array, "T *K"]:
    """E log p(x_t | every combination of states), but for a constant of the frame.

    `about` is the mean about which the conditional is expanded, where it is not linear.

    `back` leaves out a constant of its own for all that it is given, so the way to a combination goes from state 0 of
    all parents, one parent after the other from the last.
    """
    sizes, total = node.sizes, jnp.zeros((T, *(1 for _ in node.sizes)))
    for i, K in enumerate(sizes):
        later = sizes[i + 1 :]
        places = jnp.stack([a.reshape(-1) for a in jnp.indices(later)], -1) if later else jnp.zeros((1, 0), int)

        def given(place, i=i, later=later):
            states = [*(0 for _ in range(i + 1)), *(place[j] for j in range(len(later)))]
            said = (jnp.broadcast_to(jax.nn.one_hot(k, n)[None], (T, n)) for k, n in zip(states, sizes, strict=True))
            return node.block.back(tables, local, (*said, *about), i)

        found = jax.lax.map(given, places)  # (combinations, T, K)
        found = jnp.moveaxis(found - found[..., :1], 0, -1)
        total = total + found.reshape(T, *(1 for _ in range(i)), K, *later)
    return total
