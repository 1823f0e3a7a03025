"""Paths of the hidden semi-Markov chain: draws, and the most probable one."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int

from svae.messages.hmm.chain import logsumexp
from svae.messages.hsmm import chain as hsmm_chain
from svae.messages.hsmm import steps
from svae.messages.hsmm.chain import HSMMChain, HSMMPath


class _Choices(NamedTuple):
    """Choices at every frame and state: frames of its bout if it ended there, the state before if it began there."""

    had: Int[Array, "T K"]
    before: Int[Array, "T K"]


class _At(NamedTuple):
    """A frame of the path."""

    state: Int[Array, ""]
    spent: Int[Array, ""]
    remaining: Int[Array, ""]


def sample(chain: HSMMChain, *, key) -> HSMMPath:
    """A draw of bouts from q, by Gumbel noise on the filter; padding repeats the last real frame."""

    def pick(scores, axis, key):
        return jnp.argmax(scores + jax.random.gumbel(key, scores.shape, scores.dtype), axis)

    return _path(logsumexp, pick, chain, key)


def viterbi(chain: HSMMChain) -> HSMMPath:
    """The most probable states and bouts, summed over how long the last one lasts; of that, the likeliest."""
    return _path(jnp.max, lambda scores, axis, _: jnp.argmax(scores, axis), chain, jax.random.key(0))


def _path(best, pick, chain: HSMMChain, key) -> HSMMPath:
    chain = hsmm_chain.centre(chain).chain
    survivors, frames = hsmm_chain.log_survivors(chain.log_durations), steps.frames(chain)
    key_last, key_left, key_rest = jax.random.split(key, 3)

    def step(now, inputs):
        frame, key = inputs
        key_before, key_had = jax.random.split(key)
        before = pick(steps.entering(chain, now, frame), 0, key_before)
        now, _ = steps.advance(best, chain, survivors, now, frame)
        column = pick(steps.weighed(now.grid, chain.log_durations, frame.ends), 1, key_had)
        return now, _Choices(_frames_had(chain, column, frame.had), before)

    keys = jax.random.split(key_rest, len(chain.mask))
    now, choices = lax.scan(step, steps.start(chain), (frames, keys))
    scores = steps.weighed(now.grid, survivors, frames.lasts[-1])
    flat = pick(scores.reshape(-1), 0, key_last)
    state, column = flat // scores.shape[1], flat % scores.shape[1]
    spent = _frames_had(chain, column, frames.had[-1])
    left = _may_remain(chain, state, column, spent)
    return _backtrack(_At(state, spent, pick(left, 0, key_left)), choices, chain.mask)


def _frames_had(chain: HSMMChain, column, had):
    """The frames of a bout in a column of the grid; the last column is the first bout."""
    return jnp.where(column == chain.log_start.shape[1], had, column + 1)


def _may_remain(chain: HSMMChain, state, column, spent):
    """Scores of the frames that a bout still has, from 0 on."""
    longest = chain.log_start.shape[1]
    table = jnp.where(column == longest, chain.log_start[state], chain.log_durations[state])
    length = spent - 1 + jnp.arange(longest)
    return jnp.where(length < longest, table[jnp.clip(length, 0, longest - 1)], -jnp.inf)


def _backtrack(last: _At, choices: _Choices, mask) -> HSMMPath:
    def step(at, inputs):
        had, before, real = inputs
        state = before[at.state]
        inside = _At(at.state, at.spent - 1, at.remaining + 1)
        ended = _At(state, had[state], jnp.zeros_like(at.remaining))
        earlier = jax.tree.map(lambda a, b: jnp.where(at.spent > 1, a, b), inside, ended)
        earlier = jax.tree.map(lambda a, b: jnp.where(real, a, b), earlier, at)
        return earlier, earlier

    rest = lax.scan(step, last, (choices.had[:-1], choices.before[1:], mask[1:]), reverse=True)[1]
    return HSMMPath(*(jnp.append(xs, x) for xs, x in zip(rest, last, strict=True)))
