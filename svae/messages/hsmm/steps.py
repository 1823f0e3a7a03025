"""One frame of the hidden semi-Markov chain, in O(K (K + longest)), for sums over paths and for the likeliest path.

Entry (k, a) of the grid is log p(nodes so far, a bout of k has begun a frames ago) less the increments of log Z, before
the length of that bout is weighed. A frame moves the grid by one column and adds its node; only sums over columns take
exponentials. The last column is the first bout, weighed by log_start.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from svae.messages.hmm import chain as hmm
from svae.messages.hsmm import chain as hsmm
from svae.messages.hsmm.chain import HSMMChain


class Now(NamedTuple):
    """After a frame: the grid, log p(a bout ends here, nodes so far), and log p(state | nodes so far)."""

    grid: Float[Array, "K longest+1"]
    end: Float[Array, "K"]
    states: Float[Array, "K"]


class Frames(NamedTuple):
    """What each frame brings: its node, whether it is real, what the first bout weighs if it ends there or lasts on,
    the frames that it has had, and the transitions into the frame where they change in time.
    """

    node: Float[Array, "T K"]
    mask: Bool[Array, "T"]
    ends: Float[Array, "T K"]
    lasts: Float[Array, "T K"]
    had: Int[Array, "T"]
    log_trans: Float[Array, "T K K"] | None


def frames(chain: HSMMChain) -> Frames:
    had, longest = jnp.cumsum(chain.mask), chain.log_start.shape[1]
    column = jnp.clip(had - 1, 0, longest - 1)

    def look_up(table):
        return jnp.where(had[:, None] <= longest, table.T[column], -jnp.inf)

    ends, lasts = look_up(chain.log_start), look_up(hsmm.log_survivors(chain.log_start))
    into = None if chain.log_trans.ndim == 2 else jnp.pad(chain.log_trans, ((1, 0), (0, 0), (0, 0)))
    return Frames(chain.node, chain.mask, ends, lasts, had, into)


def start(chain: HSMMChain) -> Now:
    """Before the first frame."""
    none = jnp.full_like(chain.log_start, -jnp.inf)
    grid = jnp.concatenate([none, jnp.zeros_like(none[:, :1])], 1)
    return Now(grid, none[:, 0], hmm.logsumexp(chain.log_start, 1))


def entering(chain: HSMMChain, now: Now, frame: Frames) -> Float[Array, "K K"]:
    """Scores of a bout of i that ended before a bout of j begins at the frame."""
    return now.end[:, None] + (chain.log_trans if frame.log_trans is None else frame.log_trans)


def weighed(grid, table: Float[Array, "K longest"], first: Float[Array, "K"]):
    """The grid with each bout weighed by the frames that it has had, the first by weights of its own."""
    return grid + jnp.concatenate([table, first[:, None]], 1)


def advance(best, chain: HSMMChain, survivors, now: Now, frame: Frames) -> tuple[Now, Float[Array, ""]]:
    """The next frame and its increment of log Z; `best` sums over paths, or takes the likeliest."""
    begun = best(entering(chain, now, frame), 0)
    grid = jnp.concatenate([begun[:, None], now.grid[:, :-2], now.grid[:, -1:]], 1)
    states = best(weighed(grid, survivors, frame.lasts), 1) + frame.node
    increment = hmm.logsumexp(states, 0)
    grid = grid + (frame.node - hmm.finite(increment))[:, None]
    end = best(weighed(grid, chain.log_durations, frame.ends), 1)
    new = Now(grid, end, states - hmm.finite(increment))
    return jax.tree.map(lambda a, b: jnp.where(frame.mask, a, b), new, now), jnp.where(frame.mask, increment, 0)
