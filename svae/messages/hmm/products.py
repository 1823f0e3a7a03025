"""The hidden Markov chain by products of probabilities: a batch under one transition matrix is one product a step.

What is smaller than the least number of its type is lost here. The result says whether that can matter; where it can,
messages in logarithms serve.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from svae._linalg import mm, mT, mv
from svae.messages.algebra.compensated import compensated_sum
from svae.messages.hmm import chain as hmm
from svae.messages.hmm.chain import Centred, HMMSmoothed

BLOCK = 1024  # steps whose pair counts are one product


class Scaled(NamedTuple):
    """exp of the parts of a centred chain, each with a maximum of 1."""

    init: Float[Array, "K"]
    trans: Float[Array, "K K"]
    node: Float[Array, "T K"]
    maxima: Float[Array, "2"]  # of log_init and log_trans


def _scaled(chain) -> Scaled:
    maxima = [hmm.finite(lax.stop_gradient(jnp.max(x))) for x in chain[:2]]
    init, trans = (jnp.exp(x - m) for x, m in zip(chain[:2], maxima, strict=True))
    return Scaled(init, trans, jnp.exp(chain.node), jnp.stack(maxima))


def _least(x):
    """Sums below it are not trusted: products of numbers lost could count in them."""
    return jnp.finfo(x.dtype).tiny ** 0.5


def _divisor(x):
    """x, or 1 where it is not trusted: even its square then has a finite inverse, and derivatives stay numbers."""
    return jnp.where(x >= _least(x), x, 1)


def _with_sums(trans):
    """trans and a column of ones: a product with it gives the sum of what it multiplies too."""
    return jnp.concatenate([trans, jnp.ones_like(trans[:, :1])], 1)


@jax.custom_jvp
def _forward(init, trans, node, mask):
    """Filtered states times the sums that would normalise them, and these sums; padding repeats a step."""
    on = mT(_with_sums(trans))

    def step(carry, inputs):
        prior, weights = carry
        node, real = inputs
        weights = jnp.where(real, prior * node, weights)
        after = mv(on, weights)
        prior = jnp.where(real, after[:-1] / _divisor(after[-1]), prior)
        return (prior, weights), (weights, after[-1])

    return lax.scan(step, (init, init), (node, mask))[1]


@_forward.defjvp
def _(primals, tangents):
    """Tangents obey the same recursion, driven by those of the chain, which are taken to all steps at once."""
    init, trans, node, mask = primals
    d_init, d_trans, d_node, _ = tangents
    weights, totals = _forward(*primals)
    inverse = 1 / _divisor(totals)
    filtered = weights * inverse[:, None]
    priors, driven = mm(filtered, trans), mm(filtered, d_trans)
    on = mT(_with_sums(trans))

    def step(carry, inputs):
        d_prior, d_weights = carry
        node, real, push, prior, driven, inverse = inputs
        d_weights = jnp.where(real, d_prior * node + push, d_weights)
        after = mv(on, d_weights)
        d_prior = jnp.where(real, (after[:-1] - prior * after[-1]) * inverse + driven, d_prior)
        return (d_prior, d_weights), d_weights

    push = jnp.concatenate([init[None], priors[:-1]]) * d_node
    d_weights = lax.scan(step, (d_init, d_init), (node, mask, push, priors, driven, inverse))[1]
    return (weights, totals), (d_weights, jnp.sum(d_weights, -1))


@jax.custom_jvp
def _backward(trans, node, mask):
    """What the future says of the states of each step, to a factor, and the factor: trans (node future)_t / scale_t."""
    back = jnp.concatenate([trans, jnp.sum(trans, 0)[None]])

    def step(future, inputs):
        node, real = inputs
        before = mv(back, node * future)
        return jnp.where(real, before[:-1] / _divisor(before[-1]), future), (future, before[-1])

    return lax.scan(step, jnp.ones_like(trans[0]), (node, mask), reverse=True)[1]


@_backward.defjvp
def _(primals, tangents):
    """The factor is a constant: what depends on the future does not depend on it."""
    trans, node, mask = primals
    d_trans, d_node, _ = tangents
    futures, scales = _backward(*primals)

    def step(d_future, inputs):
        node, real, push, driven, inverse = inputs
        d_before = mv(trans, node * d_future + push) + driven
        return jnp.where(real, d_before * inverse, d_future), d_future

    inputs = node, mask, futures * d_node, mm(node * futures, mT(d_trans)), 1 / _divisor(scales)
    d_futures = lax.scan(step, jnp.zeros_like(trans[0]), inputs, reverse=True)[1]
    return (futures, scales), (d_futures, jnp.zeros_like(scales))


def _pairs(before, after) -> Float[Array, "K K"]:
    """The sum of outer products of steps, plainly over blocks of them and compensated over blocks."""
    blocks = max(1, -(-len(before) // BLOCK))
    size = -(-len(before) // blocks)

    def cut(x):
        return jnp.pad(x, ((0, blocks * size - len(x)), (0, 0))).reshape(blocks, size, x.shape[1])

    return compensated_sum(mm(mT(cut(before)), cut(after)))


def smooth(centred: Centred) -> tuple[HMMSmoothed, Bool[Array, ""]]:
    """Smoothed statistics, and whether no sum is so small that something lost could count in it."""
    chain, mask = centred.chain, centred.chain.mask
    scaled = _scaled(chain)
    weights, totals = _forward(*scaled[:3], mask)
    filtered = weights / _divisor(totals)[:, None]
    futures, scales = _backward(scaled.trans, scaled.node, mask)
    sums = jnp.sum(filtered * futures, -1)
    states = filtered * futures / _divisor(sums)[:, None]
    seen = sums[:-1] * scales[1:]  # sum_ij filtered_i trans_ij (node future)_j
    before = jnp.where(mask[1:], 1 / _divisor(seen), 0)[:, None] * filtered[:-1]
    transitions = scaled.trans * _pairs(before, scaled.node[1:] * futures[1:])
    offsets = jnp.where(jnp.arange(len(mask)) == 0, *scaled.maxima)
    increments = jnp.where(mask, jnp.log(_divisor(totals)) + offsets, 0)
    q = HMMSmoothed(states, transitions, increments + centred.maximum, hmm.kl(centred, states, increments))
    least = _least(states)
    return q, jnp.all((jnp.minimum(totals, sums) >= least) | ~mask) & jnp.all((seen >= least) | ~mask[1:])
