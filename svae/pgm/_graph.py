"""A latent graphical model composed of blocks: its inference, once for every graph.

q(x) = prod q_b. Parents come before their children, so what a parent says forward is known when a child is inferred,
and the unknown of the mean field fixed point is what children say back to each discrete block: its node potentials.
A sweep infers every block, then forms the potentials again, from the last discrete block to the first; a block that
has new ones is inferred again before the next is asked. With one discrete block that is block ascent of two chains.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from svae import messages
from svae._linalg import cholesky
from svae.expfam import NIW, Gaussian, LinearGaussian
from svae.messages import HMMChain
from svae.pgm._block import AbstractBlock, GraphError, Sizes, parents, record
from svae.pgm._check import ordered
from svae.pgm._mean_field import implicit
from svae.pgm._posterior import Posterior, expected_potential, keys_of, side_by_side
from svae.pgm._words import title

MOST_COMBINATIONS = 4096  # of the states of all discrete blocks, which an exact density enumerates
ALONE = 10  # states' worth of numbers that a continuous block without parents holds
ROW = 20  # frames in one state, where a discrete block starts from nothing


class Node(NamedTuple):
    """A block in its place: parents before children, `sizes` the numbers of states of its parents."""

    name: str
    block: AbstractBlock
    parents: tuple[str, ...]
    sizes: Sizes


class Graph(eqx.Module):
    """A latent graphical model p(theta) p(x, z | theta) of named blocks."""

    prior: Any  # natural parameters of p(theta): for each block a tree of conjugate priors
    nodes: tuple[Node, ...] = eqx.field(static=True)
    shown: str | None = eqx.field(static=True)  # the discrete block that stands for all where there is room for one
    solve: Callable = eqx.field(static=True, default=implicit)

    # --- what it says about itself ----------------------------------------------------------------------------------

    @property
    def discrete(self) -> dict[str, int]:
        """The number of states of each discrete block, by name."""
        return {node.name: node.block.size for node in self.nodes if not node.block.continuous}

    @property
    def continuous(self) -> dict[str, int]:
        """The dimensions of each continuous block, by name, in the order in which a latent has them side by side."""
        return {node.name: node.block.size for node in self.nodes if node.block.continuous}

    @property
    def states(self) -> int:
        """The number of states of the block that is shown; 1 where there is none."""
        return 1 if self.shown is None else self.discrete[self.shown]

    @property
    def dimensions(self) -> int:
        """Of a latent."""
        return sum(self.continuous.values())

    @property
    def independent(self) -> bool:
        """Whether frames do not see each other, so that each is a recording of its own."""
        return not any(node.block.remembers for node in self.nodes)

    @property
    def chained(self) -> bool:
        """Whether the states that are shown follow each other."""
        return self.shown is not None and self.node(self.shown).block.remembers

    @property
    def sticky(self) -> str | None:
        """The block whose transitions can be sticky, and its bouts as long as a target: the shown one, if a chain."""
        node = None if self.shown is None else self.node(self.shown)
        return node.name if node is not None and hasattr(node.block, "as_seen") and not node.parents else None

    @property
    def longest(self) -> int:
        """Frames of the longest bout that any block has a table for; 1 where none has durations."""
        return max(getattr(node.block, "longest", 1) for node in self.nodes)

    @property
    def paced(self) -> bool:
        """Whether it takes a target duration of bouts: as stickiness, or as where durations begin."""
        return self.sticky is not None or self.longest > 1

    @property
    def dynamic(self) -> bool:
        """Whether a continuous block depends on the frame before."""
        return any(node.block.continuous and node.block.remembers for node in self.nodes)

    @property
    def learned(self) -> bool:
        """Whether it has parameters."""
        return bool(jax.tree.leaves(self.prior))

    @property
    def inputs(self) -> int:
        """How many columns of known inputs it wants beside the frames; 0: none."""
        return max(node.block.inputs for node in self.nodes)

    @property
    def title(self) -> str:
        """What it is called in words."""
        return title(self.nodes)

    @property
    def arrows(self) -> list[tuple[str, str, bool]]:
        """Every arrow (from, to, whether it comes from the frame before)."""
        within = [(parent, node.name, False) for node in self.nodes for parent in node.parents]
        return within + [(node.name, node.name, True) for node in self.nodes if node.block.remembers]

    @property
    def numbers_per_frame(self) -> int:
        """That inference and its gradient hold, about: conditionals by state, and the tables of bouts."""
        found = 0
        for node in self.nodes:
            K, D = int(np.prod(node.sizes)) if node.sizes else ALONE, node.block.size
            found += 4 * K * D * (D + 1) if node.block.continuous else 2 * D * getattr(node.block, "longest", 0)
        return found

    def node(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    # --- inference ------------------------------------------------------------------------------------------------

    def infer(
        self,
        moments: Any,
        potentials: Gaussian,
        mask: Bool[Array, " T"],
        start: dict[str, Float[Array, "T _"]] | None = None,
        states: dict[str, Float[Array, "T _"]] | None = None,
        inputs: Float[Array, "T _"] | None = None,
    ) -> Posterior:
        """q*(x, z) of one sequence given E_q t(theta) and potentials psi (T steps) of all dimensions of x.

        Each continuous block takes its own rows and columns of psi; `states` are potentials on discrete blocks, by
        name. Mean field begins at the potentials `start` of each discrete block; without, at nothing. `inputs` are
        known, frame by frame; those of frame t act on the step into it.
        """
        args = self.tables(moments, self._known(inputs, mask)), self.by_block(potentials) | (states or {}), mask
        words, residual = {}, jnp.zeros(())
        if self.discrete:
            found = self.solve(self.sweep, self.no_word(args) if start is None else start, args)
            words, residual = found.value, found.residual
        q = _factors(self.nodes, words, args)
        factors = [node.block.factor(q[node.name]) for node in self.nodes]
        kl = jnp.where(mask, _sum([node.block.kl(args[0][node.name], q[node.name], mask) for node in self.nodes]), 0)
        q_of = dict(zip((node.name for node in self.nodes), factors, strict=True))
        expected = _sum([_expected(psi, q_of[name]) for name, psi in args[1].items()])
        surrogate = jnp.where(mask, expected, 0) - kl
        return Posterior(self._record(factors), kl, surrogate, residual, self.shown)

    def tables(self, moments: Any, inputs: Float[Array, "T n"] | None = None) -> dict[str, Any]:
        """Expected statistics as the sweeps take them, by block, beside the inputs of those that have any."""
        return {
            node.name: node.block.tables(getattr(moments, node.name), **_driven(node, inputs)) for node in self.nodes
        }

    def _known(self, inputs: Any, mask: Bool[Array, " T"]) -> Any:
        """The inputs, 0 at padding; GraphError unless they are what the graph wants."""
        self.check_inputs(inputs, len(mask))
        return jnp.where(mask[:, None], inputs, 0) if self.inputs else None

    def check_inputs(self, inputs: Any, length: int) -> None:
        """Raise unless inputs are what the graph wants for `length` frames: all of its columns, or none."""
        n, found = self.inputs, None if inputs is None else np.shape(inputs)
        if (found is None and n == 0) or found == (length, n):
            return
        wanting = ", ".join(node.name for node in self.nodes if node.block.inputs)
        wanted = f"{n} inputs at every frame, for {wanting}" if n else "no inputs"
        given = "it was given none" if found is None else f"it was given an array of shape {found}"
        raise GraphError(f"the latent graph takes {wanted}, and for {length} frames {given}")

    def by_block(self, potentials: Gaussian) -> dict[str, Gaussian]:
        """The potentials of each continuous block."""
        if len(self.continuous) == 1:
            return dict.fromkeys(self.continuous, potentials)
        parts = self._parts()
        return {name: Gaussian(potentials.J[:, part, part], potentials.h[:, part]) for name, part in parts.items()}

    def no_word(self, args: tuple) -> dict[str, Float[Array, "T K"]]:
        """The unknown of the fixed point before anything is said: each discrete block's potentials, all 0."""
        _, psi, mask = args
        dtype = next(iter(psi.values())).h.dtype
        return {name: jnp.zeros((len(mask), K), dtype) for name, K in self.discrete.items()}

    @property
    def sweep(self) -> Callable:
        """sweep(words, args) -> words: the function whose fixed point mean field is."""
        return partial(_sweep, self.nodes)

    def _record(self, values: list) -> Any:
        return record(tuple(node.name for node in self.nodes))(*values)

    def _parts(self) -> dict[str, slice]:
        edges = np.cumsum([0, *self.continuous.values()])
        return {name: slice(int(a), int(b)) for name, a, b in zip(self.continuous, edges[:-1], edges[1:], strict=True)}

    # --- simulation -----------------------------------------------------------------------------------------------

    def simulate(
        self,
        theta: Any,
        length: int,
        *,
        key: PRNGKeyArray,
        start: Any = None,
        inputs: Float[Array, "T _"] | None = None,
    ) -> Any:
        """A path of every block ~ p(x, z | theta); with `start`, paths of any length, the `length` steps after them.

        `inputs` are those of the frames that are simulated.
        """
        self.check_inputs(inputs, length)
        paths: dict[str, Any] = {}
        for node, key_own in zip(self.nodes, keys_of(key, len(self.nodes)), strict=True):
            own, before = getattr(theta, node.name), None if start is None else getattr(start, node.name)
            said = tuple(states_of(paths[parent]) for parent in node.parents)
            known = _driven(node, inputs)
            paths[node.name] = node.block.simulate(own, node.sizes, said, length, key=key_own, start=before, **known)
        return self._record([paths[node.name] for node in self.nodes])

    def latent(self, paths: Any) -> Float[Array, "*B T D"]:
        """x: the paths of all continuous blocks side by side."""
        return side_by_side([getattr(paths, name) for name in self.continuous])

    def labels(self, paths: Any) -> Int[Array, "*B T"]:
        """The path of the block that is shown; 0 throughout where there is none."""
        return (
            jnp.zeros(self.latent(paths).shape[:-1], int)
            if self.shown is None
            else states_of(getattr(paths, self.shown))
        )

    def log_prob(
        self,
        theta: Any,
        x: Float[Array, "T D"],
        mask: Bool[Array, " T"],
        inputs: Float[Array, "T _"] | None = None,
    ) -> Float[Array, " T"]:
        """log p(x_t | x_1..x_{t-1}, theta), the states of all discrete blocks summed over; 0 at padding."""
        known = self._known(inputs, mask)
        sizes, places = tuple(self.discrete.values()), {name: i for i, name in enumerate(self.discrete)}
        total = int(np.prod(sizes))
        if total > MOST_COMBINATIONS:
            raise GraphError(f"{total} combinations of states are too many to sum over; at most {MOST_COMBINATIONS}")
        scores = jnp.zeros((1,) * (len(sizes) + 1), x.dtype)
        for name, part in self._parts().items():
            node = self.node(name)
            own = getattr(theta, name)
            found = node.block.log_prob_by_state(own, node.sizes, x[:, part], **_driven(node, known))
            axes = (0, *(1 + places[parent] for parent in node.parents))
            scores = scores + _placed(found.reshape(len(x), *node.sizes), axes, len(sizes) + 1)
        scores = jnp.broadcast_to(scores, (len(x), *sizes)).reshape(len(x), total)
        if not sizes:
            return jnp.where(mask, scores[:, 0], 0)
        if len(sizes) == 1:
            (name,) = self.discrete
            return self.node(name).block.evidence(getattr(theta, name), scores, mask)
        alone = [name for name in self.discrete if not hasattr(self.node(name).block, "log_rows")]
        if alone:
            raise GraphError(f"the density of {alone[0]} is known only where it is the one discrete block")
        init, rows = self._together(theta, sizes, places)
        return messages.hmm.filter(HMMChain(init, rows, scores, mask)).log_z

    def _together(self, theta: Any, sizes: Sizes, places: dict[str, int]):
        """All discrete blocks as one chain over the combinations of their states: exact."""
        n = len(sizes)
        init, rows = jnp.zeros((1,) * n), jnp.zeros((1,) * 2 * n)
        for name in self.discrete:
            node = self.node(name)
            first, following = node.block.log_rows(getattr(theta, name), node.sizes)
            above = tuple(places[parent] for parent in node.parents)
            init = init + _placed(first, (*above, places[name]), n)
            before = (places[name],) if node.block.remembers else ()
            axes = (*(n + place for place in above), *before, n + places[name])
            rows = rows + _placed(following, axes, 2 * n)
        total = int(np.prod(sizes))
        rows = jnp.broadcast_to(rows, (*sizes, *sizes)).reshape(total, total)
        return jnp.broadcast_to(init, sizes).reshape(total), rows

    def as_seen(self, q: Any) -> Any:
        """q(theta) without the sticky counts that price a switch: what simulations are drawn from."""
        for node in self.nodes:
            child = self._child(node.name)
            if node.parents or not hasattr(node.block, "as_seen") or child is None:
                continue
            own, prior = getattr(q, node.name), getattr(self.prior, node.name)
            place = child.parents.index(node.name)
            frames = child.block.frames(getattr(self.prior, child.name), getattr(q, child.name), child.sizes, place)
            q = q._replace(**{node.name: node.block.as_seen(own, prior, frames)})
        return q

    def _child(self, name: str) -> Node | None:
        """A continuous child, whose statistics count the frames in each state."""
        return next((node for node in self.nodes if name in node.parents and node.block.continuous), None)

    def conditionals(self, q: Any) -> LinearGaussian | None:
        """x_t given each state that is shown, of the block nearest to it: W (K, D, U) with u = (x_t-1, 1) or u = 1.

        Other parents are averaged over, and inputs are 0; None where the latent has no parameters.
        """
        child = next((node for node in self.nodes if node.block.continuous and self.shown in node.parents), None)
        node = child or next(node for node in self.nodes if node.block.continuous)
        tables = list(getattr(q, node.name))
        if not tables:
            return None
        each = node.block.form.by_state(_at_mean(tables[-1]), node.sizes)
        if node.block.inputs:
            each = each._replace(W=jnp.delete(each.W, np.arange(node.block.size, each.W.shape[-1] - 1), -1))
        if child is None or len(node.sizes) == 1:
            return each
        place = node.parents.index(self.shown)
        others = tuple(axis for axis in range(len(node.sizes)) if axis != place)
        return jax.tree.map(lambda a: jnp.mean(a.reshape(*node.sizes, *a.shape[1:]), others), each)

    # --- start ----------------------------------------------------------------------------------------------------

    def initialize(self, latents: list, states: list, inputs: list | None = None) -> Any:
        """q(theta) = prior + statistics of complete data: latents (T_i, D), and `states`, in numpy float64.

        `states` are responsibilities (T_i, K) of the block that is shown, or by block {name: (T_i, K)}; a discrete
        block that has none starts from random stretches, so that its states differ. `inputs` are (T_i, n), or None.
        """
        for i, x in enumerate(latents):
            self.check_inputs(None if inputs is None else inputs[i], len(x))
        every = [
            self._responsibilities(found, len(x), i) for i, (x, found) in enumerate(zip(latents, states, strict=True))
        ]
        parts, fitted = self._parts(), []
        for node in self.nodes:
            own = [x[:, parts[node.name]] for x in latents] if node.block.continuous else [w[node.name] for w in every]
            said = [tuple(w[parent] for parent in node.parents) for w in every]
            prior, known = getattr(self.prior, node.name), _driven(node, inputs)
            fitted.append(node.block.initialize(prior, node.sizes, own, said, **known))
        return self._record(fitted)

    def _responsibilities(self, found: Any, T: int, seed: int) -> dict[str, np.ndarray]:
        """Of every discrete block, those that are given and random ones."""
        if not isinstance(found, dict):
            found = {} if self.shown is None else {self.shown: found}
        rng = np.random.default_rng(seed)
        missing = {name: K for name, K in self.discrete.items() if name not in found}
        random = {
            name: np.eye(K)[np.repeat(rng.integers(K, size=T // ROW + 1), ROW)[:T]] for name, K in missing.items()
        }
        return found | random


def graph(*, show: str | None = None, solve: Callable = implicit, **blocks: Any) -> Graph:
    """A latent graph of named blocks: graph(z=Markov(20), x=Dynamics(8, given="z")).

    `show` names the discrete block that stands for all where there is room for one (default: the one nearest to x).
    GraphError says in one sentence what cannot be inferred.
    """
    nodes = tuple(
        Node(name, blocks[name], parents(blocks[name]), tuple(blocks[parent].size for parent in parents(blocks[name])))
        for name in ordered(blocks, show)
    )
    prior = record(tuple(node.name for node in nodes))(*(node.block.prior(node.sizes) for node in nodes))
    return Graph(prior, nodes, _nearest(nodes) if show is None else show, solve)


def _driven(node: Node, inputs: Any) -> dict[str, Any]:
    """The inputs as an argument, of a block that takes any."""
    return {"inputs": inputs} if node.block.inputs else {}


def _nearest(nodes: tuple[Node, ...]) -> str | None:
    """The first discrete parent of a continuous block."""
    found = [parent for node in nodes if node.block.continuous for parent in node.parents]
    return found[0] if found else None


def _at_mean(family: Any) -> LinearGaussian:
    """E W, and a root of E[Sigma^-1]^-1."""
    W = family.m[..., None] if isinstance(family, NIW) else family.M
    return LinearGaussian(W, cholesky(family.S / family.nu[..., None, None]))


# --- inference of all blocks ----------------------------------------------------------------------------------------


def _factors(nodes: tuple[Node, ...], words: dict, args: tuple) -> dict[str, Any]:
    """q of every block in turn, from what children said back to the discrete ones."""
    q: dict[str, Any] = {}
    for node in nodes:
        q[node.name] = _infer(node, q, words, args)
    return q


def _infer(node: Node, q: dict, words: dict, args: tuple) -> Any:
    tables, psi, mask = args
    potential = psi[node.name] if node.block.continuous else words[node.name] + psi.get(node.name, 0)
    return node.block.infer(tables[node.name], _said(node, q), potential, mask)


def _expected(psi: Any, q: Any) -> Float[Array, " T"]:
    """E_q psi_t of one block."""
    return expected_potential(psi, q) if isinstance(psi, Gaussian) else jnp.sum(psi * q.states, -1)


def _said(node: Node, q: dict) -> tuple:
    return tuple(q[parent].states for parent in node.parents)


def states_of(path: Any) -> Any:
    """The states of a discrete block's path, which may say more of a frame than its state."""
    return getattr(path, "states", path)


def _sum(terms: list) -> Any:
    return sum(terms[1:], terms[0])


def _sweep(nodes: tuple[Node, ...], words: dict, args: tuple) -> dict:
    """New potentials of every discrete block, from the last to the first."""
    tables, _, mask = args
    q, words = _factors(nodes, words, args), dict(words)
    discrete = [node for node in nodes if not node.block.continuous]
    for node in reversed(discrete):
        words[node.name] = jnp.where(mask[:, None], _word(nodes, node.name, q, tables), 0)
        if node is not discrete[0]:
            q[node.name] = _infer(node, q, words, args)
    return words


def _word(nodes: tuple[Node, ...], name: str, q: dict, tables: dict) -> Float[Array, "T K"]:
    """What all children of a discrete block say back to it."""
    said = [
        node.block.back(tables[node.name], q[node.name], _said(node, q), node.parents.index(name))
        for node in nodes
        if name in node.parents
    ]
    return _sum(said)


def _placed(array: Array, axes: tuple[int, ...], ndim: int) -> Array:
    """The array with its axes at the given places of `ndim`, and length 1 at all others."""
    order = np.argsort(axes)
    array = jnp.transpose(array, tuple(int(i) for i in order))
    shape = [1] * ndim
    for i in order:
        shape[axes[i]] = array.shape[list(order).index(i)]
    return array.reshape(shape)
