"""One step of a fit: taken for all restarts in one program, guarded, and told to whoever watches."""

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from svae import _optimizer
from svae._model import SVAE
from svae._prepare import FitError, Prepared
from svae._sharding import everywhere, mesh, others_alive, over, own, replicated, spread
from svae.data import Batch, batch, epoch_order

IN_USE = 0.01  # a state is in use when it takes this share of the frames
SMALLEST_DAMPING = 1e-6  # about 20 failures in a row


class Parts(NamedTuple):
    """The bound = log_likelihood - local_kl - global_kl - weights_kl, in nats per frame."""

    log_likelihood: float
    local_kl: float
    global_kl: float
    weights_kl: float


class Step(NamedTuple):
    """One step of a fit; bounds are nats per frame in the units of the data."""

    step: int
    total: int
    phase: str  # "warm-up" or "fit"
    model: SVAE  # of the best restart so far; of the last step: the model that the fit returns
    bound: float  # estimated from this step's batch
    held_out: float  # of held-out recordings, without the global KL; NaN where it was not measured
    states_in_use: int
    frames_per_second: float
    note: str  # what a person should be told, else ""
    state: Any = None  # FitState: all that `fit(resume=...)` needs to go on from here; None in the warm-up
    parts: Parts | None = None  # of the bound
    restarts: tuple[float, ...] = ()  # the held-out bound of every restart, where it was measured
    labels: Any = None  # (T,) states of a held-out stretch by the best restart, where it was measured


class Taken(NamedTuple):
    """What a step gave."""

    model: SVAE
    state: Any
    bound: Any
    good: Array
    finite: dict[str, Array]  # which parts of the bound and leaves of the gradient, by name, were finite


def _take(model, state, piece, key, num_data, frames, estimator) -> Taken:
    bound, gradient = estimator(model, piece.y, piece.mask, num_data=num_data, key=key, counted=piece.counted)
    update = _optimizer.update(model, gradient, state, _optimizer.networks_optimizer(model.config), 1.0 / frames)
    return Taken(update.model, update.state, bound, update.good, _finite(gradient) | _finite({"bound": bound.bound}))


def _finite(tree: Any) -> dict[str, Array]:
    """Whether each leaf is finite, by its path: q.dynamics.uxT."""
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(tree, eqx.is_inexact_array))
    name = functools.partial(jax.tree_util.keystr, simple=True, separator=".")
    return {name(path): jnp.all(jnp.isfinite(leaf)) for path, leaf in leaves}


@eqx.filter_jit
def take_one(model, state, piece, key, num_data, frames, estimator: Callable) -> Taken:
    """Compiled once for a config and a shape, however many fits use it."""
    return everywhere(_take(model, state, piece, key, num_data, frames, estimator))


@eqx.filter_jit
def take_all(models, states, piece, keys, num_data, frames, estimator: Callable) -> Taken:
    """All restarts in one program: the leading axis of the models, their states and their keys."""
    arrays, static = eqx.partition(models, eqx.is_array)
    every = jax.vmap if len(keys) > 1 else _alone  # an axis of one in every product costs a fifth of a step

    def one(arrays, state, key):
        taken = _take(eqx.combine(arrays, static), state, piece, key, num_data, frames, estimator)
        return taken._replace(model=eqx.filter(taken.model, eqx.is_array))

    taken = everywhere(every(one)(arrays, states, keys))
    return taken._replace(model=eqx.combine(taken.model, static))


def _alone(function: Callable) -> Callable:
    """`vmap` over axes of one entry, without one."""
    add = lambda tree: jax.tree.map(lambda a: a[None], tree)  # noqa: E731
    return lambda *trees: add(function(*(pick(tree, 0) for tree in trees)))


def take(program: Callable, placed: tuple, piece: Batch, key, totals: tuple, estimator: Callable, mesh) -> Taken:
    """One step of `take_one` or `take_all` over a mesh, from models and states on all of its devices to the same."""
    with over(mesh), others_alive():
        taken = program(*placed, spread(piece, mesh), *replicated((key, *totals), mesh), estimator)
        return taken if jax.process_count() == 1 else jax.block_until_ready(taken)


def mesh_for(data: Prepared, config):
    """The devices that share a batch."""
    return mesh(min(config.batch_size, len(data.table.first)))


# --- the order of the data ----------------------------------------------------------------------------------------


def batch_at(data: Prepared, config, step: int) -> Batch:
    """The batch of a step: a function of the seed and the step alone, so that a fit can go on from any step.

    A process reads only the rows of its own devices.
    """
    epoch, number = divmod(step, _batches(data, config))
    rows = _order(len(data.table.first), config.batch_size, config.seed, epoch)[number]
    return batch(data.train, data.table, own(rows))


def _batches(data: Prepared, config) -> int:
    """Full batches in an epoch."""
    return max(1, len(data.table.first) // config.batch_size)


@functools.lru_cache(maxsize=2)
def _order(windows: int, batch_size: int, seed: int, epoch: int) -> np.ndarray:
    return epoch_order(windows, batch_size, seed=seed, epoch=epoch)


# --- what is told -------------------------------------------------------------------------------------------------


def report(i: int, model: SVAE, taken: Taken, data: Prepared, started: float, piece: Batch, phase: str) -> Step:
    """Step i of a phase, counted from 0; `taken` is of one restart."""
    config = model.config
    usage = np.asarray(taken.bound.usage)
    bound = float(np.asarray(taken.bound.bound)) / data.train.frames - data.log_volume
    parts = _parts(taken.bound, data)
    speed = float(piece.counted.sum()) * jax.process_count() * config.restarts / max(time.monotonic() - started, 1e-9)
    in_use = int(np.sum(usage > IN_USE * max(usage.sum(), 1e-9)))
    warm = config.warmup_steps * config.restarts
    done = i + 1 + (warm if phase == "fit" else 0)
    return Step(done, warm + config.steps, phase, model, bound, np.nan, in_use, speed, "", parts=parts)


def _parts(bound: Any, data: Prepared) -> Parts:
    """Per frame, in the units of the data."""
    found = Parts(*(float(np.asarray(getattr(bound, name))) / data.train.frames for name in Parts._fields))
    return found._replace(log_likelihood=found.log_likelihood - data.log_volume)


def failure(taken: Taken, i: int, data: Prepared, config) -> str:
    """One sentence when a step was not finite: the leaf, the restart, and the batch."""
    good = np.atleast_1d(np.asarray(taken.good & taken.finite["bound"]))
    if good.all():
        return ""
    restart = int(np.argmin(good))
    bad = [name for name, finite in taken.finite.items() if not np.atleast_1d(np.asarray(finite))[restart]]
    what = f"{bad[0]} of the gradient" if bad and bad[0] != "bound" else "the bound" if bad else "the model after it"
    others = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    epoch, number = divmod(i, _batches(data, config))
    where = f"step {i}, restart {restart}, batch {number} of epoch {epoch}"
    return f"{where}: {what}{others} was not finite; kept the last good model and halved the step."


def give_up(damping: Array, i: int, note: str) -> None:
    """Raise when no restart has had a finite step for long."""
    if not np.any(np.asarray(damping) > SMALLEST_DAMPING):
        raise FitError(f"step {i} failed again and again ({note}) lower learning_rate and natural_step.")


# --- models of several restarts as one ----------------------------------------------------------------------------


def stack(models: list[SVAE]) -> SVAE:
    """Models with a leading axis in every array."""
    arrays = [eqx.filter(m, eqx.is_array) for m in models]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *arrays)
    return eqx.combine(stacked, eqx.filter(models[0], eqx.is_array, inverse=True))


def pick(tree: Any, index: int) -> Any:
    """One of them."""
    return jax.tree.map(lambda leaf: leaf[index] if eqx.is_array(leaf) else leaf, tree)
