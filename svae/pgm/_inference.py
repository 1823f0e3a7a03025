"""Inference, once for every graph: q(x) = prod q_b.

Mean field is the fixed point of a sweep over all blocks (`_sweep`); the bound is the sum of their scores and entropies.
Where a conditional is not conjugate, q comes from a surrogate of it, and `Posterior.gap` is what the true one has over
it at a draw.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from svae.expfam import Gaussian
from svae.pgm import _group_transitions, _inputs, _sweep
from svae.pgm._posterior import Posterior, expected_potential
from svae.pgm._sweep import Nodes

ALONE = 10  # states' worth of numbers that a continuous block without parents holds


def infer(
    graph: Any,
    moments: Any,
    potentials: Gaussian,
    mask: Bool[Array, " T"],
    start: dict[str, Float[Array, "T _"]] | None,
    states: dict[str, Float[Array, "T _"]] | None,
    inputs: Float[Array, "T _"] | None,
    group: Any,
) -> Posterior:
    """q*(x, z) of one sequence."""
    moments = _group_transitions.moments_of(graph, moments, group)
    tables = graph.tables(moments, _inputs.known(graph, inputs, mask))
    args = tables, graph.by_block(potentials) | (states or {}), mask
    begin = graph.no_word if set(graph.discrete) <= set(start or ()) else graph.first_words
    words, residual = begin(args), jnp.zeros(())
    if words:
        found = graph.solve(graph.sweep, words | (start or {}), args)
        words, residual = found.value, found.residual
    q = _sweep.factors(graph.nodes, words, args)
    factors = [node.block.factor(q[node.name]) for node in graph.nodes]
    terms = [node.block.kl(tables[node.name], q[node.name], mask) for node in graph.nodes]
    terms += [-said for said in _sweep.remainders(graph.nodes, q, words, tables)]
    kl = jnp.where(mask, _sum(terms), 0)
    q_of = dict(zip((node.name for node in graph.nodes), factors, strict=True))
    expected = _sum([_expected(psi, q_of[name]) for name, psi in args[1].items()])
    surrogate = jnp.where(mask, expected, 0) - kl
    heard = {name: said for name, said in words.items() if name not in graph.discrete}
    gaps = _surrogates(graph, tables, q)
    return Posterior(_sweep.recorded(graph.nodes, factors), kl, surrogate, residual, graph.shown, heard, gaps)


def numbers_per_frame(nodes: Nodes) -> int:
    """The count of numbers that inference and its gradient hold, about: conditionals by state, tables of bouts."""
    found = 0
    for node in nodes:
        K, D = int(np.prod(node.sizes)) if node.sizes else ALONE, node.block.size
        found += 4 * K * D * (D + 1) if node.block.continuous else 2 * D * getattr(node.block, "longest", 0)
        found += 2 * (D + 1) * sum(getattr(node.block, "hidden", ()))
    return found


def _surrogates(graph: Any, tables: dict, q: dict) -> tuple:
    """What stands in for each conditional that is not conjugate."""
    parts, found = graph.parts(), []
    for node in graph.nodes:
        x = node.name if node.block.nonlinear else node.driver
        if x is not None:
            columns = parts[x].start, parts[x].stop
            now = _sweep.now_of(node, q)
            found.append(node.block.surrogate(tables[node.name], q[node.name], now, columns))
    return tuple(found)


def _expected(psi: Any, q: Any) -> Float[Array, " T"]:
    """E_q psi_t of one block."""
    return expected_potential(psi, q) if isinstance(psi, Gaussian) else jnp.sum(psi * q.states, -1)


def _sum(terms: list) -> Any:
    return sum(terms[1:], terms[0])
