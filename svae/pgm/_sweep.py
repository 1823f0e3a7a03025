"""One sweep of mean field over the blocks of a graph, and the messages that it uses before it makes them.

Parents come before their children, so what a parent says forward is known when a child is inferred; a block that a
latent of the frame before drives comes before that latent, which it says something back to. What is not known in time
is the unknown of the fixed point, by name: what children say back to each discrete block, its node potentials, and what
each parent of the frame before says, "z after x". That of a continuous block is the mean about which its conditional
is expanded, where it is not linear.

A sweep infers every block, then forms the potentials again, from the last discrete block to the first; a block that
has new ones is inferred again before the next is asked. With one discrete block that is block ascent of two chains.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from svae.expfam import Gaussian
from svae.pgm import _nonlinear
from svae.pgm._block import AbstractBlock, Said, Sizes, record


class Node(NamedTuple):
    """A block in its place, with its parents of the same frame and the numbers of states that these have."""

    name: str
    block: AbstractBlock
    parents: tuple[str, ...]
    sizes: Sizes
    before: tuple[str, ...] = ()  # discrete parents of the frame before
    before_sizes: Sizes = ()
    driver: str | None = None  # the continuous parent of the frame before

    @property
    def every_size(self) -> Sizes:
        """The numbers of states of all discrete parents."""
        return self.sizes + self.before_sizes

    @property
    def earlier(self) -> tuple[str, ...]:
        """All parents of the frame before."""
        return self.before if self.driver is None else (*self.before, self.driver)


Nodes = tuple[Node, ...]


def recorded(nodes: Nodes, values: list) -> Any:
    """Values as a named tuple with a field for each block."""
    return record(tuple(node.name for node in nodes))(*values)


def after(node: Node, parent: str) -> str:
    """The name of what a parent of the frame before says."""
    return f"{node.name} after {parent}"


def no_word(nodes: Nodes, mask: Bool[Array, " T"], dtype: Any) -> dict[str, Float[Array, "T _"]]:
    """The unknown before anything is said: nothing to every discrete block, and any state as likely as another."""
    T = len(mask)
    words = {n.name: jnp.zeros((T, n.block.size), dtype) for n in nodes if not n.block.continuous}
    for node in nodes:
        for parent, K in zip(node.before, node.before_sizes, strict=True):
            words[after(node, parent)] = jnp.full((T, K), 1 / K, dtype)
        if node.driver is not None:
            words[after(node, node.driver)] = jnp.zeros((T, node.block.size), dtype)
    return words


def begun(nodes: Nodes, psi: dict, mask: Bool[Array, " T"]) -> dict[str, Float[Array, "T D"]]:
    """Where the means begin about which conditionals are expanded."""
    bent = [node.name for node in nodes if node.block.nonlinear]
    return {name: jnp.where(mask[:, None], _nonlinear.begun(psi[name]), 0) for name in bent}


def factors(nodes: Nodes, words: dict, args: tuple) -> dict[str, Any]:
    """q of every block in turn, from the words."""
    q: dict[str, Any] = {}
    for node in nodes:
        q[node.name] = infer_one(nodes, node, q, words, args)
    return q


def sweep(nodes: Nodes, words: dict, args: tuple) -> dict:
    """New words."""
    tables, _, mask = args
    q, words = factors(nodes, words, args), dict(words)
    discrete = [node for node in nodes if not node.block.continuous]
    for node in reversed(discrete):
        words[node.name] = jnp.where(mask[:, None], _word(nodes, node.name, q, words, tables), 0)
        if node is not discrete[0]:
            q[node.name] = infer_one(nodes, node, q, words, args)
    later = heard(nodes, q, tables)
    later |= {n.name: n.block.expand(q[n.name], words[n.name]) for n in nodes if n.block.nonlinear}
    return words | {name: jnp.where(mask[:, None], said, 0) for name, said in later.items()}


def heard(nodes: Nodes, q: dict, tables: dict) -> dict[str, Float[Array, "T _"]]:
    """What all parents of the frame before say, as q has them."""
    said = {after(node, parent): q[parent].states for node in nodes for parent in node.before}
    driven = [node for node in nodes if node.driver is not None]
    return said | {after(n, n.driver): n.block.hear(tables[n.name], q[n.driver].q.mean) for n in driven}


def remainders(nodes: Nodes, q: dict, words: dict, tables: dict) -> list[Float[Array, " T"]]:
    """E score less the score with what parents of the frame before said, of each block that has any: 0 at the end."""
    found = []
    for node in nodes:
        if node.earlier:
            said, now = _marginals(node, q, words), now_of(node, q)
            x = None if node.driver is None else q[node.driver].q
            found.append(node.block.remainder(tables[node.name], q[node.name], said, now, x))
    return found


def now_of(node: Node, q: dict) -> Said:
    """The marginals of all discrete parents."""
    return tuple(q[parent].states for parent in (*node.parents, *node.before))


def infer_one(nodes: Nodes, node: Node, q: dict, words: dict, args: tuple) -> Any:
    """q of one block given the others."""
    tables, psi, mask = args
    potential = psi[node.name] if node.block.continuous else words[node.name] + psi.get(node.name, 0)
    for child in nodes:
        if child.driver == node.name:
            said = child.block.back(tables[child.name], q[child.name], _said(child, q, words), len(now_of(child, q)))
            potential = Gaussian(potential.J + said.J, potential.h + said.h)
    return node.block.infer(tables[node.name], _said(node, q, words), potential, mask)


def _marginals(node: Node, q: dict, words: dict) -> Said:
    within = tuple(q[parent].states for parent in node.parents)
    return within + tuple(words[after(node, parent)] for parent in node.before)


def _said(node: Node, q: dict, words: dict) -> Said:
    said = _marginals(node, q, words)
    said = (*said, words[node.name]) if node.block.nonlinear else said
    return said if node.driver is None else (*said, words[after(node, node.driver)])


def _word(nodes: Nodes, name: str, q: dict, words: dict, tables: dict) -> Float[Array, "T K"]:
    """What all children of a discrete block say back to it."""
    said = [
        said_to(node, q, words, tables, i)
        for node in nodes
        for i, parent in enumerate((*node.parents, *node.before))
        if parent == name
    ]
    return sum(said[1:], said[0])


def said_to(node: Node, q: dict, words: dict, tables: dict, i: int) -> Float[Array, "T K"]:
    """What a block says back to its parent i."""
    return node.block.back(tables[node.name], q[node.name], _said(node, q, words), i)
