"""Tables of transitions for each group of recordings, around one table that all groups share.

Row i of group g is pi_gi ~ Dirichlet(kappa beta_i). The tables of q(theta) have the group along a first axis; inference
takes that of a recording's own group, so all else is as without groups. beta and kappa are points: they enter through
the prior, so the bound sees them in its global KL, which is not scaled by N. A group that was never seen has the prior
itself, Dirichlet(kappa beta_i).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import digamma
from jaxtyping import Array, Float

from svae.expfam import Dirichlet
from svae.pgm._block import GraphError
from svae.pgm._sweep import Node

ROUNDS = 200  # of the estimate of beta and kappa that a fit begins with
LOOSE = 1e-3  # prior counts per count of kappa at that start: groups that do not differ leave it at some thousands


class Habits(NamedTuple):
    """beta is softmax(log beta_0 + shape) and kappa is kappa_0 exp(size), with kappa_0 beta_0 the block's own prior."""

    shape: Float[Array, "*M K K"]
    size: Float[Array, ""]


def ordinary(node: Node, driver: int) -> Any:
    """The start of a node's ordinary parameters: kappa beta is the prior that the block has without groups."""
    if not node.block.by:
        return node.block.ordinary(driver)
    counts = _base(node).transitions.counts
    return Habits(jnp.zeros_like(counts), jnp.zeros((), counts.dtype))


def grouped(graph: Any) -> list[Node]:
    """The nodes that have a table for each group."""
    return [node for node in graph.nodes if node.block.by]


def by(graph: Any) -> str:
    """What the groups are called; "" where all recordings share all tables."""
    return next((node.block.by for node in grouped(graph)), "")


def _base(node: Node) -> Any:
    """The prior of the block had it no groups."""
    return node.block.prior(node.every_size)


def shared(graph: Any, node: Node) -> Dirichlet:
    """Dirichlet(kappa beta_i) of every row."""
    base, habits = _base(node).transitions.counts, getattr(graph.ordinary, node.name)
    kappa = jnp.sum(base, -1, keepdims=True) * jnp.exp(habits.size)
    return Dirichlet(kappa * jax.nn.softmax(jnp.log(base) + habits.shape, -1))


def stacked(graph: Any, number: int) -> Any:
    """A prior with tables for so many groups."""
    prior = graph.prior
    for node in grouped(graph):
        base = _base(node)
        prior = prior._replace(**{node.name: base._replace(transitions=_repeated(base.transitions, number))})
    return prior


def _repeated(rows: Dirichlet, number: int) -> Dirichlet:
    return Dirichlet(jnp.broadcast_to(rows.counts[None], (number, *rows.counts.shape)))


def believed(graph: Any) -> Any:
    """The prior with beta and kappa as they are."""
    prior = graph.prior
    for node in grouped(graph):
        rows = _repeated(shared(graph, node), graph.groups)
        prior = prior._replace(**{node.name: getattr(prior, node.name)._replace(transitions=rows)})
    return prior


# --- one group ----------------------------------------------------------------------------------------------------


def moments_of(graph: Any, moments: Any, group: Any) -> Any:
    """Expected statistics with the tables of one group; None, or a number beyond all groups, is one never seen."""
    for node in grouped(graph):
        own, new = getattr(moments, node.name), shared(graph, node).moments()
        if group is not None:
            new = jax.tree.map(lambda a, b: jnp.concatenate([a, b[None]])[group], own.transitions, new)
        moments = moments._replace(**{node.name: own._replace(transitions=new)})
    return moments


def with_new(graph: Any, q: Any) -> Any:
    """q(theta) with one more table after those of all groups: that of a group never seen."""
    for node in grouped(graph):
        own, new = getattr(q, node.name), shared(graph, node).counts
        rows = Dirichlet(jnp.concatenate([own.transitions.counts, new[None]]))
        q = q._replace(**{node.name: own._replace(transitions=rows)})
    return q


def theta_of(graph: Any, theta: Any, group: Any) -> Any:
    """A draw of theta with the tables of one group; None is one never seen, of which theta must have a draw."""
    for node in grouped(graph):
        own = getattr(theta, node.name)
        if group is None and len(own.transitions) == graph.groups:
            raise GraphError(
                f"theta has tables of known groups alone: say whose {node.name} is meant with group=, or draw theta "
                "from with_new_group(q)"
            )
        rows = own.transitions[-1 if group is None else group]
        theta = theta._replace(**{node.name: own._replace(transitions=rows)})
    return theta


# --- start --------------------------------------------------------------------------------------------------------


def initialize(graph: Any, node: Node, own: list, said: list, groups: list | None) -> Any:
    """q(theta) of a node after complete data: each group has the counts of its own recordings, the first frame all."""
    prior = _base(node)._replace(transitions=shared(graph, node))
    whose = np.full(len(own), graph.groups) if groups is None else np.asarray(groups)
    fit = lambda rows: node.block.initialize(prior, node.every_size, [own[i] for i in rows], [said[i] for i in rows])  # noqa: E731
    each = [fit(np.flatnonzero(whose == g)).transitions.counts for g in range(graph.groups)]
    none = jnp.zeros((0, *prior.transitions.counts.shape), prior.transitions.counts.dtype)
    return fit(range(len(own)))._replace(transitions=Dirichlet(jnp.stack(each) if each else none))


def start(graph: Any, node: Node, q: Any) -> Habits:
    """beta and kappa by their marginal likelihood, from the counts in q(theta) of complete data.

    One table for all groups comes first: with m_ij, the expected number of draws from it (Antoniak 1974), beta_i is
    proportional to the block's own prior plus m_i, and kappa follows from all m.
    """
    base, rows = _base(node).transitions.counts, shared(graph, node).counts
    counts = jnp.maximum(q.transitions.counts - rows[None], 0)
    kappa_0 = jnp.sum(base, -1).reshape(-1)[0]  # of every row
    kappa, beta = _estimate(base, counts) if graph.groups else (kappa_0, base / kappa_0)
    return Habits(jnp.log(beta * kappa_0) - jnp.log(base), jnp.log(kappa / kappa_0))


@jax.jit
def _estimate(base: Float[Array, "*M K K"], counts: Float[Array, "G *M K K"]) -> tuple[Array, Array]:
    """kappa and beta."""
    total = jnp.sum(counts, -1)
    share = lambda a: a / jnp.sum(a, -1, keepdims=True)  # noqa: E731

    def again(_, found):
        kappa, beta = found
        prior = (kappa * beta)[None]
        m = jnp.sum(prior * (digamma(prior + counts) - digamma(prior)), 0)
        kappa = (1 + jnp.sum(m)) / (LOOSE + jnp.sum(digamma(kappa + total) - digamma(kappa)))
        return kappa, share(base + m)

    begun = jnp.sum(base, -1).reshape(-1)[0], share(base + jnp.sum(counts, 0))
    return jax.lax.fori_loop(0, ROUNDS, again, begun)
