"""`SemiMarkov`: discrete, bouts whose durations have a distribution of their own for each state.

A state is followed by another one, never by itself. Every sequence that is inferred begins with a bout: a window that
is cut out of a recording takes the bout that it cuts for a shorter one, so windows need an overlap of a bout or more.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from svae import messages
from svae.expfam import Dirichlet
from svae.messages import HSMMChain, HSMMSmoothed
from svae.pgm._block import AbstractBlock, GraphError, positive, whole
from svae.pgm._posterior import SemiHidden, SemiMarkovPath
from svae.pgm._priors import dirichlet_prior, first_counts, fit_dirichlet, stack, tile

LENGTH = 0.5  # prior counts of each length, after Jeffreys


class SemiMarkovGlobals(NamedTuple):
    init: Dirichlet
    transitions: Dirichlet  # (K, K-1): row i leaves out i itself
    durations: Dirichlet  # (K, longest): column r - 1 is r frames


class Local(NamedTuple):
    chain: HSMMChain
    smoothed: HSMMSmoothed

    @property
    def states(self):
        return self.smoothed.states


@dataclass(frozen=True)
class SemiMarkov(AbstractBlock):
    """Bouts of at most `longest` frames, each of one of `size` states; it has no parents."""

    size: int
    longest: int
    concentration: float = 1.0
    given = ()
    continuous = False
    remembers = True

    def __post_init__(self):
        whole("SemiMarkov", "states", self.size)
        whole("SemiMarkov", "frames in its longest bout", self.longest)
        positive("SemiMarkov", "concentration", self.concentration)
        if self.size < 2:
            raise GraphError("SemiMarkov needs two states or more: a bout is followed by one of another state")

    def prior(self, sizes):
        K = self.size
        others = dirichlet_prior(K - 1, concentration=self.concentration)
        lengths = Dirichlet(tile(np.full(self.longest, LENGTH), ()))
        return SemiMarkovGlobals(
            dirichlet_prior(K, concentration=self.concentration), stack(others, (K,)), stack(lengths, (K,))
        )

    def initialize(self, prior, sizes, own, said):
        switches, lengths = np.zeros((self.size, self.size)), np.zeros((self.size, self.longest))
        for weights in own:
            states, frames = _bouts(weights.argmax(1), self.longest)
            np.add.at(lengths, (states, frames - 1), 1)
            np.add.at(switches, (states[:-1], states[1:]), 1)
        return SemiMarkovGlobals(
            fit_dirichlet(prior.init, first_counts(own)),
            fit_dirichlet(prior.transitions, switches[~np.eye(self.size, dtype=bool)].reshape(self.size, -1)),
            fit_dirichlet(prior.durations, lengths),
        )

    def infer(self, tables, said, potential, mask):
        chain = _chain(*(table.log_prob for table in tables), potential, mask)
        return Local(chain, messages.hsmm.smooth(chain))

    def factor(self, local):
        return SemiHidden(local.chain, local.smoothed.states)

    def back(self, tables, local, said, i):
        raise NotImplementedError("a semi-Markov chain has no parents")

    def kl(self, tables, local, mask):
        return local.smoothed.kl

    def simulate(self, theta, sizes, paths, length, *, key, start):
        rows = _all_states(theta.transitions)
        key_first, key_length, key_rest = jax.random.split(key, 3)

        def begin(state, key):
            return SemiMarkovPath(state, jax.random.categorical(key, theta.durations[state]))

        def advance(now, key):
            key_state, key_length = jax.random.split(key)
            bout = begin(jax.random.categorical(key_state, rows[now.states]), key_length)
            going = SemiMarkovPath(now.states, now.remaining - 1)
            after = jax.tree.map(lambda a, b: jnp.where(now.remaining > 0, a, b), going, bout)
            return after, after

        if start is None:
            first = begin(jax.random.categorical(key_first, theta.init), key_length)
        else:
            first, _ = advance(jax.tree.map(lambda a: a[-1], start), key_first)
        _, rest = jax.lax.scan(advance, first, jax.random.split(key_rest, length - 1))
        return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, rest)

    def evidence(self, theta, node, mask):
        """log p(frame | past), the bouts summed over, of the only discrete block."""
        return messages.hsmm.filter(_chain(*theta, node, mask)).log_z


def _chain(init, transitions, durations, node, mask) -> HSMMChain:
    return HSMMChain(messages.begins(init, durations), _all_states(transitions), durations, node, mask)


def _all_states(rows: Float[Array, "K J"]) -> Float[Array, "K K"]:
    """Rows without themselves as rows over all states, with log 0 on the diagonal."""
    K = len(rows)
    column = np.arange(K)[None] - (np.arange(K)[None] > np.arange(K)[:, None])  # of state j in row i
    chosen = jnp.take_along_axis(rows, jnp.asarray(np.minimum(column, K - 2)), 1)
    return jnp.where(jnp.eye(K, dtype=bool), -jnp.inf, chosen)


def _bouts(labels: np.ndarray, longest: int) -> tuple[np.ndarray, np.ndarray]:
    """States and frames of runs of equal labels; longer runs count as the longest."""
    edges = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1], True])
    return labels[edges[:-1]], np.minimum(np.diff(edges), longest)
