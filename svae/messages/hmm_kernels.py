"""The hidden Markov chain in compiled kernels, with the derivative as two more sweeps; the signatures of pure JAX."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from svae.messages import kernels
from svae.messages.compensated import compensated_sum
from svae.messages.hmm_chain import HMMChain, HMMFiltered, HMMSmoothed

if not kernels.status().serve:
    raise ImportError(kernels.status().reason)


def _call(name, shapes, potentials, *more):
    T, K = potentials[2].shape
    return kernels.call(name, shapes, *potentials, *more, T=T, D=K)


def _shapes(potentials):
    return [x.shape for x in potentials[:3]]


@jax.custom_vjp
def _filter(*potentials) -> HMMFiltered:
    _, _, node = _shapes(potentials)
    return HMMFiltered(*_call("svae_hmm_filter", (node, node[:1]), potentials))


def _filter_backward(potentials, cotangents):
    d = _call("svae_hmm_filter_vjp", _shapes(potentials), potentials, *cotangents)
    return *d, jnp.zeros_like(potentials[3])


_filter.defvjp(lambda *potentials: (_filter(*potentials), potentials), _filter_backward)


@jax.custom_vjp
def _smooth(*potentials) -> HMMSmoothed:
    _, trans, node = _shapes(potentials)
    return HMMSmoothed(*_call("svae_hmm_smooth", (node, trans, node[:1], node[:1]), potentials))


def _smooth_forward(*potentials):
    q = _smooth(*potentials)
    return q, (potentials, q.states, q.transitions)


def _smooth_backward(kept, cotangents):
    potentials, *smoothed = kept
    d = _call("svae_hmm_smooth_vjp", _shapes(potentials), potentials, *smoothed, *cotangents)
    return *d, jnp.zeros_like(potentials[3])


_smooth.defvjp(_smooth_forward, _smooth_backward)


def _potentials(chain: HMMChain):
    """The chain with its mask as numbers: a kernel takes operands of one type."""
    return chain.log_init, chain.log_trans, chain.node, chain.mask.astype(chain.node.dtype)


def _path(name: str, potentials) -> Int[Array, "T"]:
    (z,) = _call(name, (potentials[2].shape[:1],), jax.lax.stop_gradient(potentials))
    return z.astype(int)


def filter(chain: HMMChain) -> HMMFiltered:
    """log p(z_t | nodes to t) and the increments of log Z."""
    return _filter(*_potentials(chain))


def smooth(chain: HMMChain) -> HMMSmoothed:
    """Marginals, expected pair counts, increments of log Z and of the KL."""
    return _smooth(*_potentials(chain))


def log_normalizer(chain: HMMChain) -> Float[Array, ""]:
    """log Z, the compensated sum of the filter's increments."""
    return compensated_sum(filter(chain).log_z)


def sample(chain: HMMChain, *, key) -> Int[Array, "T"]:
    """A draw of z_1..z_T from q, by Gumbel noise on the filtered states; padding repeats the last real state."""
    log_states = filter(chain).log_states
    noisy = log_states + jax.random.gumbel(key, log_states.shape, log_states.dtype)
    return _path("svae_hmm_backtrack", _potentials(chain._replace(node=noisy)))


def viterbi(chain: HMMChain) -> Int[Array, "T"]:
    """The most probable path; padding repeats the last real state."""
    return _path("svae_hmm_viterbi", _potentials(chain))
