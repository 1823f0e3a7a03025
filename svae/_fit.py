"""Fitting: a generator of steps. Progress bars, plots, checkpoints and early stopping consume what it yields."""

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
    log_volume: float  # nats per frame that model units add


def fit(model: SVAE, data: Any, *, key: PRNGKeyArray | None = None, estimator: Callable = value_and_grad) -> Iterator[Step]:
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
            yield step._replace(note=notes.pop() if notes else "")
        models.append(warm)
    yield from _train(_stack(models), prepared, key_fit, estimator)


# --- data ---------------------------------------------------------------------------------------------------------


def _prepare(model: SVAE, data: Any) -> tuple[SVAE, _Data, list[str]]:
    """Checks, holds out, and standardises; the model comes back with its units."""
    data = recordings(data)
    notes = check(data)
    if data.sequences[0].shape[1:] != model.shape:
        raise FitError(f"the model is for frames of shape {model.shape}, the data have {data.sequences[0].shape[1:]}; make it anew")
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
    model = eqx.tree_at(lambda m: m.scaling, model, jax.tree.map(jnp.asarray, scaling))
    volume = float(np.sum(np.log(scaling.scale)))
    return model, _Data(train, None if held is None else standardized(held, scaling), table, volume), notes


def _units(model: SVAE, train: Recordings) -> Standardize:
    """Images share one unit, columns have their own; counts and bits keep theirs."""
    if model.config.likelihood in ("bernoulli", "poisson"):
        return Standardize(np.zeros(model.shape), np.ones(model.shape))
    found = standardize_globally(train) if len(model.shape) > 1 else standardize_entries(train)
    return Standardize(*(np.broadcast_to(a, model.shape).copy() for a in found))


def _window(config, train: Recordings) -> tuple[int, int]:
    if config.window is not None:
        return config.window, config.overlap
    return (1, 0) if config.model in INDEPENDENT else (max(map(len, train.sequences)), 0)


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
    optimizer = _optimizer.networks_optimizer(config)
    state = _optimizer.init(simple, optimizer)
    take = _jit_step(optimizer, value_and_grad)
    stream = _batches(data, config)
    for i in range(config.warmup_steps):
        started = time.monotonic()
        key, now = jax.random.split(key)
        piece = next(stream)
        taken = take(simple, state, piece, now, len(data.table.first), data.train.frames)
        simple, state = taken.model, taken.state
        yield _report(i, model, simple, taken, data, started, piece, "warm-up")
    model = eqx.tree_at(lambda m: (m.recognize, m.observe), model, (simple.recognize, simple.observe))
    model = eqx.tree_at(lambda m: m.q, model, _initialize.warm_q(model, _latents(simple, data), seed=seed))
    nothing = Step(config.warmup_steps, config.warmup_steps + config.steps, "warm-up", model, np.nan, np.nan, 0, np.nan, "")
    yield nothing


def _standard(config):
    return PGMS["vae"](config.latent_dim, 1, concentration=1.0, stickiness=0.0)


def _latents(model: SVAE, data: _Data) -> list[np.ndarray]:
    """Posterior means of the training frames, recording by recording."""
    guess = eqx.filter_jit(lambda m, y, mask: m.pgm.infer((), m.recognize(y, mask), mask).x.mean)
    return [np.asarray(guess(model, y, jnp.ones(len(y), bool))) for y in _capped(data.train)]


def _capped(data: Recordings, most: int = 100_000) -> list[np.ndarray]:
    """Recordings until there are `most` frames: enough to find states on."""
    ends = np.cumsum([len(y) for y in data.sequences])
    return [y for y, end in zip(data.sequences, ends, strict=True) if end - len(y) < most]


# --- training -----------------------------------------------------------------------------------------------------


class _Taken(NamedTuple):
    model: SVAE
    state: Any
    bound: Any
    good: Array
    finite: Array  # which leaves of the gradient were finite


def _take(model, state, piece, key, num_data, frames, optimizer, estimator) -> _Taken:
    bound, gradient = estimator(model, piece.y, piece.mask, num_data=num_data, key=key, counted=piece.counted)
    update = _optimizer.update(model, gradient, state, optimizer, 1.0 / frames)
    leaves = [leaf for leaf in jax.tree.leaves(gradient) if eqx.is_inexact_array(leaf)]
    finite = jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves])
    return _Taken(update.model, update.state, bound, update.good, finite)


def _jit_step(optimizer, estimator):
    def take(model, state, piece, key, num_data, frames):
        return _take(model, state, piece, key, num_data, frames, optimizer, estimator)

    return eqx.filter_jit(take)


def _jit_restarts(optimizer, estimator):
    """All restarts in one program: the leading axis of the models, their states and their keys."""

    def take(models, states, piece, keys, num_data, frames):
        arrays, static = eqx.partition(models, eqx.is_array)

        def one(arrays, state, key):
            taken = _take(eqx.combine(arrays, static), state, piece, key, num_data, frames, optimizer, estimator)
            return taken._replace(model=eqx.filter(taken.model, eqx.is_array))

        taken = jax.vmap(one)(arrays, states, keys)
        return taken._replace(model=eqx.combine(taken.model, static))

    return eqx.filter_jit(take)


def _train(models: SVAE, data: _Data, key: PRNGKeyArray, estimator: Callable) -> Iterator[Step]:
    config = models.config
    restarts = config.restarts
    optimizer = _optimizer.networks_optimizer(config)
    states = eqx.filter_vmap(lambda m: _optimizer.init(m, optimizer))(models)
    take = _jit_restarts(optimizer, estimator)
    stream = _batches(data, config)
    measure = max(1, min(100, config.steps // 10))
    best, held = 0, np.full(restarts, np.nan)
    for i in range(config.steps):
        started = time.monotonic()
        key, now, key_held = jax.random.split(key, 3)
        piece = next(stream)
        taken = take(models, states, piece, jax.random.split(now, restarts), len(data.table.first), data.train.frames)
        models, states = taken.model, taken.state
        measured = (i + 1) % measure == 0 or i + 1 == config.steps
        if measured:
            held = _held_out(models, data, key_held, restarts, taken)
            best = int(np.nanargmax(np.nan_to_num(held, nan=-np.inf)))
        note = _failure(taken, models, i)
        if not np.all(np.asarray(states.damping) > 1e-6):
            raise FitError(f"step {i} failed again and again ({note}); lower learning_rate and natural_step")
        report = _report(i, models, _pick(models, best), _pick(taken, best), data, started, piece, "fit")
        yield report._replace(held_out=float(held[best]) if measured else np.nan, note=note)


def _held_out(models: SVAE, data: _Data, key: PRNGKeyArray, restarts: int, taken) -> np.ndarray:
    """Held-out bound per frame of every restart; without held-out data, the training estimate."""
    if data.held is None:
        return np.atleast_1d(np.asarray(taken.bound.bound)) / data.train.frames - data.log_volume
    return np.array([held_out_bound(_pick(models, r), data.held, key=key) - data.log_volume for r in range(restarts)])


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


def _failure(taken: _Taken, models: SVAE, i: int) -> str:
    """One sentence when a step was not finite: the restart, the leaf, the batch."""
    failed = np.flatnonzero(~np.asarray(taken.good))
    if len(failed) == 0:
        return ""
    bad = np.flatnonzero(~np.asarray(taken.finite)[failed[0]])
    where = f"leaf {bad[0]} of the gradient" if len(bad) else "the step itself"
    return f"step {i}, restart {failed[0]}: {where} was not finite; kept the last good model and halved the step"


def _stack(models: list[SVAE]) -> SVAE:
    arrays = [eqx.filter(m, eqx.is_array) for m in models]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *arrays)
    return eqx.combine(stacked, eqx.filter(models[0], eqx.is_array, inverse=True))


def _pick(tree: Any, index: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[index] if eqx.is_array(leaf) else leaf, tree)


__all__ = ["FitError", "Step", "elbo", "fit", "held_out_bound"]
