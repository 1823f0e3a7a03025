"""The hidden Markov chain: its types, and the log-space algebra that its forms share."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int


class HMMChain(NamedTuple):
    """exp(log_init[z_1]) prod exp(log_trans[z_t, z_t+1]) prod exp(node[t, z_t]); unnormalised, -inf allowed.

    log_trans is one matrix, (K, K) or (1, K, K), or one for every step, (T-1, K, K): entry t leads from z_t to z_t+1.
    A step whose mask is False is padding: messages pass it unchanged and it adds 0 to everything. The first is real.
    """

    log_init: Float[Array, "K"]
    log_trans: Float[Array, "K K"] | Float[Array, "S K K"]
    node: Float[Array, "T K"]
    mask: Bool[Array, "T"]


class HMMFiltered(NamedTuple):
    """log p(z_t | nodes to t), and the increments of log Z (0 at padding)."""

    log_states: Float[Array, "T K"]
    log_z: Float[Array, "T"]


class HMMSmoothed(NamedTuple):
    """Marginals (padding repeats the last real one), expected pair counts, increments of log Z and of the KL."""

    states: Float[Array, "T K"]
    transitions: Float[Array, "K K"]
    log_z: Float[Array, "T"]
    kl: Float[Array, "T"]


class HMMPairs(NamedTuple):
    """Marginals, those of every pair (z_t, z_t+1), 0 where t+1 is padding, increments of log Z and of the KL."""

    states: Float[Array, "T K"]
    pairs: Float[Array, "T-1 K K"]
    log_z: Float[Array, "T"]
    kl: Float[Array, "T"]


class Centred(NamedTuple):
    """A chain whose nodes have maximum 0 and whose padded nodes are 0, with the maxima taken out."""

    chain: NamedTuple
    maximum: Float[Array, "T"]


def steady(chain) -> bool:
    """Whether one transition matrix serves all steps."""
    T, K = chain.node.shape
    shape = chain.log_trans.shape
    if shape not in ((K, K), (1, K, K), (T - 1, K, K)):
        found = "x".join(map(str, shape))
        raise ValueError(f"log_trans is {found}; a chain of {T} steps and {K} states takes KxK, 1xKxK or (T-1)xKxK")
    return len(shape) == 2 or shape[0] == 1


def one_matrix(chain):
    """A steady chain with log_trans (K, K)."""
    return chain._replace(log_trans=chain.log_trans.reshape(chain.log_trans.shape[-2:]))


def stacked(chain):
    """The chain with log_trans (1 or T-1, K, K)."""
    return chain._replace(log_trans=chain.log_trans[None]) if chain.log_trans.ndim == 2 else chain


def logsumexp(x: Float[Array, "..."], axis: int) -> Float[Array, "..."]:
    """log sum exp x, with -inf (and a zero gradient) for a slice of -inf."""
    m = lax.stop_gradient(jnp.max(x, axis, keepdims=True))
    m = jnp.where(jnp.isfinite(m), m, 0)
    s = jnp.sum(jnp.exp(x - m), axis)
    return jnp.where(s == 0, -jnp.inf, jnp.log(jnp.where(s == 0, 1, s)) + jnp.squeeze(m, axis))


def finite(x):
    """x with 0 in place of -inf: what to subtract from logarithms that are -inf themselves."""
    return jnp.where(x == -jnp.inf, 0, x)


def centre(chain) -> Centred:
    """Takes the maximum out of each node, so that increments and KL do not carry its scale."""
    node = jnp.where(chain.mask[:, None], chain.node, 0)
    maximum = finite(lax.stop_gradient(jnp.max(node, -1)))
    return Centred(chain._replace(node=node - maximum[:, None]), maximum)


def propagate(log_states, log_trans):
    """log sum_i p[i] exp(log_trans[i, j])."""
    return logsumexp(log_states[:, None] + log_trans, -2)


def backward_kernel(log_states, log_trans):
    """p(z_t = i | z_t+1 = j): its columns sum to 1, or to 0 where j cannot follow."""
    pairs = log_states[:, None] + log_trans
    return jnp.exp(pairs - finite(logsumexp(pairs, -2))[None])


def kl(centred: Centred, states, increments) -> Float[Array, "T"]:
    """<node_t, states_t> - log_z_t, the maximum having left both."""
    return jnp.where(centred.chain.mask, jnp.sum(finite(centred.chain.node) * states, -1) - increments, 0)


def choices(scores: Float[Array, "S K"], chain: HMMChain) -> Int[Array, "S K"]:
    """The best z_t for every z_t+1: argmax_i scores[t, i] + log_trans[t, i, j]; itself where t+1 is padding."""
    mask = chain.mask
    best = jnp.argmax(scores[:, :, None] + stacked(chain).log_trans, -2)
    return jnp.where(mask[1:, None], best, jnp.arange(best.shape[-1])[None])
