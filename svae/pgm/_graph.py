"""A latent graphical model composed of blocks: what it says about itself, and all that can be asked of it.

How each of these is answered is in a module of its own; `_making` has `graph`, which makes one.
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
from svae.pgm import _density, _group_transitions, _inference, _inputs, _shown_block, _simulation, _start, _sweep
from svae.pgm._description import arrows, title
from svae.pgm._mean_field import implicit
from svae.pgm._mean_field_start import first_words
from svae.pgm._posterior import Posterior, side_by_side
from svae.pgm._sweep import Node

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
        return _shown_block.sticky(self)

    @property
    def longest(self) -> int:
        """Frames of the longest bout that any block has a table for; 1 where none has durations."""
        return max(getattr(node.block, "longest", 1) for node in self.nodes)

    @property
    def paced(self) -> bool:
        """Whether it takes a target duration of bouts: as stickiness, or to begin with durations or leaning states."""
        return _shown_block.paced(self)

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
        return _group_transitions.by(self)

    @property
    def believed(self) -> Any:
        """p(theta) as its ordinary parameters make it: `prior`, but for tables of groups."""
        return _group_transitions.believed(self)

    def for_groups(self, number: int) -> "Graph":
        """The graph with tables for so many groups, where a block has any."""
        return (
            dataclasses.replace(self, prior=_group_transitions.stacked(self, number), groups=number)
            if self.by
            else self
        )

    def with_new_group(self, q: Any) -> Any:
        """q(theta) with the tables of a group never seen after those of all others: what draws are made from."""
        return _group_transitions.with_new(self, q)

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
        return arrows(self.nodes)

    @property
    def numbers_per_frame(self) -> int:
        """The count of numbers that inference and its gradient hold, about: conditionals by state, tables of bouts."""
        return _inference.numbers_per_frame(self.nodes)

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
        return _inference.infer(self, moments, potentials, mask, start, states, inputs, group)

    def tables(self, moments: Any, inputs: Float[Array, "T n"] | None = None) -> dict[str, Any]:
        """Expected statistics as the sweeps take them, by block, beside the inputs of those that have any."""
        return _inputs.tables(self, moments, inputs)

    def beside(self, node: Node, inputs: Any) -> dict[str, Any]:
        """Inputs and ordinary parameters as arguments, of a block that takes any."""
        return _inputs.beside(self, node, inputs)

    def check_inputs(self, inputs: Any, length: int) -> None:
        """Raise unless inputs are what the graph wants for `length` frames: all of its columns, or none."""
        _inputs.check(self, inputs, length)

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
        theta = _group_transitions.theta_of(self, theta, group)
        return _simulation.simulate(self, theta, length, key, start, inputs)

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
        theta = _group_transitions.theta_of(self, theta, group)
        each = {name: x[:, part] for name, part in self.parts().items()}
        return _density.log_prob(self, theta, each, mask, _inputs.known(self, inputs, mask))

    def as_seen(self, q: Any) -> Any:
        """q(theta) without the sticky counts that price a switch: what simulations are drawn from."""
        return _shown_block.as_seen(self, q)

    def conditionals(self, q: Any) -> LinearGaussian | None:
        """x_t given each state that is shown, of the block nearest to it: W (K, D, U) with u = (x_t-1, 1) or u = 1.

        Other parents are averaged over, and inputs are 0; None where the latent has no parameters, and for a block that
        is not a parent of any. Of a network it is the expansion about x = 0.
        """
        return _shown_block.conditionals(self, q)

    def beyond(self, x: Float[Array, "N D"]) -> Float[Array, "N D"] | None:
        """What a network adds at x to the mean of those conditionals; None where there is none."""
        return _shown_block.beyond(self, x)

    def durations(self, q: Any) -> Float[Array, "K longest"] | None:
        """The mean probability that a bout of each shown state lasts 1, 2, ... frames; None without durations."""
        return _shown_block.durations(self, q)

    # --- start ----------------------------------------------------------------------------------------------------

    def initialize(
        self, latents: list, states: list, inputs: list | None = None, groups: list[int] | None = None
    ) -> Any:
        """q(theta) = prior + statistics of complete data: latents (T_i, D), and `states`, in numpy float64.

        `states` are responsibilities (T_i, K) of the block that is shown, or by block {name: (T_i, K)}; a discrete
        block that has none starts from random stretches, so that its states differ. `inputs` are (T_i, n), or None;
        `groups` are the numbers of the recordings' groups.
        """
        return _start.initialize(self, latents, states, inputs, groups)

    def start(self, q: Any, latents: list, states: list, inputs: list | None = None) -> "Graph":
        """The graph with ordinary parameters that follow from the complete data of `initialize`, and q(theta) of it."""
        return _start.start(self, q, latents, states, inputs)
