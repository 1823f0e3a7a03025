"""From what a user gives to what a fit takes: checked, held out, in model units, cut into windows."""

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from svae._program_memory import make_room
from svae.config import OWN
from svae.data import (
    Batch,
    Layout,
    Moments,
    Preprocess,
    Recordings,
    Standardize,
    Windows,
    batch,
    check,
    check_range,
    check_shapes,
    entry_units,
    epoch_order,
    global_units,
    layout_of,
    matched,
    moments,
    preprocessed,
    recordings,
    settled,
    split,
    standardized,
    wild_shares,
    windows,
)
from svae.data.beside import part
from svae.data.carried import require_states, said_of_labels, without_labels
from svae.data.driven import inputs_in, said_of_inputs, units_of_inputs, with_known_inputs
from svae.data.grouped import numbered, require_groups, said_of_groups
from svae.model import SVAE, with_groups_of
from svae.nets import likelihood_of

NUMBERS = 2**25  # that a batch of whole recordings may hold, about; longer ones are cut into windows
WINDOWED = 2**23  # that a batch of such windows may hold: enough for a step, and little beside the program itself
SHORTEST = 100  # frames of such a window
WILD_SHARE = 0.001  # of the frames of a point that is worth a sentence


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
    make_room()
    data = recordings(data)
    check_shapes(data)
    model = model if model.layout.names else with_groups_of(model, _layout(model, data))
    raw, said = matched(data, model.layout)
    notes = [*data.notes, *said, *said_of_wild(raw, model.preprocess)]
    states = model.pgm.states if model.pgm.discrete else None
    require_states(raw, states)
    require_groups(raw, model.pgm.by)
    notes += said_of_inputs(raw, model.pgm.inputs)
    raw = with_known_inputs(raw, model.pgm.inputs)
    data = settled(preprocessed(raw, model.preprocess))
    notes += check(data)
    likelihood = likelihood_of(model.observe)
    if np.isfinite([likelihood.low, likelihood.high]).any():
        check_range(data, likelihood.low, likelihood.high, f"likelihood={_named(model)}")
    if data.sequences[0].shape[1:] != model.shape:
        raise FitError(
            f"the model is for frames of shape {model.shape}, the data have {data.sequences[0].shape[1:]}; make it anew"
        )
    config = model.config
    train, held = divided(data, config)
    notes += said_of_labels(train, held, states) + said_of_groups(train, held, model.pgm.by)
    held = None if held is None else without_labels(held)
    found = moments(train)
    scaling = _units(model, found)
    driven = units_of_inputs(train) if model.pgm.inputs else None
    by = model.pgm.by, model.layout.groups
    train = numbered(inputs_in(standardized(train, scaling), driven), *by)
    window, overlap = _window(model, train)
    if model.pgm.independent and window == 1:
        train, overlap = _alone(train), 0
    table = windows(train, window, overlap)
    units = jax.tree.map(lambda a: jnp.asarray(a, jnp.result_type(float)), (scaling, driven))
    model = dataclasses.replace(model, scaling=units[0], driven=units[1])
    held_volume = 0.0 if held is None else _volume(moments(held), held.frames, scaling)
    held = None if held is None else numbered(inputs_in(standardized(held, scaling), driven), *by)
    return model, Prepared(train, held, table, _volume(found, train.frames, scaling), held_volume), notes


def _layout(model: SVAE, data: Recordings) -> Layout:
    """The layout of the data; names of inputs, states and groups that the model already has stay."""
    found, own = layout_of(data), model.layout
    kept = {name: getattr(own, name) or getattr(found, name) for name in ("inputs", "labels", "groups")}
    return dataclasses.replace(found, **kept)


def _alone(data: Recordings) -> Recordings:
    """Every frame as a recording."""
    frames = [(i, t) for i, y in enumerate(data.sequences) for t in range(len(y))]
    beside = tuple(part(data.beside, i, t, t + 1) for i, t in frames) if data.beside else ()
    sequences = tuple(f[None] for y in data.sequences for f in y)
    return data._replace(sequences=sequences, names=("frame",) * len(frames), times=(), notes=(), beside=beside)


def said_of_wild(data: Recordings, by: Preprocess) -> list[str]:
    """A sentence where points lie too far from the rest of the body to be where the animal is."""
    shares = wild_shares(data, by)
    if not len(shares) or shares.max() < WILD_SHARE:
        return []
    mean, most = 100 * shares.mean(), 100 * shares.max()
    return [
        f"{mean:.1f} % of the points ({most:.1f} % of one) lie too far from the rest of the body; they are missing."
    ]


def _named(model: SVAE) -> str:
    """The likelihood by its option, or what it is called where it is of one's own."""
    return model.config.likelihood if model.config.likelihood != OWN else likelihood_of(model.observe).title


def divided(data: Recordings, config) -> tuple[Recordings, Recordings | None]:
    """Recordings to fit to and recordings held out; None where there is too little to hold any out."""
    hold = config.held_out > 0 and (len(data.sequences) > 2 or min(map(len, data.sequences)) > 20)
    return split(data, config.held_out, config.split_seed) if hold else (data, None)


def _volume(found: Moments, frames: int, scaling: Standardize) -> float:
    """sum log scale over the observed entries, per frame: what the density gains when entries are divided by scale."""
    return float(np.sum(found.count * np.log(scaling.scale, dtype=float).reshape(-1)) / frames)


def _units(model: SVAE, found: Moments) -> Standardize:
    """Images share one unit, columns have their own; counts and bits keep theirs."""
    if not likelihood_of(model.observe).standardized:
        return Standardize(np.zeros(()), np.ones(())).in_float32(model.shape)
    units = global_units(found) if len(model.shape) > 1 else entry_units(found, model.shape)
    return units.in_float32(model.shape)


def _window(model: SVAE, train: Recordings) -> tuple[int, int]:
    """Frames of a window and around it: whole recordings, unless a batch of them would hold too many numbers."""
    config = model.config
    if config.window is not None:
        return config.window, config.overlap
    if model.pgm.independent:
        return 1, 0
    longest, each = max(map(len, train.sequences)), _numbers_per_frame(model, train)
    if longest * min(config.batch_size, len(train.sequences)) * each <= NUMBERS:
        return longest, 0
    return max(SHORTEST, WINDOWED // (each * config.batch_size)), max(1, config.overlap)


def _numbers_per_frame(model: SVAE, train: Recordings) -> int:
    """The approximate count of numbers that inference and its gradient hold for each frame."""
    networks = 2 * int(np.prod(train.sequences[0].shape[1:])) + 2 * max(model.config.hidden, default=1)
    return networks + model.pgm.numbers_per_frame


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
