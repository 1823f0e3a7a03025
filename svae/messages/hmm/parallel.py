"""The hidden Markov chain in logarithmic depth: associative scans of K x K log matrices and of backward kernels."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from svae.messages.algebra.compensated import compensated_sum
from svae.messages.algebra.prefix import prefixes
from svae.messages.algebra.recurrence import parallel_vectors
from svae.messages.hmm import chain as hmm
from svae.messages.hmm import varying
from svae.messages.hmm.chain import HMMChain, HMMFiltered, HMMPairs, HMMSmoothed


def elements(chain: HMMChain) -> Float[Array, "T K K"]:
    """log_trans + node for every step, the identity at padding; the first forgets where it came from."""
    K = len(chain.log_init)
    first = jnp.broadcast_to(chain.log_init + chain.node[0], (1, K, K))
    return jnp.concatenate([first, steps(chain._replace(node=chain.node[1:], mask=chain.mask[1:]))])


def steps(chain: HMMChain) -> Float[Array, "T K K"]:
    """log_trans + node for every step, the identity at padding."""
    identity = jnp.where(jnp.eye(len(chain.log_init), dtype=bool), 0, -jnp.inf).astype(chain.node.dtype)
    return jnp.where(chain.mask[:, None, None], chain.log_trans + chain.node[:, None, :], identity[None])


def scaled(product, first, then):
    """The product of log matrices, scaled to maximum 0."""
    M = product(first[..., :, :, None] + then[..., None, :, :], -2)
    return M - hmm.finite(jnp.max(M, (-1, -2), keepdims=True))


def _prefixes(product, chain: HMMChain) -> Float[Array, "T K"]:
    """The first row of every prefix product (its scale is not needed)."""
    return prefixes(functools.partial(scaled, product), elements(chain))[:, 0]


log_states = varying.filtered(functools.partial(_prefixes, hmm.logsumexp), parallel_vectors)


def filter(chain: HMMChain) -> HMMFiltered:
    """log p(z_t | nodes to t) and the increments of log Z."""
    return varying.filter(chain, log_states)


def smooth(chain: HMMChain) -> HMMSmoothed:
    """Marginals, expected pair counts, increments of log Z and of the KL."""
    return varying.summed(smooth_pairs(chain))


def smooth_pairs(chain: HMMChain) -> HMMPairs:
    """Marginals of states and of pairs, increments of log Z and of the KL."""
    return varying.smooth_pairs(chain, log_states, parallel_vectors)


def log_normalizer(chain: HMMChain) -> Float[Array, ""]:
    """log Z, the compensated sum of the filter's increments."""
    return compensated_sum(filter(chain).log_z)


def _backtrack(last, choices) -> Int[Array, "T"]:
    """z_T = last, z_t = choices[t, z_t+1], by composing the maps."""

    def compose(later, earlier):
        return jnp.take_along_axis(earlier, later, -1)

    start = jnp.broadcast_to(last, (1, choices.shape[-1]))
    return prefixes(compose, jnp.concatenate([choices, start.astype(choices.dtype)])[::-1])[::-1, 0]


def sample(chain: HMMChain, *, key) -> Int[Array, "T"]:
    """A draw of z_1..z_T from q, by Gumbel noise on the filtered states; padding repeats the last real state."""
    return sample_filtered(chain, filter(chain).log_states, key=key)


def sample_filtered(chain: HMMChain, log_states, *, key) -> Int[Array, "T"]:
    """The draw, where the filtered states are known."""
    noisy = log_states + jax.random.gumbel(key, log_states.shape, log_states.dtype)
    return _backtrack(jnp.argmax(noisy[-1]), hmm.choices(noisy[:-1], chain))


def viterbi(chain: HMMChain) -> Int[Array, "T"]:
    """The most probable path; padding repeats the last real state."""
    chain = hmm.centre(hmm.stacked(chain)).chain
    scores = _prefixes(jnp.max, chain)
    return _backtrack(jnp.argmax(scores[-1]), hmm.choices(scores[:-1], chain))
