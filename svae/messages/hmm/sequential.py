"""The hidden Markov chain, one step after another: normalised messages in log space, where products do not do."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from svae._batched_cond import everywhere
from svae.messages.algebra.compensated import compensated_sum, two_sum
from svae.messages.algebra.recurrence import vectors
from svae.messages.hmm import chain as hmm
from svae.messages.hmm import products, varying
from svae.messages.hmm.chain import HMMChain, HMMFiltered, HMMPairs, HMMSmoothed

# A step's K x K table is cheaper to form again in the backward pass than to store for every t.
_recompute = functools.partial(jax.checkpoint, prevent_cse=False)


def _forward(chain: HMMChain) -> HMMFiltered:
    @_recompute
    def step(log_prior, inputs):
        node, real = inputs
        increment = hmm.logsumexp(log_prior + node, -1)
        log_states = log_prior + node - hmm.finite(increment)
        log_next = hmm.propagate(log_states, chain.log_trans)
        return log_states, jnp.where(real, increment, 0), log_next

    def masked(carry, inputs):
        log_states, log_prior = carry
        new, increment, log_next = step(log_prior, inputs)
        real = inputs[1]
        log_states, log_prior = jnp.where(real, new, log_states), jnp.where(real, log_next, log_prior)
        return (log_states, log_prior), HMMFiltered(log_states, increment)

    start = chain.log_init - hmm.finite(hmm.logsumexp(chain.log_init, -1))
    return lax.scan(masked, (start, chain.log_init), (chain.node, chain.mask))[1]


def _backward(chain: HMMChain, log_states):
    """Marginals and summed pair counts: states_t = kernel_t states_t+1."""

    @_recompute
    def step(carry, inputs):
        states, total, error = carry
        log_states, real = inputs
        pairs = hmm.backward_kernel(log_states, chain.log_trans) * states[None]
        total, rounding = two_sum(total, jnp.where(real, pairs, 0))
        states = jnp.where(real, jnp.sum(pairs, -1), states)
        return (states, total, error + lax.stop_gradient(rounding)), states

    last, zeros = jnp.exp(log_states[-1]), jnp.zeros_like(chain.log_trans)
    (_, total, error), rest = lax.scan(step, (last, zeros, zeros), (log_states[:-1], chain.mask[1:]), reverse=True)
    return jnp.concatenate([rest, last[None]]), total + error


def _scores(best, chain: HMMChain) -> Float[Array, "T K"]:
    """The filter's scores, or those of the best path where `best` is a maximum; padding repeats the last real ones."""

    steady = hmm.steady(chain)

    def step(scores, inputs):
        log_trans, node, real = inputs
        new = best(scores[:, None] + (chain.log_trans[0] if steady else log_trans), 0) + node
        scores = jnp.where(real, new - hmm.finite(jnp.max(new)), scores)
        return scores, scores

    first = chain.log_init + chain.node[0]
    rest = lax.scan(step, first, (None if steady else chain.log_trans, chain.node[1:], chain.mask[1:]))[1]
    return jnp.concatenate([first[None], rest])


_log_states = varying.filtered(functools.partial(_scores, hmm.logsumexp), vectors)


def filter(chain: HMMChain) -> HMMFiltered:
    """log p(z_t | nodes to t) and the increments of log Z."""
    if not hmm.steady(chain):
        return varying.filter(chain, _log_states)
    centred = hmm.centre(hmm.one_matrix(chain))
    log_states, increments = _forward(centred.chain)
    return HMMFiltered(log_states, increments + centred.maximum)


def smooth(chain: HMMChain) -> HMMSmoothed:
    """Marginals, expected pair counts, increments of log Z and of the KL."""
    if not hmm.steady(chain):
        return varying.summed(smooth_pairs(chain))
    centred = hmm.centre(hmm.one_matrix(chain))
    q, trusted = products.smooth(centred)
    trusted = everywhere(lax.stop_gradient(trusted))
    return lax.cond(trusted, lambda q, _: q, lambda _, centred: _smooth_in_logs(centred), q, centred)


@_recompute
def _smooth_in_logs(centred: hmm.Centred) -> HMMSmoothed:
    log_states, increments = _forward(centred.chain)
    states, transitions = _backward(centred.chain, log_states)
    return HMMSmoothed(states, transitions, increments + centred.maximum, hmm.kl(centred, states, increments))


def smooth_pairs(chain: HMMChain) -> HMMPairs:
    """Marginals of states and of pairs, increments of log Z and of the KL."""
    return varying.smooth_pairs(chain, _log_states, vectors)


def log_normalizer(chain: HMMChain) -> Float[Array, ""]:
    """log Z, the compensated sum of the filter's increments."""
    return compensated_sum(filter(chain).log_z)


def _backtrack(last, choices) -> Int[Array, "T"]:
    """z_T = last, z_t = choices[t, z_t+1]."""

    def step(z, choice):
        z = choice[z]
        return z, z

    return jnp.append(lax.scan(step, last, choices, reverse=True)[1], last)


def sample(chain: HMMChain, *, key) -> Int[Array, "T"]:
    """A draw of z_1..z_T from q, by Gumbel noise on the filtered states; padding repeats the last real state."""
    log_states = filter(chain).log_states
    noisy = log_states + jax.random.gumbel(key, log_states.shape, log_states.dtype)
    return _backtrack(jnp.argmax(noisy[-1]), hmm.choices(noisy[:-1], chain))


def viterbi(chain: HMMChain) -> Int[Array, "T"]:
    """The most probable path; padding repeats the last real state."""
    chain = hmm.centre(hmm.stacked(chain)).chain
    scores = _scores(jnp.max, chain)
    return _backtrack(jnp.argmax(scores[-1]), hmm.choices(scores[:-1], chain))
