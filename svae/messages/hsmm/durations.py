"""The hidden semi-Markov chain in O(T K (K + longest)): filter, smoother, what follows. Pure JAX on every backend."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from svae.messages.algebra import rematerialized
from svae.messages.algebra.compensated import compensated_sum
from svae.messages.algebra.statistics import statistics
from svae.messages.hmm import chain as hmm_chain
from svae.messages.hmm.chain import HMMFiltered, logsumexp
from svae.messages.hsmm import chain as hsmm_chain
from svae.messages.hsmm import steps
from svae.messages.hsmm.chain import HSMMChain, HSMMSmoothed
from svae.messages.hsmm.paths import sample, viterbi

__all__ = ["ahead", "filter", "log_normalizer", "sample", "smooth", "viterbi"]


def _run(chain: HSMMChain) -> tuple[steps.Now, HMMFiltered]:
    """Where the filter ends, and log p(z_t | nodes to t) with the increments of log Z."""
    survivors = hsmm_chain.log_survivors(chain.log_durations)

    def step(now, frame):
        now, increment = steps.advance(logsumexp, chain, survivors, now, frame)
        return now, HMMFiltered(now.states, increment)

    return rematerialized.scan(step, steps.start(chain), steps.frames(chain))


def _increments(potentials, mask):
    return _run(HSMMChain(*potentials, mask))[1].log_z


def filter(chain: HSMMChain) -> HMMFiltered:
    """log p(z_t | nodes to t) and the increments of log Z."""
    centred = hsmm_chain.centre(chain)
    found = _run(centred.chain)[1]
    return HMMFiltered(found.log_states, found.log_z + centred.maximum)


def smooth(chain: HSMMChain) -> HSMMSmoothed:
    """Marginals, expected first bouts, switches and bouts, increments of log Z and of the KL."""
    centred = hsmm_chain.centre(chain)
    (start, transitions, durations, states), increments = statistics(_increments, centred.chain[:-1], chain.mask)
    states, transitions = states[hsmm_chain.held(chain.mask)], transitions.reshape(chain.log_trans.shape)
    kl = hmm_chain.kl(centred, states, increments)
    return HSMMSmoothed(states, start, transitions, durations, increments + centred.maximum, kl)


def log_normalizer(chain: HSMMChain) -> Float[Array, ""]:
    """log Z, the compensated sum of the filter's increments."""
    return compensated_sum(filter(chain).log_z)


def ahead(chain: HSMMChain, log_trans: Float[Array, "K K"]) -> Float[Array, "K longest"]:
    """log_start of the frames that follow: log p(state of the next one, frames left to its bout | nodes).

    log_trans leads into the next frame. A chain cut in two at any frame so has the filtered states of the whole.
    """
    chain = hsmm_chain.centre(chain).chain
    now, longest = _run(chain)[0], chain.log_durations.shape[1]

    def left(table, had):
        """The table's columns for the frames that follow those that a bout has had."""
        return jnp.where(jnp.arange(longest) + had < longest, jnp.roll(table, -had, 1), -jnp.inf)

    def add(total, had):
        onward = now.grid[:, had - 1, None] + left(chain.log_durations, had)
        return logsumexp(jnp.stack([total, onward]), 0), None

    begun = logsumexp(now.end[:, None] + log_trans, 0)[:, None] + chain.log_durations
    first = now.grid[:, -1:] + left(chain.log_start, jnp.sum(chain.mask))
    return lax.scan(add, logsumexp(jnp.stack([begun, first]), 0), jnp.arange(1, longest + 1))[0]
