"""The stickiness of a chain of states follows the target duration while the model is fitted.

The warm start solves for it on warm latents. The model is less sure of x than that, so before the first step its own
bouts are brought near the target: too few switches, and states die at once. Then the networks move, and with them how
long bouts last. So every few steps the cost of a switch moves towards the target by a bounded number of nats: a
factor on the sticky counts of the transition prior. They are arrays of the model, so they are part of a fit's state.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from svae import expfam
from svae._model import SVAE
from svae._prepare import Prepared
from svae._sharding import agreed
from svae.data import batch

GAIN = 10.0  # nats of switch cost for an e-fold of duration
MOST = 3.0  # nats at once
FRAMES = 1500  # that are looked at
CLOSE = 0.15  # log(target / lasted) at which a warm start has settled
ROUNDS = 12  # of which at most, before the first step
EVERY = 5  # steps: within twenty, states can die or part by phase
LEAST, LARGEST = 1e-3, 1e25  # sticky counts


def follows(config) -> bool:
    """Whether a model has a duration to follow."""
    return config.target_duration is not None and config.model in ("hmm", "slds") and (config.states or 2) > 1


def settled(models: SVAE, data: Prepared) -> SVAE:
    """Warm models whose bouts last about as long as the target, before the first step."""
    for _ in range(ROUNDS if follows(models.config) else 0):
        away = _log_ratio(models, data)
        if np.all(np.abs(away) < CLOSE):
            break
        models = _moved(models, away)
    return models


def due(config, done: int) -> bool:
    """Whether the stickiness moves after so many steps, of which more follow."""
    return follows(config) and done % EVERY == 0 and done < config.steps


def adapted(models: SVAE, data: Prepared) -> SVAE:
    """All restarts (a leading axis), each with the stickiness that brings its bouts nearer to the target."""
    return _moved(models, _log_ratio(models, data))


def _log_ratio(models, data):
    """log(target / lasted) by restart, the first process's word."""
    return agreed(np.log(models.config.target_duration / bout_frames(models, data)))


def _moved(models, away):
    return with_factor(models, jnp.asarray(np.exp(np.clip(GAIN * away, -MOST, MOST)), jnp.result_type(float)))


def bout_frames(models: SVAE, data: Prepared) -> np.ndarray:
    """Mean frames of a bout on the most probable paths of windows spread over the training data, by restart (R,)."""
    table, config = data.table, models.config
    core = int(np.max(table.core_last - table.core_first))
    number = min(len(table.first), max(1, FRAMES // core))
    rows = np.unique(np.linspace(0, len(table.first) - 1, number).astype(int))
    size, switches, pairs = min(config.batch_size, len(rows)), 0.0, 0
    for first in range(0, len(rows), size):
        here = rows[first : first + size]
        piece = batch(data.train, table, np.resize(here, size))  # one shape, one program
        counted = piece.counted & (np.arange(size) < len(here))[:, None]
        both = counted[:, 1:] & counted[:, :-1]
        switches = switches + np.asarray(_switches(models, piece.y, piece.mask, both))
        pairs += int(both.sum())
    ends = len(data.train.sequences) / data.train.frames  # a bout ends with its recording too
    return 1 / (np.maximum(switches, 0.5) / max(pairs, 1) + ends)


@eqx.filter_jit
def _switches(models, y, mask, both):
    arrays, static = eqx.partition(models, eqx.is_array)

    def one(arrays):
        model = eqx.combine(arrays, static)
        moments = expfam.moments(model.q)
        path = jax.vmap(lambda y, mask: model.pgm.infer(moments, model.recognize(y, mask), mask).viterbi())(y, mask)
        return jnp.sum((path[:, 1:] != path[:, :-1]) & both)

    return jax.vmap(one)(arrays)


def with_factor(models: SVAE, factor: Float[Array, " R"]) -> SVAE:
    """The sticky counts of each restart times a factor, in the prior and, by as much, in q.

    Never by a difference of counts: of 1e20 float32 keeps 7 digits, and a state would be left without any.
    """
    prior, q = models.pgm.prior.transitions.counts, models.q.transitions.counts  # (R, K, K)
    other, same = prior[:, 0, -1], jnp.diagonal(prior, axis1=1, axis2=2)
    after = other + jnp.clip((prior[:, 0, 0] - other) * factor, LEAST, LARGEST)
    seen = jnp.maximum(jnp.diagonal(q, axis1=1, axis2=2) - same, 0)
    where = lambda m: (m.pgm.prior.transitions, m.q.transitions)  # noqa: E731
    return eqx.tree_at(
        where,
        models,
        (_with_diagonal(prior, jnp.broadcast_to(after[:, None], same.shape)), _with_diagonal(q, after[:, None] + seen)),
    )


def _with_diagonal(counts, diagonal):
    eye = jnp.eye(counts.shape[-1], dtype=bool)[None]
    return expfam.Dirichlet(jnp.where(eye, diagonal[:, None, :], counts))
