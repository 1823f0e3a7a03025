"""The hidden Markov chain in logarithmic depth: associative scans of K x K log matrices and of backward kernels."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from svae._linalg import mT
from svae.messages import hmm_chain as hmm
from svae.messages.compensated import compensated_sum
from svae.messages.hmm_chain import HMMChain, HMMFiltered, HMMSmoothed
from svae.messages.prefix import prefixes
from svae.messages.recurrence import parallel_vectors


def _elements(chain: HMMChain) -> Float[Array, "T K K"]:
    """log_trans + node for every step, the identity at padding; the first forgets where it came from."""
    first = jnp.broadcast_to(chain.log_init + chain.node[0], (1, *chain.log_trans.shape))
    return jnp.concatenate([first, steps(chain._replace(node=chain.node[1:], mask=chain.mask[1:]))])


def steps(chain: HMMChain) -> Float[Array, "T K K"]:
    """log_trans + node for every step, the identity at padding."""
    identity = jnp.where(jnp.eye(len(chain.log_init), dtype=bool), 0, -jnp.inf).astype(chain.node.dtype)
    return jnp.where(chain.mask[:, None, None], chain.log_trans[None] + chain.node[:, None, :], identity[None])


def scaled(product, first, then):
    """The product of log matrices, scaled to maximum 0."""
    M = product(first[..., :, :, None] + then[..., None, :, :], -2)
    return M - hmm.finite(jnp.max(M, (-1, -2), keepdims=True))


def _prefixes(product, chain: HMMChain) -> Float[Array, "T K"]:
    """The first row of every prefix product (its scale is not needed)."""
    return prefixes(functools.partial(scaled, product), _elements(chain))[:, 0]


@jax.custom_jvp
def _log_states(chain: HMMChain) -> Float[Array, "T K"]:
    """log p(z_t | nodes to t), normalised."""
    scores = _prefixes(hmm.logsumexp, chain)
    return scores - hmm.finite(hmm.logsumexp(scores, -1))[:, None]


@_log_states.defjvp
def _(primals, tangents):
    """With B_t the backward kernel: ds_t = B_t-1' (ds_t-1 - <states, ds_t-1>) + <B_t-1, dlog_trans> + dnode_t."""
    (chain,), (d,) = primals, tangents
    log_states = _log_states(chain)
    states, B, real = jnp.exp(log_states), _kernels(chain, log_states), chain.mask[1:, None]
    driven = jnp.where(real, jnp.sum(B * d.log_trans[None], -2) + d.node[1:], 0)
    first = d.log_init + jnp.where(chain.mask[0], d.node[0], 0)
    ds = parallel_vectors(mT(B) - states[:-1, None, :], jnp.concatenate([first[None], driven]))
    return log_states, ds - jnp.sum(states * ds, -1, keepdims=True)


def _kernels(chain: HMMChain, log_states) -> Float[Array, "S K K"]:
    """p(z_t | z_t+1) for every t, the identity where t+1 is padding."""
    identity = jnp.eye(len(chain.log_init), dtype=log_states.dtype)
    kernels = jax.vmap(hmm.backward_kernel, (0, None))(log_states[:-1], chain.log_trans)
    return jnp.where(chain.mask[1:, None, None], kernels, identity[None])


def _increments(chain: HMMChain, log_states) -> Float[Array, "T"]:
    log_next = jax.vmap(hmm.propagate, (0, None))(log_states[:-1], chain.log_trans)
    log_prior = jnp.concatenate([chain.log_init[None], log_next])
    return jnp.where(chain.mask, hmm.logsumexp(log_prior + chain.node, -1), 0)


def filter(chain: HMMChain) -> HMMFiltered:
    """log p(z_t | nodes to t) and the increments of log Z."""
    centred = hmm.centre(chain)
    log_states = _log_states(centred.chain)
    return HMMFiltered(log_states, _increments(centred.chain, log_states) + centred.maximum)


def smooth(chain: HMMChain) -> HMMSmoothed:
    """Marginals, expected pair counts, increments of log Z and of the KL."""
    centred = hmm.centre(chain)
    log_states = _log_states(centred.chain)
    increments = _increments(centred.chain, log_states)
    kernels = _kernels(centred.chain, log_states)
    last = jnp.zeros_like(log_states).at[0].set(jnp.exp(log_states[-1]))
    states = jnp.flip(parallel_vectors(jnp.flip(kernels, 0), last), 0)
    pairs = jnp.where(chain.mask[1:, None, None], kernels * states[1:, None, :], 0)
    transitions = compensated_sum(pairs)
    return HMMSmoothed(states, transitions, increments + centred.maximum, hmm.kl(centred, states, increments))


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
    return _backtrack(jnp.argmax(noisy[-1]), hmm.choices(noisy[:-1], chain.log_trans, chain.mask))


def viterbi(chain: HMMChain) -> Int[Array, "T"]:
    """The most probable path; padding repeats the last real state."""
    chain = hmm.centre(chain).chain
    scores = _prefixes(jnp.max, chain)
    return _backtrack(jnp.argmax(scores[-1]), hmm.choices(scores[:-1], chain.log_trans, chain.mask))
