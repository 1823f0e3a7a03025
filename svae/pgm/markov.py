"""`Markov`: discrete, a hidden chain; with parents, a table of transitions for each combination of their states."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from svae import messages
from svae._linalg import mm, mT
from svae.expfam import Dirichlet
from svae.messages import HMMChain, HMMSmoothed
from svae.pgm._block import AbstractBlock, index, joint, positive, rows_of, towards, whole
from svae.pgm._posterior import Hidden
from svae.pgm._priors import dirichlet_prior, first_counts, fit_dirichlet, stack, sticky_prior, transition_counts


class MarkovGlobals(NamedTuple):
    init: Dirichlet
    transitions: Dirichlet


class Local(NamedTuple):
    chain: HMMChain
    smoothed: HMMSmoothed

    @property
    def states(self):
        return self.smoothed.states


@dataclass(frozen=True)
class Markov(AbstractBlock):
    """One of `size` states at every step, which depends on the one before; `stickiness` is extra counts on staying."""

    size: int
    given: str | tuple[str, ...] = ()
    concentration: float = 1.0
    stickiness: float = 0.0
    continuous = False
    remembers = True

    def __post_init__(self):
        whole("Markov", "states", self.size)
        positive("Markov", "concentration", self.concentration)

    def prior(self, sizes):
        init = dirichlet_prior(self.size, concentration=self.concentration)
        rows = sticky_prior(self.size, concentration=self.concentration, stickiness=self.stickiness)
        return MarkovGlobals(stack(init, sizes), stack(rows, sizes))

    def initialize(self, prior, sizes, own, said):
        first, pairs = first_counts(own), transition_counts(own)
        if sizes:
            rows = [rows_of(weights) for weights in said]
            first = sum(np.outer(r[0], w[0]) for r, w in zip(rows, own, strict=True))
            pairs = sum(np.einsum("tm,ti,tj->mij", r[1:], w[:-1], w[1:]) for r, w in zip(rows, own, strict=True))
        return MarkovGlobals(fit_dirichlet(prior.init, first), fit_dirichlet(prior.transitions, pairs))

    def infer(self, tables, said, potential, mask):
        init, rows = tables.init.log_prob, tables.transitions.log_prob
        if said:
            weights = joint(said)
            init = mm(weights[:1], init)[0]
            rows = mm(weights[1:], rows.reshape(len(rows), -1)).reshape(-1, *rows.shape[1:])
        chain = HMMChain(init, rows, potential, mask)
        return Local(chain, messages.hmm.smooth(chain))

    def factor(self, local):
        return Hidden(local.chain, local.smoothed.states)

    def back(self, tables, local, said, i):
        rows, q = tables.transitions.log_prob, messages.hmm.smooth_pairs(local.chain)
        first = mm(q.states[:1], mT(tables.init.log_prob))
        later = mm(q.pairs.reshape(len(q.pairs), -1), mT(rows.reshape(len(rows), -1)))
        scores = jnp.concatenate([first, later])
        return towards(i, scores - jnp.max(scores, -1, keepdims=True), said)

    def kl(self, tables, local, mask):
        return local.smoothed.kl

    def simulate(self, theta, sizes, paths, length, *, key, start):
        row = index(paths, sizes) if sizes else None
        rows = lambda t: theta.transitions if row is None else theta.transitions[row[t]]  # noqa: E731
        init = theta.init if row is None else theta.init[row[0]]
        key_first, key_rest = jax.random.split(key)
        first = jax.random.categorical(key_first, init if start is None else rows(0)[start[-1]])

        def advance(z, inputs):
            t, key = inputs
            following = jax.random.categorical(key, rows(t)[z])
            return following, following

        steps = jnp.arange(1, length), jax.random.split(key_rest, length - 1)
        return jnp.concatenate([first[None], jax.lax.scan(advance, first, steps)[1]])

    def evidence(self, theta, node, mask):
        """log p(frame | past), the states summed over, of the only discrete block."""
        return messages.hmm.filter(HMMChain(theta.init, theta.transitions, node, mask)).log_z

    def log_rows(self, theta, sizes):
        """Logarithms of p(first | parents) (*sizes, K) and of p(next | parents, last) (*sizes, K, K)."""
        return theta.init.reshape(*sizes, self.size), theta.transitions.reshape(*sizes, self.size, self.size)

    def as_seen(self, q, prior, frames):
        """q had the prior not been sticky; `frames` is the number of frames in each state."""
        return q._replace(transitions=without_stickiness(q.transitions, prior.transitions, frames))


def without_stickiness(q: Dirichlet, prior: Dirichlet, frames: Float[Array, " K"]) -> Dirichlet:
    """q(transitions) had the prior not been sticky; `frames` is the number of frames in each state.

    Sticky counts drown those that were seen (1e20 of them leave float32 none), so a state's stays are its frames less
    its switches to others, and only these enter the rows of q.
    """
    K = len(frames)
    eye = jnp.eye(K, dtype=bool)
    plain = prior.counts[0, -1]  # of every other state
    out = jnp.sum(jnp.where(eye, 0, q.counts - plain), -1)
    stays = plain + jnp.maximum(frames - jnp.maximum(out, 0), 0)
    return Dirichlet(jnp.where(eye, stays[:, None], q.counts))
