"""The hidden semi-Markov chain: its types, where it may start, and how long what has begun may still last.

A table (K, longest) says in column r - 1 the logarithm for r frames.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from svae.messages.hmm import chain as hmm


class HSMMChain(NamedTuple):
    """Bouts: exp(log_start[z, r]) of the first, exp(log_trans[z, z'] + log_durations[z', r]) of each other.

    Every frame multiplies by exp(node[t, z_t]). All are unnormalised, and -inf is allowed: on the diagonal of log_trans
    it says that no bout follows one of its own state. A bout that the last frame cuts is summed over the lengths that
    it may have. `begins` and `residual_life` make log_start, `hsmm.ahead` that of a chain which goes on. log_trans is
    (K, K), (1, K, K), or for every step (T-1, K, K). A step whose mask is False is padding, as in HMMChain.
    """

    log_start: Float[Array, "K longest"]
    log_trans: Float[Array, "K K"] | Float[Array, "S K K"]
    log_durations: Float[Array, "K longest"]
    node: Float[Array, "T K"]
    mask: Bool[Array, "T"]


class HSMMSmoothed(NamedTuple):
    """Expected statistics: marginals (padding repeats the last real one), first bouts by state and frames, switches
    (shaped like log_trans) and bouts after the first by state and length; increments of log Z and of the KL.

    The first four are the gradient of log Z.
    """

    states: Float[Array, "T K"]
    start: Float[Array, "K longest"]
    transitions: Float[Array, "..."]
    durations: Float[Array, "K longest"]
    log_z: Float[Array, "T"]
    kl: Float[Array, "T"]


class HSMMPath(NamedTuple):
    """A path: the state of every frame, the frames of its bout up to it, and those still to come after it."""

    states: Int[Array, "T"]
    spent: Int[Array, "T"]
    remaining: Int[Array, "T"]


def log_survivors(log_durations: Float[Array, "K longest"]) -> Float[Array, "K longest"]:
    """log of the sum over r or more frames, for every r."""

    def add(longer, column):
        total = hmm.logsumexp(jnp.stack([longer, column]), 0)
        return total, total

    none = jnp.full_like(log_durations[:, 0], -jnp.inf)
    return lax.scan(add, none, log_durations.T, reverse=True)[1].T


def begins(log_init: Float[Array, "K"], log_durations: Float[Array, "K longest"]) -> Float[Array, "K longest"]:
    """log_start of a chain whose first frame begins a bout.

    Args:
        log_init: Log probabilities of the first state (K,).
        log_durations: Log probabilities of 1, 2, ... frames in each state (K, longest).

    Returns:
        log_start (K, longest).
    """
    return log_init[:, None] + log_durations


def residual_life(log_init: Float[Array, "K"], log_durations: Float[Array, "K longest"]) -> Float[Array, "K longest"]:
    """log_start of a chain that is come upon at any moment: r frames remain with probability P(length >= r) / mean.

    Args:
        log_init: Log probabilities of the state (K,).
        log_durations: Log probabilities of 1, 2, ... frames in each state (K, longest).

    Returns:
        log_start (K, longest).
    """
    survivors = log_survivors(log_durations)
    return log_init[:, None] + survivors - hmm.finite(hmm.logsumexp(survivors, -1))[:, None]


def centre(chain) -> hmm.Centred:
    """The maximum taken out of each node, and log_trans (K, K) where one matrix serves all steps."""
    one = hmm.steady(chain)
    return hmm.centre(hmm.one_matrix(chain) if one else chain)


def held(mask: Bool[Array, "T"]) -> Int[Array, "T"]:
    """The step itself, or the last real one before padding."""
    return lax.cummax(jnp.where(mask, jnp.arange(len(mask)), 0))
