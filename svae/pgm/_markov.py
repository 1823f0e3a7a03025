"""The discrete chain that `hmm` and `slds` share."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from svae.expfam import Dirichlet
from svae.messages import HMMChain
from svae.pgm._base import Latents


def state_chain(moments, node: Float[Array, "T K"], mask: Bool[Array, " T"]) -> HMMChain:
    """q(z) given node potentials, with E log pi in place of log pi."""
    return HMMChain(moments.init.log_prob, moments.transitions.log_prob, node, mask)


def simulate_states(theta, length: int, *, key: PRNGKeyArray, start: Latents | None) -> Int[Array, " T"]:
    """z_1..z_length ~ p(z | theta), or the steps that follow `start`."""
    first_logits = theta.init if start is None else theta.transitions[start.z[-1]]
    key_first, key_rest = jax.random.split(key)
    first = jax.random.categorical(key_first, first_logits)

    def advance(z, key):
        following = jax.random.categorical(key, theta.transitions[z])
        return following, following

    _, rest = jax.lax.scan(advance, first, jax.random.split(key_rest, length - 1))
    return jnp.concatenate([first[None], rest])


def as_seen(q: Dirichlet, prior: Dirichlet, frames: Float[Array, " K"]) -> Dirichlet:
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
