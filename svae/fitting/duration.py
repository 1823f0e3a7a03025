"""The cost of a switch before the first step: bouts near the target duration, and no state lost to it.

The search for states solves for the cost on latents that are known. The model is less sure of x than that, switches
less, and states without frames die at once. So the cost moves, by a factor on the sticky counts of the transition
prior, until bouts of the most probable paths last about as long as they should. It is a preference: a move after which
fewer states share the frames is taken back, because a longer mean bout is easily had by one state that takes all.

While the model is fitted the counts stay. Following the target then, step by step, overshoots: networks and states
answer late, and what a state has lost does not come back.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from svae import expfam
from svae._compiling import briefly
from svae.data import batch
from svae.devices import agreed
from svae.fitting.prepare import Prepared
from svae.model import SVAE

GAIN = 10.0  # nats of switch cost for an e-fold of duration
MOST = 3.0  # nats at once
FRAMES = 1500  # that are looked at
CLOSE = 0.15  # log(target / lasted) at which a model has settled
ROUNDS = 12
KEPT = 0.9  # share of the states, by the exponential of their entropy, that a move must leave
LEAST, LARGEST = 1e-3, 1e25  # sticky counts


class Paths(NamedTuple):
    """What the most probable paths of windows of the training data show, by restart (R,)."""

    bout_frames: np.ndarray
    shared: np.ndarray  # states that share the frames: the exponential of the entropy of their shares


def settled(models: SVAE, data: Prepared, target: float | None) -> SVAE:
    """Warm models (a leading axis for restarts) whose bouts last about as long as the target, where states allow it.

    The target is the duration that the search for states followed: None where there is none, or none that suits them.
    """
    if target is None or models.pgm.sticky is None or models.pgm.states == 1:
        return models
    now = paths(models, data)
    least = KEPT * now.shared
    for _ in range(ROUNDS):
        away = agreed(np.log(target / now.bout_frames))
        moves = np.where(np.abs(away) < CLOSE, 0.0, np.clip(GAIN * away, -MOST, MOST))
        if not moves.any():
            break
        moved = with_factor(models, np.exp(moves))
        then = paths(moved, data)
        taken = agreed((moves != 0) & (then.shared >= least))
        if not taken.any():
            break
        models = _chosen(taken, moved, models)
        now = Paths(*(np.where(taken, a, b) for a, b in zip(then, now, strict=True)))
    return models


def _chosen(taken: np.ndarray, new: SVAE, old: SVAE) -> SVAE:
    """The new model of the restarts that are taken, else the old one."""
    arrays, static = eqx.partition(new, eqx.is_array)
    before = eqx.filter(old, eqx.is_array)
    rows = lambda a: taken.reshape(-1, *(1,) * (a.ndim - 1))  # noqa: E731
    pick = lambda a, b: jnp.asarray(np.where(rows(a), a, b))  # noqa: E731  in numpy, as all between two programs
    return eqx.combine(jax.tree.map(pick, arrays, before), static)


def paths(models: SVAE, data: Prepared) -> Paths:
    """The most probable paths of windows spread over the training data."""
    table, config = data.table, models.config
    core = int(np.max(table.core_last - table.core_first))
    number = min(len(table.first), max(1, FRAMES // core))
    rows = np.unique(np.linspace(0, len(table.first) - 1, number).astype(int))
    size, switches, usage, pairs = min(config.batch_size, len(rows)), 0.0, 0.0, 0
    for first in range(0, len(rows), size):
        here = rows[first : first + size]
        piece = batch(data.train, table, np.resize(here, size))  # one shape, one program
        counted = piece.counted & (np.arange(size) < len(here))[:, None]
        both = counted[:, 1:] & counted[:, :-1]
        found = _counts(models, piece.y, piece.mask, counted, both, piece.beside)
        switches, usage = switches + np.asarray(found[0]), usage + np.asarray(found[1])
        pairs += int(both.sum())
    ends = len(data.train.sequences) / data.train.frames  # a bout ends with its recording too
    share = usage / usage.sum(-1, keepdims=True)
    entropy = -np.sum(np.where(share > 0, share * np.log(np.maximum(share, 1e-30)), 0), -1)
    return Paths(1 / (np.maximum(switches, 0.5) / max(pairs, 1) + ends), np.exp(entropy))


@briefly
def _counts(models, y, mask, counted, both, beside):
    """Switches (R,) and frames of every state (R, K) on the most probable paths."""
    arrays, static = eqx.partition(models, eqx.is_array)

    def one(arrays):
        model = eqx.combine(arrays, static)
        moments = expfam.moments(model.q)
        infer = jax.vmap(lambda y, mask, beside: model.posterior(moments, y, mask, None, beside).viterbi())
        path = infer(y, mask, beside)
        frames = jax.nn.one_hot(path, model.pgm.states) * counted[..., None]
        return jnp.sum((path[:, 1:] != path[:, :-1]) & both), jnp.sum(frames, (0, 1))

    return jax.vmap(one)(arrays)


def with_factor(models: SVAE, factor: Float[Array, " R"] | Float[np.ndarray, " R"]) -> SVAE:
    """The sticky counts of each restart times a factor, in the prior and, by as much, in q.

    Never by a difference of counts: of 1e20 float32 keeps 7 digits, and a state would be left without any.
    """
    rows_of = lambda tree: getattr(tree, models.pgm.sticky).transitions  # noqa: E731
    prior, q = (np.asarray(rows_of(tree).counts) for tree in (models.pgm.prior, models.q))  # (R, K, K)
    other, same = prior[:, 0, -1], np.diagonal(prior, axis1=1, axis2=2)
    after = other + np.clip((prior[:, 0, 0] - other) * np.asarray(factor, prior.dtype), LEAST, LARGEST)
    seen = np.maximum(np.diagonal(q, axis1=1, axis2=2) - same, 0)
    where = lambda m: (rows_of(m.pgm.prior), rows_of(m.q))  # noqa: E731
    return eqx.tree_at(
        where,
        models,
        (_with_diagonal(prior, np.broadcast_to(after[:, None], same.shape)), _with_diagonal(q, after[:, None] + seen)),
    )


def _with_diagonal(counts, diagonal):
    eye = np.eye(counts.shape[-1], dtype=bool)[None]
    return expfam.Dirichlet(jnp.asarray(np.where(eye, diagonal[:, None, :], counts)))
