"""Fitting: a generator of steps. Progress bars, plots, checkpoints and early stopping consume what it yields."""

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from svae import _initialize, _optimizer, expfam
from svae._elbo import evidence, value_and_grad
from svae._model import SVAE
from svae._prepare import FitError, Prepared, batches, prepare, sizes
from svae.data import Recordings, batch, windows
from svae.pgm import PGMS

IN_USE = 0.01  # a state is in use when it takes this share of the frames
SMALLEST_DAMPING = 1e-6  # about 20 failures in a row
MOST_FRAMES = 2**15  # in one batch of warm latents


class Step(NamedTuple):
    """One step of a fit; bounds are nats per frame in the units of the data."""

    step: int
    total: int
    phase: str  # "warm-up" or "fit"
    model: SVAE  # of the best restart so far
    bound: float  # estimated from this step's batch
    held_out: float  # of whole held-out recordings, without the global KL; NaN where it was not measured
    states_in_use: int
    frames_per_second: float
    note: str  # what a person should be told, else ""


def fit(
    model: SVAE, data: Any, *, key: PRNGKeyArray | None = None, estimator: Callable = value_and_grad
) -> Iterator[Step]:
    """Fit `model` to recordings (an array (T, *event), a list or a dict of them); its config has the settings.

    `estimator` is `value_and_grad` or another function of its signature.
    """
    config = model.config
    key = jax.random.key(config.seed) if key is None else key
    key_warm, key_fit = jax.random.split(key)
    model, prepared, notes = prepare(model, data)
    models = []
    for restart, restart_key in enumerate(jax.random.split(key_warm, config.restarts)):
        warm = model
        for step in _warm_up(model, prepared, restart_key, config.seed + restart):
            warm = step.model
            yield step._replace(note=" ".join([*notes, step.note]).strip())
            notes = []
        models.append(warm)
    yield from _train(_stack(models), prepared, key_fit, estimator)


# --- warm-up ------------------------------------------------------------------------------------------------------


def _warm_up(model: SVAE, data: Prepared, key: PRNGKeyArray, seed: int) -> Iterator[Step]:
    """PCA, a short VAE, then q(theta) from its latents."""
    config = model.config
    frames = np.concatenate(data.train.sequences)
    chosen = np.random.default_rng(seed).permutation(len(frames))[:4000]
    model = _initialize.at_pca(model, frames[chosen])
    simple = eqx.tree_at(lambda m: (m.pgm, m.q), model, (_standard(config), ()), is_leaf=lambda n: n is None)
    state = _optimizer.init(simple, _optimizer.networks_optimizer(config))
    totals = sizes(data)
    stream = batches(data, config)
    for i in range(config.warmup_steps):
        started = time.monotonic()
        key, now = jax.random.split(key)
        piece = next(stream)
        taken = _take_one(simple, state, piece, now, *totals, value_and_grad)
        simple, state = taken.model, taken.state
        note = _failure(taken, i, len(data.table.first), config)
        _give_up(state.damping, i, note)
        yield _report(i, model, simple, taken, data, started, piece, "warm-up")._replace(note=note)
    model = eqx.tree_at(lambda m: (m.recognize, m.observe), model, (simple.recognize, simple.observe))
    model = _initialize.at_latents(model, _latents(simple, data), seed=seed)
    nothing = Step(
        config.warmup_steps, config.warmup_steps + config.steps, "warm-up", model, np.nan, np.nan, 0, np.nan, ""
    )
    yield nothing


def _standard(config):
    return PGMS["vae"](config.latent_dim, 1, concentration=1.0, stickiness=0.0)


def _latents(model: SVAE, data: Prepared) -> list[np.ndarray]:
    """Posterior means of the training frames, recording by recording."""
    train = _capped(data.train)
    longest = max(map(len, train.sequences))
    table, size = windows(train, longest, 0), max(1, min(len(train.sequences), MOST_FRAMES // longest))
    found = []
    for first in range(0, len(train.sequences), size):
        rows = np.arange(first, min(first + size, len(train.sequences)))
        piece = batch(train, table, np.resize(rows, size))  # one shape, one program
        found += list(np.asarray(_guess(model, piece.y, piece.mask))[: len(rows)])
    return [x[: len(y)] for x, y in zip(found, train.sequences, strict=True)]


@eqx.filter_jit
def _guess(model, y, mask):
    return jax.vmap(lambda y, mask: model.pgm.infer((), model.recognize(y, mask), mask).x.mean)(y, mask)


def _capped(data: Recordings, most: int = 100_000) -> Recordings:
    """Recordings until there are `most` frames: enough to find states on."""
    number = int(np.searchsorted(np.cumsum([len(y) for y in data.sequences]), most)) + 1
    return data._replace(sequences=data.sequences[:number], names=data.names[:number])


# --- training -----------------------------------------------------------------------------------------------------


class _Taken(NamedTuple):
    model: SVAE
    state: Any
    bound: Any
    good: Array
    finite: dict[str, Array]  # which parts of the bound and leaves of the gradient, by name, were finite


def _take(model, state, piece, key, num_data, frames, estimator) -> _Taken:
    bound, gradient = estimator(model, piece.y, piece.mask, num_data=num_data, key=key, counted=piece.counted)
    update = _optimizer.update(model, gradient, state, _optimizer.networks_optimizer(model.config), 1.0 / frames)
    return _Taken(update.model, update.state, bound, update.good, _finite(gradient) | _finite({"bound": bound.bound}))


def _finite(tree: Any) -> dict[str, Array]:
    """Whether each leaf is finite, by its path: q.dynamics.uxT."""
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(tree, eqx.is_inexact_array))
    name = functools.partial(jax.tree_util.keystr, simple=True, separator=".")
    return {name(path): jnp.all(jnp.isfinite(leaf)) for path, leaf in leaves}


_take_one = eqx.filter_jit(_take)  # compiled once for a config and a shape, however many fits use it


@eqx.filter_jit
def _take_all(models, states, piece, keys, num_data, frames, estimator) -> _Taken:
    """All restarts in one program: the leading axis of the models, their states and their keys."""
    arrays, static = eqx.partition(models, eqx.is_array)

    def one(arrays, state, key):
        taken = _take(eqx.combine(arrays, static), state, piece, key, num_data, frames, estimator)
        return taken._replace(model=eqx.filter(taken.model, eqx.is_array))

    taken = jax.vmap(one)(arrays, states, keys)
    return taken._replace(model=eqx.combine(taken.model, static))


def _train(models: SVAE, data: Prepared, key: PRNGKeyArray, estimator: Callable) -> Iterator[Step]:
    config = models.config
    restarts = config.restarts
    optimizer = _optimizer.networks_optimizer(config)
    states = eqx.filter_vmap(lambda m: _optimizer.init(m, optimizer))(models)
    totals = sizes(data)
    stream = batches(data, config)
    measure = max(1, min(100, config.steps // 10))
    best, held = 0, np.full(restarts, np.nan)
    for i in range(config.steps):
        started = time.monotonic()
        key, now, key_held = jax.random.split(key, 3)
        piece = next(stream)
        taken = _take_all(models, states, piece, jax.random.split(now, restarts), *totals, estimator)
        models, states = taken.model, taken.state
        measured = (i + 1) % measure == 0 or i + 1 == config.steps
        if measured:
            held = _held_out(models, data, key_held, restarts, taken)
            best = int(np.nanargmax(np.nan_to_num(held, nan=-np.inf)))
        note = _failure(taken, i, len(data.table.first), config)
        _give_up(states.damping, i, note)
        report = _report(i, models, _pick(models, best), _pick(taken, best), data, started, piece, "fit")
        yield report._replace(held_out=float(held[best]) if measured else np.nan, note=note)


def _held_out(models: SVAE, data: Prepared, key: PRNGKeyArray, restarts: int, taken) -> np.ndarray:
    """Held-out bound per frame of every restart; without held-out data, the training estimate."""
    if data.held is None:
        return np.atleast_1d(np.asarray(taken.bound.bound)) / data.train.frames - data.log_volume
    return np.array([held_out_bound(_pick(models, r), data.held, key=key) - data.held_volume for r in range(restarts)])


def held_out_bound(model: SVAE, held: Recordings, *, key: PRNGKeyArray) -> float:
    """E log p(y | x, gamma) - local KL per frame of whole recordings in model units, in batches."""
    total, size = 0.0, max(1, min(model.config.batch_size, len(held.sequences)))
    table = windows(held, max(map(len, held.sequences)), 0)
    for rows in np.array_split(np.arange(len(held.sequences)), -(-len(held.sequences) // size)):
        key, now = jax.random.split(key)
        filled = np.resize(rows, size)  # one shape, one program; repeats are not counted
        piece = batch(held, table, filled)
        counted = piece.counted & (np.arange(size) < len(rows))[:, None]
        total += float(_evaluate(model, piece.y, piece.mask, counted, now))
    return total / held.frames


@eqx.filter_jit
def _evaluate(model, y, mask, counted, key):
    found = evidence(model, expfam.moments(model.q), y, mask, counted, key)
    return found.log_likelihood - found.kl


def _report(i, models, model, taken, data: Prepared, started, piece, phase) -> Step:
    config = models.config
    usage = np.asarray(taken.bound.usage)
    bound = float(np.asarray(taken.bound.bound)) / data.train.frames - data.log_volume
    speed = float(piece.counted.sum()) * config.restarts / max(time.monotonic() - started, 1e-9)
    in_use = int(np.sum(usage > IN_USE * max(usage.sum(), 1e-9)))
    done = i + 1 + (config.warmup_steps if phase == "fit" else 0)
    return Step(done, config.warmup_steps + config.steps, phase, model, bound, np.nan, in_use, speed, "")


def _failure(taken: _Taken, i: int, num_windows: int, config) -> str:
    """One sentence when a step was not finite: the leaf, the restart, and the batch."""
    good = np.atleast_1d(np.asarray(taken.good & taken.finite["bound"]))
    if good.all():
        return ""
    restart = int(np.argmin(good))
    bad = [name for name, finite in taken.finite.items() if not np.atleast_1d(np.asarray(finite))[restart]]
    what = f"{bad[0]} of the gradient" if bad and bad[0] != "bound" else "the bound" if bad else "the model after it"
    others = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    epoch, number = divmod(i, max(1, num_windows // config.batch_size))
    where = f"step {i}, restart {restart}, batch {number} of epoch {epoch}"
    return f"{where}: {what}{others} was not finite; kept the last good model and halved the step."


def _give_up(damping: Array, i: int, note: str) -> None:
    """Raise when no restart has had a finite step for long."""
    if not np.any(np.asarray(damping) > SMALLEST_DAMPING):
        raise FitError(f"step {i} failed again and again ({note}) lower learning_rate and natural_step.")


def _stack(models: list[SVAE]) -> SVAE:
    arrays = [eqx.filter(m, eqx.is_array) for m in models]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *arrays)
    return eqx.combine(stacked, eqx.filter(models[0], eqx.is_array, inverse=True))


def _pick(tree: Any, index: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[index] if eqx.is_array(leaf) else leaf, tree)
