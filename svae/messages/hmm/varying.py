"""Hidden chains whose transitions may change in time: all but two recursions is done for all steps at once.

A form brings the scores of the filter and a linear recursion of vectors, sequential or parallel. Chains here have
log_trans (1 or T-1, K, K).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from svae._linalg import mT
from svae.messages.algebra.compensated import compensated_sum
from svae.messages.hmm import chain as hmm
from svae.messages.hmm.chain import HMMChain, HMMFiltered, HMMPairs, HMMSmoothed


def filtered(scores: Callable, vectors: Callable) -> Callable:
    """log p(z_t | nodes to t) as a function of a centred chain, with its derivative by the recursion."""

    @jax.custom_jvp
    def log_states(chain: HMMChain) -> Float[Array, "T K"]:
        found = scores(chain)
        return found - hmm.finite(hmm.logsumexp(found, -1))[:, None]

    @log_states.defjvp
    def _(primals, tangents):
        """With B_t the backward kernel: ds_t = B_t-1' (ds_t-1 - <states, ds_t-1>) + <B_t-1, dlog_trans> + dnode_t."""
        (chain,), (d,) = primals, tangents
        found = log_states(chain)
        states, B, real = jnp.exp(found), kernels(chain, found), chain.mask[1:, None]
        driven = jnp.where(real, jnp.sum(B * d.log_trans, -2) + d.node[1:], 0)
        first = d.log_init + jnp.where(chain.mask[0], d.node[0], 0)
        ds = vectors(mT(B) - states[:-1, None, :], jnp.concatenate([first[None], driven]))
        return found, ds - jnp.sum(states * ds, -1, keepdims=True)

    return log_states


def kernels(chain: HMMChain, log_states) -> Float[Array, "S K K"]:
    """p(z_t | z_t+1) for every t, the identity where t+1 is padding."""
    identity = jnp.eye(len(chain.log_init), dtype=log_states.dtype)
    pairs = log_states[:-1, :, None] + chain.log_trans
    found = jnp.exp(pairs - hmm.finite(hmm.logsumexp(pairs, -2))[:, None])
    return jnp.where(chain.mask[1:, None, None], found, identity[None])


def increments(chain: HMMChain, log_states) -> Float[Array, "T"]:
    """The increments of log Z, 0 at padding."""
    log_next = hmm.logsumexp(log_states[:-1, :, None] + chain.log_trans, -2)
    log_prior = jnp.concatenate([chain.log_init[None], log_next])
    return jnp.where(chain.mask, hmm.logsumexp(log_prior + chain.node, -1), 0)


def filter(chain: HMMChain, log_states: Callable) -> HMMFiltered:
    """log p(z_t | nodes to t) and the increments of log Z."""
    centred = hmm.centre(hmm.stacked(chain))
    found = log_states(centred.chain)
    return HMMFiltered(found, increments(centred.chain, found) + centred.maximum)


def smooth_pairs(chain: HMMChain, log_states: Callable, vectors: Callable) -> HMMPairs:
    """Marginals of states and of pairs, increments of log Z and of the KL: states_t = kernel_t states_t+1."""
    centred = hmm.centre(hmm.stacked(chain))
    chain, found = centred.chain, log_states(centred.chain)
    increment, B = increments(chain, found), kernels(chain, found)
    last = jnp.zeros_like(found).at[0].set(jnp.exp(found[-1]))
    states = jnp.flip(vectors(jnp.flip(B, 0), last), 0)
    pairs = jnp.where(chain.mask[1:, None, None], B * states[1:, None, :], 0)
    return HMMPairs(states, pairs, increment + centred.maximum, hmm.kl(centred, states, increment))


def summed(q: HMMPairs) -> HMMSmoothed:
    """Pair counts in place of the pairs."""
    return HMMSmoothed(q.states, compensated_sum(q.pairs), q.log_z, q.kl)
