"""The hidden Markov chain in fused GPU kernels, with the derivative as two more sweeps; the signatures of pure JAX."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from svae.messages import gpu
from svae.messages.algebra.compensated import compensated_sum
from svae.messages.hmm import chain as hmm
from svae.messages.hmm import parallel
from svae.messages.hmm.chain import HMMChain, HMMFiltered, HMMSmoothed


def _call(name, shapes, node, *operands):
    T, K = node.shape
    return gpu.call(name, shapes, *operands, T=T, D=K)


@jax.custom_vjp
def _filter(*potentials):
    return _filter_forward(*potentials)[0]


def _filter_forward(*potentials):
    """log states and increments of a centred chain."""
    log_init, trans, node, mask = potentials
    shapes = node.shape, mask.shape, node.shape
    log_states, increments, products = _call("svae_gpu_hmm_filter", shapes, node, *potentials)
    return (log_states, increments), (log_init, trans, mask, log_states, products)


def _filter_backward(kept, cotangents):
    log_init, trans, mask, log_states, products = kept
    shapes = log_init.shape, trans.shape, log_states.shape
    operands = trans, mask, log_states, products, *cotangents
    return *_call("svae_gpu_hmm_filter_vjp", shapes, log_states, *operands), jnp.zeros_like(mask)


_filter.defvjp(_filter_forward, _filter_backward)


@jax.custom_vjp
def _smooth(*potentials):
    return _smooth_forward(*potentials)[0]


def _smooth_forward(*potentials):
    """Marginals, pair counts and increments of a centred chain."""
    log_init, trans, node, mask = potentials
    shapes = node.shape, trans.shape, mask.shape, node.shape, node.shape
    *found, log_states, products = _call("svae_gpu_hmm_smooth", shapes, node, *potentials)
    return tuple(found), (log_init, trans, mask, log_states, products, *found[:2])


def _smooth_backward(kept, cotangents):
    log_init, *operands = kept
    trans, mask, log_states = operands[:3]
    shapes = log_init.shape, trans.shape, log_states.shape
    d = _call("svae_gpu_hmm_smooth_vjp", shapes, log_states, *operands, *cotangents)
    return *d, jnp.zeros_like(mask)


_smooth.defvjp(_smooth_forward, _smooth_backward)


def _potentials(chain: HMMChain):
    """The chain with its mask as numbers: a kernel takes operands of one type."""
    return chain.log_init, chain.log_trans, chain.node, chain.mask.astype(chain.node.dtype)


def filter(chain: HMMChain) -> HMMFiltered:
    """log p(z_t | nodes to t) and the increments of log Z."""
    centred = hmm.centre(hmm.one_matrix(chain))
    log_states, increments = _filter(*_potentials(centred.chain))
    return HMMFiltered(log_states, increments + centred.maximum)


def smooth(chain: HMMChain) -> HMMSmoothed:
    """Marginals, expected pair counts, increments of log Z and of the KL."""
    centred = hmm.centre(hmm.one_matrix(chain))
    states, transitions, increments = _smooth(*_potentials(centred.chain))
    return HMMSmoothed(states, transitions, increments + centred.maximum, hmm.kl(centred, states, increments))


def log_normalizer(chain: HMMChain) -> Float[Array, ""]:
    """log Z, the compensated sum of the filter's increments."""
    return compensated_sum(filter(chain).log_z)


def sample(chain: HMMChain, *, key) -> Int[Array, "T"]:
    """A draw of z_1..z_T from q, by Gumbel noise on the filtered states; padding repeats the last real state."""
    return parallel.sample_filtered(chain, filter(chain).log_states, key=key)


def viterbi(chain: HMMChain) -> Int[Array, "T"]:
    """The most probable path; padding repeats the last real state."""
    return parallel.viterbi(chain)
