"""From what a user gives to what a fit takes: checked, held out, in model units, cut into windows."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from svae._model import SVAE
from svae.data import (
    Batch,
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

INDEPENDENT = ("vae", "gaussian", "gmm")  # models whose frames do not see each other


class FitError(RuntimeError):
    """A fit that cannot go on, and why, in one sentence."""


class Prepared(NamedTuple):
    train: Recordings  # in model units
    held: Recordings | None
    table: Windows
    log_volume: float  # nats per training frame that model units add
    held_volume: float  # the same of the held-out frames


def prepare(model: SVAE, data: Any) -> tuple[SVAE, Prepared, list[str]]:
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
    return model, Prepared(train, held, table, _volume(train, scaling), held_volume), notes


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


def sizes(data: Prepared) -> tuple[Array, Array]:
    """Windows and frames to train on, as arrays: a number would be compiled in."""
    return jnp.asarray(len(data.table.first), float), jnp.asarray(data.train.frames, float)


def batches(data: Prepared, config) -> Iterator[Batch]:
    """Batches without end, in an order that depends on the seed only."""
    epoch = 0
    while True:
        for rows in epoch_order(len(data.table.first), config.batch_size, seed=config.seed, epoch=epoch):
            yield batch(data.train, data.table, rows)
        epoch += 1
