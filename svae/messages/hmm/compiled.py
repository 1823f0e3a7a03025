"""The hidden Markov chain in compiled kernels, with the derivative as two more sweeps; the signatures of pure JAX."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from svae.messages import kernels
from svae.messages.algebra.compensated import compensated_sum
from svae.messages.hmm import chain as hmm
from svae.messages.hmm import varying
from svae.messages.hmm.chain import HMMChain, HMMFiltered, HMMPairs, HMMSmoothed

if not kernels.status().serve:
    raise ImportError(kernels.status().reason)

STEADY, VARYING = "svae_hmm_", "svae_hmm_varying_"


def _call(name, shapes, potentials, *more):
    """The kernels for one matrix (K, K), or for one or many of them (1 or T-1, K, K)."""
    T, K = potentials[2].shape
    prefix = STEADY if potentials[1].ndim == 2 else VARYING
    return kernels.call(prefix + name, shapes, *potentials, *more, T=T, D=K)


def _shapes(potentials):
    return [x.shape for x in potentials[:3]]


@jax.custom_vjp
def _filter(*potentials) -> HMMFiltered:
    _, _, node = _shapes(potentials)
    return HMMFiltered(*_call("filter", (node, node[:1]), potentials))


def _filter_backward(potentials, cotangents):
    d = _call("filter_vjp", _shapes(potentials), potentials, *cotangents)
    return *d, jnp.zeros_like(potentials[3])


_filter.defvjp(lambda *potentials: (_filter(*potentials), potentials), _filter_backward)


@jax.custom_vjp
def _smooth(*potentials) -> HMMSmoothed | HMMPairs:
    """Counts of pairs where log_trans is (K, K), the pairs where it is (1 or T-1, K, K)."""
    _, trans, node = _shapes(potentials)
    if len(trans) == 2:
        return HMMSmoothed(*_call("smooth", (node, trans, node[:1], node[:1]), potentials))
    pairs = (node[0] - 1, *trans[1:])
    return HMMPairs(*_call("smooth", (node, pairs, node[:1], node[:1]), potentials))


def _smooth_forward(*potentials):
    q = _smooth(*potentials)
    return q, (potentials, *q[:2])


def _smooth_backward(kept, cotangents):
    potentials, *smoothed = kept
    d = _call("smooth_vjp", _shapes(potentials), potentials, *smoothed, *cotangents)
    return *d, jnp.zeros_like(potentials[3])


_smooth.defvjp(_smooth_forward, _smooth_backward)


def _potentials(chain: HMMChain):
    """The chain with its mask as numbers: a kernel takes operands of one type."""
    return chain.log_init, chain.log_trans, chain.node, chain.mask.astype(chain.node.dtype)


def _plain(chain: HMMChain) -> HMMChain:
    """log_trans (K, K) where one matrix serves all steps: these kernels are the faster ones."""
    return hmm.one_matrix(chain) if hmm.steady(chain) else chain


def _path(name: str, chain: HMMChain) -> Int[Array, "T"]:
    potentials = jax.lax.stop_gradient(_potentials(_plain(chain)))
    (z,) = _call(name, (potentials[2].shape[:1],), potentials)
    return z.astype(int)


def filter(chain: HMMChain) -> HMMFiltered:
    """log p(z_t | nodes to t) and the increments of log Z."""
    return _filter(*_potentials(_plain(chain)))


def smooth(chain: HMMChain) -> HMMSmoothed:
    """Marginals, expected pair counts, increments of log Z and of the KL."""
    if not hmm.steady(chain):
        return varying.summed(smooth_pairs(chain))
    return _smooth(*_potentials(hmm.one_matrix(chain)))


def smooth_pairs(chain: HMMChain) -> HMMPairs:
    """Marginals of states and of pairs, increments of log Z and of the KL."""
    hmm.steady(chain)
    return _smooth(*_potentials(hmm.stacked(chain)))


def log_normalizer(chain: HMMChain) -> Float[Array, ""]:
    """log Z, the compensated sum of the filter's increments."""
    return compensated_sum(filter(chain).log_z)


def sample(chain: HMMChain, *, key) -> Int[Array, "T"]:
    """A draw of z_1..z_T from q, by Gumbel noise on the filtered states; padding repeats the last real state."""
    log_states = filter(chain).log_states
    noisy = log_states + jax.random.gumbel(key, log_states.shape, log_states.dtype)
    return _path("backtrack", chain._replace(node=noisy))


def viterbi(chain: HMMChain) -> Int[Array, "T"]:
    """The most probable path; padding repeats the last real state."""
    return _path("viterbi", chain)
