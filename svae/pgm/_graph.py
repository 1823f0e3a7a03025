"""A latent graphical model composed of blocks: its inference, once for every graph.

q(x) = prod q_b. Mean field is the fixed point of a sweep over all blocks (`_sweep`); the bound is the sum of their
scores and entropies. Where a conditional is not conjugate, q comes from a surrogate of it, and `Posterior.gap` is what
the true one has over it at a draw.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from svae.expfam import Gaussian, LinearGaussian
from svae.pgm import _density, _habits, _shown, _simulation, _start, _sweep
from svae.pgm._block import names, parents, record
from svae.pgm._check import check_inputs, ordered
from svae.pgm._first_words import first_words
from svae.pgm._mean_field import implicit, step_by_step
from svae.pgm._posterior import Posterior, expected_potential, side_by_side
from svae.pgm._sweep import Node
from svae.pgm._words import title

ALONE = 10  # states' worth of numbers that a continuous block without parents holds
PRIOR_SD = 3.0  # of ordinary parameters, around 0


class Graph(eqx.Module):
    """A latent graphical model p(theta) p(x, z | theta) of named blocks."""

    prior: Any  # natural parameters of p(theta): for each block a tree of conjugate priors
    nodes: tuple[Node, ...] = eqx.field(static=True)
    shown: str | None = eqx.field(static=True)  # the discrete block that stands for all where there is room for one
    solve: Callable = eqx.field(static=True, default=implicit)
    ordinary: Any = ()  # parameters without a conjugate prior, by block: N(0, PRIOR_SD^2), each at a point
    groups: int = eqx.field(static=True, default=0)  # of recordings, each with tables of its own where a block has by=

    # --- what it says about itself ----------------------------------------------------------------------------------

    @property
    def discrete(self) -> dict[str, int]:
        """The number of states of each discrete block, by name."""
        return {node.name: node.block.size for node in self.nodes if not node.block.continuous}

    @property
    def blocks(self) -> tuple[str, ...]:
        """The names of all discrete blocks, the one that is shown first."""
        return tuple(sorted(self.discrete, key=lambda name: name != self.shown))

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
        """The number of dimensions of a latent."""
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
        return node.name if node is not None and _shown.can_stick(node) else None

    @property
    def longest(self) -> int:
        """Frames of the longest bout that any block has a table for; 1 where none has durations."""
        return max(getattr(node.block, "longest", 1) for node in self.nodes)

    @property
    def paced(self) -> bool:
        """Whether it takes a target duration of bouts: as stickiness, or to begin with durations or leaning states."""
        shown = None if self.shown is None else self.node(self.shown)
        leans = shown is not None and (shown.driver or shown.block.inputs or shown.block.by)
        return self.sticky is not None or self.longest > 1 or bool(leans)

    @property
    def dynamic(self) -> bool:
        """Whether a continuous block depends on the frame before."""
        return any(node.block.continuous and node.block.remembers for node in self.nodes)

    @property
    def observed(self) -> bool:
        """Whether the latent is the frame itself or its projection, so that there are no networks."""
        return any(node.block.observed for node in self.nodes)

    @property
    def learned(self) -> bool:
        """Whether it has parameters."""
        return bool(jax.tree.leaves(self.prior))

    @property
    def inputs(self) -> int:
        """How many columns of known inputs it wants beside the frames; 0: none."""
        return max(node.block.inputs for node in self.nodes)

    @property
    def conjugate(self) -> bool:
        """Whether every conditional is, so that it has no ordinary parameters."""
        return not jax.tree.leaves(self.ordinary)

    @property
    def by(self) -> str:
        """What groups of recordings are called that have tables of their own; "" where all share all tables."""
        return _habits.by(self)

    @property
    def believed(self) -> Any:
        """p(theta) as its ordinary parameters make it: `prior`, but for tables of groups."""
        return _habits.believed(self)

    def for_groups(self, number: int) -> "Graph":
        """The graph with tables for so many groups, where a block has any."""
        return dataclasses.replace(self, prior=_habits.stacked(self, number), groups=number) if self.by else self

    def with_new_group(self, q: Any) -> Any:
        """q(theta) with the tables of a group never seen after those of all others: what draws are made from."""
        return _habits.with_new(self, q)

    def penalty(self) -> Float[Array, ""]:
        """-log p(ordinary parameters), but for a constant."""
        squares = [jnp.sum(a**2) for a in jax.tree.leaves(self.ordinary)]
        return sum(squares, jnp.zeros(())) / (2 * PRIOR_SD**2)

    @property
    def title(self) -> str:
        """What it is called in words."""
        return title(self.nodes)

    @property
    def arrows(self) -> list[tuple[str, str, bool]]:
        """Every arrow (from, to, whether it comes from the frame before)."""
        within = [(parent, node.name, False) for node in self.nodes for parent in node.parents]
        before = [(parent, node.name, True) for node in self.nodes for parent in node.earlier]
        return within + before + [(node.name, node.name, True) for node in self.nodes if node.block.remembers]

    @property
    def numbers_per_frame(self) -> int:
        """The count of numbers that inference and its gradient hold, about: conditionals by state, tables of bouts."""
        found = 0
        for node in self.nodes:
            K, D = int(np.prod(node.sizes)) if node.sizes else ALONE, node.block.size
            found += 4 * K * D * (D + 1) if node.block.continuous else 2 * D * getattr(node.block, "longest", 0)
            found += 2 * (D + 1) * sum(getattr(node.block, "hidden", ()))
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
        group: Any = None,
    ) -> Posterior:
        """q*(x, z) of one sequence given E_q t(theta) and potentials psi (T steps) of all dimensions of x.

        Each continuous block takes its own rows and columns of psi; `states` are potentials on discrete blocks, by
        name. Mean field begins at the potentials `start` of each discrete block; without, at nothing. `inputs` are
        known, frame by frame; those of frame t act on the step into it. `group` is the number of the recording's
        group, None for one that was never seen.
        """
        moments = _habits.moments_of(self, moments, group)
        args = self.tables(moments, self._known(inputs, mask)), self.by_block(potentials) | (states or {}), mask
        begin = self.no_word if set(self.discrete) <= set(start or ()) else self.first_words
        words, residual = begin(args), jnp.zeros(())
        if words:
            found = self.solve(self.sweep, words | (start or {}), args)
            words, residual = found.value, found.residual
        q = _sweep.factors(self.nodes, words, args)
        factors = [node.block.factor(q[node.name]) for node in self.nodes]
        terms = [node.block.kl(args[0][node.name], q[node.name], mask) for node in self.nodes]
        terms += [-said for said in _sweep.remainders(self.nodes, q, words, args[0])]
        kl = jnp.where(mask, _sum(terms), 0)
        q_of = dict(zip((node.name for node in self.nodes), factors, strict=True))
        expected = _sum([_expected(psi, q_of[name]) for name, psi in args[1].items()])
        surrogate = jnp.where(mask, expected, 0) - kl
        heard = {name: said for name, said in words.items() if name not in self.discrete}
        gaps = self._surrogates(args[0], q)
        return Posterior(self._record(factors), kl, surrogate, residual, self.shown, heard, gaps)

    def _surrogates(self, tables: dict, q: dict) -> tuple:
        """What stands in for each conditional that is not conjugate."""
        parts, found = self.parts(), []
        for node in self.nodes:
            x = node.name if node.block.nonlinear else node.driver
            if x is not None:
                columns = parts[x].start, parts[x].stop
                now = _sweep.now_of(node, q)
                found.append(node.block.surrogate(tables[node.name], q[node.name], now, columns))
        return tuple(found)

    def tables(self, moments: Any, inputs: Float[Array, "T n"] | None = None) -> dict[str, Any]:
        """Expected statistics as the sweeps take them, by block, beside the inputs of those that have any."""
        found = ((n, getattr(moments, n.name)) for n in self.nodes)
        return {node.name: node.block.tables(own, **self.beside(node, inputs)) for node, own in found}

    def beside(self, node: Node, inputs: Any) -> dict[str, Any]:
        """Inputs and ordinary parameters as arguments, of a block that takes any."""
        known = {"inputs": inputs} if node.block.inputs else {}
        own = () if node.block.by else getattr(self.ordinary, node.name, ())
        return known | ({"ordinary": own} if jax.tree.leaves(own) else {})

    def _known(self, inputs: Any, mask: Bool[Array, " T"]) -> Any:
        """The inputs, 0 at padding; GraphError unless they are what the graph wants."""
        self.check_inputs(inputs, len(mask))
        return jnp.where(mask[:, None], inputs, 0) if self.inputs else None

    def check_inputs(self, inputs: Any, length: int) -> None:
        """Raise unless inputs are what the graph wants for `length` frames: all of its columns, or none."""
        wanting = [node.name for node in self.nodes if node.block.inputs]
        check_inputs(wanting, self.inputs, None if inputs is None else np.shape(inputs), length)

    def by_block(self, potentials: Gaussian) -> dict[str, Gaussian]:
        """The potentials of each continuous block."""
        if len(self.continuous) == 1:
            return dict.fromkeys(self.continuous, potentials)
        parts = self.parts()
        return {name: Gaussian(potentials.J[:, part, part], potentials.h[:, part]) for name, part in parts.items()}

    def no_word(self, args: tuple) -> dict[str, Float[Array, "T _"]]:
        """The unknown of the fixed point before anything is said."""
        _, psi, mask = args
        words = _sweep.no_word(self.nodes, mask, next(iter(psi.values())).h.dtype)
        return words | _sweep.begun(self.nodes, psi, mask)

    def first_words(self, args: tuple) -> dict[str, Float[Array, "T _"]]:
        """Where mean field begins."""
        return first_words(self.nodes, self.no_word(args), args)

    @property
    def sweep(self) -> Callable:
        """sweep(words, args) -> words: the function whose fixed point mean field is."""
        return partial(_sweep.sweep, self.nodes)

    def _record(self, values: list) -> Any:
        return record(tuple(node.name for node in self.nodes))(*values)

    def parts(self) -> dict[str, slice]:
        """The columns of a latent that belong to each continuous block."""
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
        group: Any = None,
    ) -> Any:
        """A path of every block ~ p(x, z | theta); with `start`, paths of any length, the `length` steps after them.

        `inputs` are those of the frames that are simulated, `group` is as in `infer`.
        """
        self.check_inputs(inputs, length)
        theta = _habits.theta_of(self, theta, group)
        last = None if start is None else start._asdict()
        paths = _simulation.simulate(self, theta, length, key, last, inputs)
        return self._record([paths[node.name] for node in self.nodes])

    def latent(self, paths: Any) -> Float[Array, "*B T D"]:
        """x: the paths of all continuous blocks side by side."""
        return side_by_side([getattr(paths, name) for name in self.continuous])

    def labels_by_block(self, paths: Any) -> dict[str, Int[Array, "*B T"]]:
        """The path of every discrete block, by name."""
        return {name: _simulation.states_of(getattr(paths, name)) for name in self.discrete}

    def labels(self, paths: Any) -> Int[Array, "*B T"]:
        """The path of the block that is shown; 0 throughout where there is none."""
        if self.shown is None:
            return jnp.zeros(self.latent(paths).shape[:-1], int)
        return _simulation.states_of(getattr(paths, self.shown))

    def log_prob(
        self,
        theta: Any,
        x: Float[Array, "T D"],
        mask: Bool[Array, " T"],
        inputs: Float[Array, "T _"] | None = None,
        group: Any = None,
    ) -> Float[Array, " T"]:
        """log p(x_t | x_1..x_{t-1}, theta), the states of all discrete blocks summed over; 0 at padding."""
        theta = _habits.theta_of(self, theta, group)
        each = {name: x[:, part] for name, part in self.parts().items()}
        return _density.log_prob(self, theta, each, mask, self._known(inputs, mask))

    def as_seen(self, q: Any) -> Any:
        """q(theta) without the sticky counts that price a switch: what simulations are drawn from."""
        return _shown.as_seen(self, q)

    def conditionals(self, q: Any) -> LinearGaussian | None:
        """x_t given each state that is shown, of the block nearest to it: W (K, D, U) with u = (x_t-1, 1) or u = 1.

        Other parents are averaged over, and inputs are 0; None where the latent has no parameters, and for a block that
        is not a parent of any. Of a network it is the expansion about x = 0.
        """
        return _shown.conditionals(self, q)

    def beyond(self, x: Float[Array, "N D"]) -> Float[Array, "N D"] | None:
        """What a network adds at x to the mean of those conditionals; None where there is none."""
        return _shown.beyond(self, x)

    def durations(self, q: Any) -> Float[Array, "K longest"] | None:
        """The mean probability that a bout of each shown state lasts 1, 2, ... frames; None without durations."""
        return _shown.durations(self, q)

    # --- start ----------------------------------------------------------------------------------------------------

    def initialize(
        self, latents: list, states: list, inputs: list | None = None, groups: list[int] | None = None
    ) -> Any:
        """q(theta) = prior + statistics of complete data: latents (T_i, D), and `states`, in numpy float64.

        `states` are responsibilities (T_i, K) of the block that is shown, or by block {name: (T_i, K)}; a discrete
        block that has none starts from random stretches, so that its states differ. `inputs` are (T_i, n), or None;
        `groups` are the numbers of the recordings' groups.
        """
        for i, x in enumerate(latents):
            self.check_inputs(None if inputs is None else inputs[i], len(x))
        fitted = [
            _habits.initialize(self, node, own, said, groups)
            if node.block.by
            else node.block.initialize(getattr(self.prior, node.name), node.every_size, own, said, **known)
            for node, own, said, known in _start.complete(self, latents, states, inputs)
        ]
        return self._record(fitted)

    def start(self, q: Any, latents: list, states: list, inputs: list | None = None) -> "Graph":
        """The graph with ordinary parameters that follow from the complete data of `initialize`, and q(theta) of it."""
        parts, found = self.parts(), []
        for node, own, said, known in _start.complete(self, latents, states, inputs):
            x = None if node.driver is None else [path[:, parts[node.driver]] for path in latents]
            ordinary, of_node = getattr(self.ordinary, node.name), getattr(q, node.name)
            regressed = lambda: node.block.start(ordinary, of_node, own, said, x, **known)  # noqa: B023, E731
            found.append(_habits.start(self, node, of_node) if node.block.by else regressed())
        return dataclasses.replace(self, ordinary=self._record(found))


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
    of = lambda values: record(tuple(node.name for node in nodes))(*values)  # noqa: E731
    drivers = [{} if node.driver is None else {"driver": blocks[node.driver].size} for node in nodes]
    prior = of([node.block.prior(node.every_size, **driver) for node, driver in zip(nodes, drivers, strict=True)])
    ordinary = of(
        [_habits.ordinary(node, driver.get("driver", 0)) for node, driver in zip(nodes, drivers, strict=True)]
    )
    usual = step_by_step if any(node.block.nonlinear for node in nodes) else implicit
    made = Graph(prior, nodes, _nearest(nodes) if show is None else show, solve or usual, ordinary)
    return made.for_groups(0)


def _in_place(name: str, blocks: dict[str, Any]) -> Node:
    sizes = lambda found: tuple(blocks[parent].size for parent in found)  # noqa: E731
    within, earlier = parents(blocks[name]), names(blocks[name].after)
    before = tuple(parent for parent in earlier if not blocks[parent].continuous)
    driver = next((parent for parent in earlier if blocks[parent].continuous), None)
    return Node(name, blocks[name], within, sizes(within), before, sizes(before), driver)


def _nearest(nodes: tuple[Node, ...]) -> str | None:
    """The first discrete parent of a continuous block."""
    found = [parent for node in nodes if node.block.continuous for parent in node.parents]
    return found[0] if found else None


def _expected(psi: Any, q: Any) -> Float[Array, " T"]:
    """E_q psi_t of one block."""
    return expected_potential(psi, q) if isinstance(psi, Gaussian) else jnp.sum(psi * q.states, -1)


def _sum(terms: list) -> Any:
    return sum(terms[1:], terms[0])
