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
from svae._elbo import elbo, evidence, value_and_grad
from svae._model import SVAE
from svae.data import (
    Recordings,
    Standardize,
    Windows,
    batch,
    check,
    epoch_order,
    recordings,
    split,
    standardize_entries,
    standardize_globally,
    standardized,
    windows,
)
from svae.pgm import PGMS

IN_USE = 0.01  # a state is in use when it takes this share of the frames
SMALLEST_DAMPING = 1e-6  # about 20 failures in a row
MOST_FRAMES = 2**15  # in one batch of warm latents
INDEPENDENT = ("vae", "gaussian", "gmm")  # models whose frames do not see each other


class FitError(RuntimeError):
    """A fit that cannot go on, and why, in one sentence."""


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


class _Data(NamedTuple):
    train: Recordings  # in model units
    held: Recordings | None
    table: Windows
    log_volume: float  # nats per training frame that model units add
    held_volume: float  # the same of the held-out frames


def fit(
    model: SVAE, data: Any, *, key: PRNGKeyArray | None = None, estimator: Callable = value_and_grad
) -> Iterator[Step]:
    """Fit `model` to recordings (an array (T, *event), a list or a dict of them); its config has the settings.

    `estimator` is `value_and_grad` or another function of its signature.
    """
    config = model.config
    key = jax.random.key(config.seed) if key is None else key
    key_warm, key_fit = jax.random.split(key)
    model, prepared, notes = _prepare(model, data)
    models = []
    for restart, restart_key in enumerate(jax.random.split(key_warm, config.restarts)):
        warm = model
        for step in _warm_up(model, prepared, restart_key, config.seed + restart):
            warm = step.model
            yield step._replace(note=" ".join([*notes, step.note]).strip())
            notes = []
        models.append(warm)
    yield from _train(_stack(models), prepared, key_fit, estimator)


# --- data ---------------------------------------------------------------------------------------------------------


def _prepare(model: SVAE, data: Any) -> tuple[SVAE, _Data, list[str]]:
    """Checks, holds out, and standardises; the model comes back with its units."""
    data = recordings(data)
    notes = check(data)
    if data.sequences[0].shape[1:] != model.shape:
        raise FitError(
            f"the model is for frames of shape {model.shape}, the data have {data.sequences[0].shape[1:]}; make it anew"
        )
    config = model.config
    hold = config.held_out > 0 and (len(data.sequences) > 2 or min(map(len, data.sequences)) > 20)
    train, held = split(data, config.held_out, config.seed) if hold else (data, None)
    scaling = _units(model, train)
    train = standardized(train, scaling)
    window, overlap = _window(config, train)
    if config.model in INDEPENDENT and window == 1:
        train = Recordings(tuple(f[None] for y in train.sequences for f in y), ("frame",) * train.frames, train.fps)
        overlap = 0
    table = windows(train, window, overlap)
    units = jax.tree.map(lambda a: jnp.asarray(a, jnp.result_type(float)), scaling)
    model = eqx.tree_at(lambda m: m.scaling, model, units)
    held = None if held is None else standardized(held, scaling)
    held_volume = 0.0 if held is None else _volume(held, scaling)
    return model, _Data(train, held, table, _volume(train, scaling), held_volume), notes


def _volume(data: Recordings, scaling: Standardize) -> float:
    """sum log scale over the observed entries, per frame: what the density gains when entries are divided by scale."""
    observed = sum(np.sum(~np.isnan(y), 0) for y in data.sequences)
    return float(np.sum(observed * np.log(scaling.scale, dtype=float)) / data.frames)


def _units(model: SVAE, train: Recordings) -> Standardize:
    """Images share one unit, columns have their own; counts and bits keep theirs."""
    if model.config.likelihood in ("bernoulli", "poisson"):
        return Standardize(np.zeros(()), np.ones(())).in_float32(model.shape)
    found = standardize_globally(train) if len(model.shape) > 1 else standardize_entries(train)
    return found.in_float32(model.shape)


def _window(config, train: Recordings) -> tuple[int, int]:
    if config.window is not None:
        return config.window, config.overlap
    return (1, 0) if config.model in INDEPENDENT else (max(map(len, train.sequences)), 0)


def _sizes(data: _Data) -> tuple[Array, Array]:
    """Windows and frames to train on, as arrays: a number would be compiled in."""
    return jnp.asarray(len(data.table.first), float), jnp.asarray(data.train.frames, float)


def _batches(data: _Data, config) -> Iterator[Any]:
    """Batches without end, in an order that depends on the seed only."""
    epoch = 0
    while True:
        for rows in epoch_order(len(data.table.first), config.batch_size, seed=config.seed, epoch=epoch):
            yield batch(data.train, data.table, rows)
        epoch += 1


# --- warm-up ------------------------------------------------------------------------------------------------------


def _warm_up(model: SVAE, data: _Data, key: PRNGKeyArray, seed: int) -> Iterator[Step]:
    """PCA, a short VAE, then q(theta) from its latents."""
    config = model.config
    frames = np.concatenate(data.train.sequences)
    chosen = np.random.default_rng(seed).permutation(len(frames))[:4000]
    model = _initialize.at_pca(model, frames[chosen])
    simple = eqx.tree_at(lambda m: (m.pgm, m.q), model, (_standard(config), ()), is_leaf=lambda n: n is None)
    state = _optimizer.init(simple, _optimizer.networks_optimizer(config))
    sizes = _sizes(data)
    stream = _batches(data, config)
    for i in range(config.warmup_steps):
        started = time.monotonic()
        key, now = jax.random.split(key)
        piece = next(stream)
        taken = _take_one(simple, state, piece, now, *sizes, value_and_grad)
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


def _latents(model: SVAE, data: _Data) -> list[np.ndarray]:
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


def _train(models: SVAE, data: _Data, key: PRNGKeyArray, estimator: Callable) -> Iterator[Step]:
    config = models.config
    restarts = config.restarts
    optimizer = _optimizer.networks_optimizer(config)
    states = eqx.filter_vmap(lambda m: _optimizer.init(m, optimizer))(models)
    sizes = _sizes(data)
    stream = _batches(data, config)
    measure = max(1, min(100, config.steps // 10))
    best, held = 0, np.full(restarts, np.nan)
    for i in range(config.steps):
        started = time.monotonic()
        key, now, key_held = jax.random.split(key, 3)
        piece = next(stream)
        taken = _take_all(models, states, piece, jax.random.split(now, restarts), *sizes, estimator)
        models, states = taken.model, taken.state
        measured = (i + 1) % measure == 0 or i + 1 == config.steps
        if measured:
            held = _held_out(models, data, key_held, restarts, taken)
            best = int(np.nanargmax(np.nan_to_num(held, nan=-np.inf)))
        note = _failure(taken, i, len(data.table.first), config)
        _give_up(states.damping, i, note)
        report = _report(i, models, _pick(models, best), _pick(taken, best), data, started, piece, "fit")
        yield report._replace(held_out=float(held[best]) if measured else np.nan, note=note)


def _held_out(models: SVAE, data: _Data, key: PRNGKeyArray, restarts: int, taken) -> np.ndarray:
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


def _report(i, models, model, taken, data: _Data, started, piece, phase) -> Step:
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


__all__ = ["FitError", "Step", "elbo", "fit", "held_out_bound"]
