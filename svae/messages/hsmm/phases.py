"""Chains whose bouts last r phases of geometric length, that is negative binomially, in O(T K (K + R)) and untruncated.

The recursion goes over states and phases left. Pure JAX on every backend.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from svae.messages.algebra import rematerialized
from svae.messages.algebra.compensated import compensated_sum
from svae.messages.algebra.statistics import statistics
from svae.messages.hmm import chain as hmm
from svae.messages.hmm.chain import HMMFiltered
from svae.messages.hsmm import chain as hsmm_chain


class PhasedChain(NamedTuple):
    """A bout of z has r phases with weight exp(log_phases[z, r]); every frame of a phase but its last stays in it.

    P(length d | r) = C(d-1, r-1) stay^(d-r) move^r. Column r - 1 of a table stands for r phases; a fixed r is a row of
    -inf with one 0. log_start says the same of the phases left to the first bout: `begins(log_init, log_phases)` where
    it begins, `residual_life(log_init, log_phases)` within a recording, `ahead` where a chain goes on. A phase that the
    last frame cuts has only its frames so far. log_trans, node and mask are those of an HSMMChain.
    """

    log_start: Float[Array, "K R"]
    log_trans: Float[Array, "K K"] | Float[Array, "S K K"]
    log_phases: Float[Array, "K R"]
    log_stay: Float[Array, "K"]
    log_move: Float[Array, "K"]
    node: Float[Array, "T K"]
    mask: Bool[Array, "T"]


class PhasedSmoothed(NamedTuple):
    """Expected statistics, the gradient of log Z: marginals, first bouts by state and phases left, switches, other
    bouts by state and phases, frames that stay in a phase and that end one; increments of log Z and of the KL.
    """

    states: Float[Array, "T K"]
    start: Float[Array, "K R"]
    transitions: Float[Array, "..."]
    phases: Float[Array, "K R"]
    stays: Float[Array, "K"]
    moves: Float[Array, "K"]
    log_z: Float[Array, "T"]
    kl: Float[Array, "T"]


class PhasedPath(NamedTuple):
    """The state of every frame, and the phases left to its bout, the frame's own among them."""

    states: Int[Array, "T"]
    left: Int[Array, "T"]


class _Frames(NamedTuple):
    node: Float[Array, "T K"]
    mask: Bool[Array, "T"]
    first: Bool[Array, "T"]
    log_trans: Float[Array, "T K K"] | None  # into the frame, where they change in time


class _Choices(NamedTuple):
    """How each state and phase came about: it stayed, the phase before moved on, or a bout began after `before`."""

    way: Int[Array, "T K R"]
    before: Int[Array, "T K"]


def _frames(chain: PhasedChain) -> _Frames:
    into = None if chain.log_trans.ndim == 2 else jnp.pad(chain.log_trans, ((1, 0), (0, 0), (0, 0)))
    return _Frames(chain.node, chain.mask, jnp.cumsum(chain.mask) == 1, into)


def _switches(chain: PhasedChain, now, log_trans) -> Float[Array, "K K"]:
    """Scores of a bout of i that has ended before one of j begins."""
    return (now[:, 0] + chain.log_move)[:, None] + log_trans


def _ways(best, chain: PhasedChain, now, log_trans) -> Float[Array, "3 K R"]:
    """Scores of the ways into each state and phase: it stays, moves on, or begins."""
    none = jnp.full_like(now[:, :1], -jnp.inf)
    moved = jnp.concatenate([now[:, 1:], none], 1) + chain.log_move[:, None]
    begun = best(_switches(chain, now, log_trans), 0)[:, None] + chain.log_phases
    return jnp.stack([now + chain.log_stay[:, None], moved, begun])


def _advance(best, chain: PhasedChain, now, frame: _Frames):
    """log p(state, phases left | nodes so far), and its increment of log Z; `best` sums or maximises over paths."""
    ways = _ways(best, chain, now, chain.log_trans if frame.log_trans is None else frame.log_trans)
    new = jnp.where(frame.first, chain.log_start, best(ways, 0)) + frame.node[:, None]
    increment = hmm.logsumexp(new.reshape(-1), 0)
    new = jnp.where(frame.mask, new - hmm.finite(increment), now)
    return new, jnp.where(frame.mask, increment, 0)


def _run(chain: PhasedChain):
    """Where the filter ends, and log p(z_t | nodes to t) with the increments of log Z."""

    def step(now, frame):
        now, increment = _advance(hmm.logsumexp, chain, now, frame)
        return now, HMMFiltered(hmm.logsumexp(now, 1), increment)

    return rematerialized.scan(step, jnp.full_like(chain.log_start, -jnp.inf), _frames(chain))


def _increments(potentials, mask):
    return _run(PhasedChain(*potentials, mask))[1].log_z


def filter(chain: PhasedChain) -> HMMFiltered:
    """log p(z_t | nodes to t) and the increments of log Z."""
    centred = hsmm_chain.centre(chain)
    found = _run(centred.chain)[1]
    return HMMFiltered(found.log_states, found.log_z + centred.maximum)


def smooth(chain: PhasedChain) -> PhasedSmoothed:
    """Expected statistics, increments of log Z and of the KL."""
    centred = hsmm_chain.centre(chain)
    found, increments = statistics(_increments, centred.chain[:-1], chain.mask)
    start, transitions, phases, stays, moves, states = found
    states, transitions = states[hsmm_chain.held(chain.mask)], transitions.reshape(chain.log_trans.shape)
    kl = hmm.kl(centred, states, increments)
    return PhasedSmoothed(states, start, transitions, phases, stays, moves, increments + centred.maximum, kl)


def log_normalizer(chain: PhasedChain) -> Float[Array, ""]:
    """log Z, the compensated sum of the filter's increments."""
    return compensated_sum(filter(chain).log_z)


def ahead(chain: PhasedChain, log_trans: Float[Array, "K K"]) -> Float[Array, "K R"]:
    """log_start of what follows: log p(state of the next frame, phases left | nodes); log_trans leads into it."""
    chain = hsmm_chain.centre(chain).chain
    return hmm.logsumexp(_ways(hmm.logsumexp, chain, _run(chain)[0], log_trans), 0)


def sample(chain: PhasedChain, *, key) -> PhasedPath:
    """A draw from q, by Gumbel noise on the filter; padding repeats the last real frame."""

    def pick(scores, axis, key):
        return jnp.argmax(scores + jax.random.gumbel(key, scores.shape, scores.dtype), axis)

    return _path(hmm.logsumexp, pick, chain, key)


def viterbi(chain: PhasedChain) -> PhasedPath:
    """The most probable states and phases; padding repeats the last real frame."""
    return _path(jnp.max, lambda scores, axis, _: jnp.argmax(scores, axis), chain, jax.random.key(0))


def _path(best, pick, chain: PhasedChain, key) -> PhasedPath:
    chain = hsmm_chain.centre(chain).chain
    key_last, key_rest = jax.random.split(key)

    def step(now, inputs):
        frame, key = inputs
        log_trans = chain.log_trans if frame.log_trans is None else frame.log_trans
        key_way, key_before = jax.random.split(key)
        way = pick(_ways(best, chain, now, log_trans), 0, key_way)
        before = pick(_switches(chain, now, log_trans), 0, key_before)
        return _advance(best, chain, now, frame)[0], _Choices(way, before)

    def back(at, inputs):
        choices, real = inputs
        way = choices.way[at.states, at.left - 1]
        state = jnp.where(way == 2, choices.before[at.states], at.states)
        left = jnp.where(way == 2, 1, jnp.where(way == 1, at.left + 1, at.left))
        earlier = PhasedPath(jnp.where(real, state, at.states), jnp.where(real, left, at.left))
        return earlier, earlier

    keys = jax.random.split(key_rest, len(chain.mask))
    now, choices = lax.scan(step, jnp.full_like(chain.log_start, -jnp.inf), (_frames(chain), keys))
    state, column = jnp.divmod(pick(now.reshape(-1), 0, key_last), now.shape[1])
    last = PhasedPath(state, column + 1)
    rest = lax.scan(back, last, (jax.tree.map(lambda x: x[1:], choices), chain.mask[1:]), reverse=True)[1]
    return PhasedPath(*(jnp.append(xs, x) for xs, x in zip(rest, last, strict=True)))
