"""Recordings of any length through compiled programs of a few shapes, in batches of bounded memory."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from svae import expfam
from svae._program_memory import make_room
from svae.config import ConfigError
from svae.data import (
    Beside,
    DataError,
    Recordings,
    blocks,
    check_form,
    check_shapes,
    matched,
    preprocessed,
    recordings,
    settled,
    standardized,
)
from svae.data.beside import of_windows
from svae.data.carried import require_states
from svae.data.driven import inputs_in, with_known_inputs
from svae.data.grouped import numbered, said_of_new
from svae.model import SVAE

NUMBERS_OF_A_BATCH = 2**24  # that one batch may hold
FARTHEST = 1e9  # scales from the mean of the fitted data; squares of more would leave float32


class Asked(NamedTuple):
    """Recordings after the model's preprocessing, and in model units; what was done to match them by name."""

    raw: Recordings
    scaled: Recordings
    notes: tuple[str, ...] = ()


class Padded(NamedTuple):
    """Recordings `rows`, padded at the end to one length; further rows only fill the batch."""

    rows: Int[np.ndarray, " n"]
    y: Float[np.ndarray, "B L *event"]
    mask: Bool[np.ndarray, "B L"]
    beside: Beside


def prepare(model: SVAE, data: Any) -> Asked:
    """Checks raw data against the model and brings them to its units."""
    make_room()
    raw = recordings(data)
    check_shapes(raw)
    raw, notes = matched(raw, model.layout)
    require_states(raw, model.pgm.states if model.pgm.discrete else None)
    raw = with_known_inputs(raw, model.pgm.inputs)
    raw = settled(preprocessed(raw, model.preprocess))
    check_form(raw)
    if raw.sequences[0].shape[1:] != model.shape:
        raise DataError(f"The model is for frames of shape {model.shape}, the data have {raw.sequences[0].shape[1:]}.")
    by = model.pgm.by, model.layout.groups
    notes = [*notes, *said_of_new(raw, *by)]
    scaled = numbered(inputs_in(standardized(raw, model.scaling), model.driven), *by)
    for name, z in zip(raw.names, scaled.sequences, strict=True):
        _check_near(name, z)
    return Asked(raw, scaled, tuple(notes))


def _check_near(name, z):
    for first, frames in blocks(z):
        rows = frames.reshape(len(frames), -1)
        far = np.abs(rows) > FARTHEST
        if far.any():
            frame, column = np.argwhere(far)[0]
            raise DataError(
                f"{name} in column {column} at frame {first + frame} is {abs(rows[frame, column]):.0e} standard "
                "deviations away from the data that the model was fitted to; check its unit."
            )


def at_least_one(name: str, value: int) -> int:
    """Raise ConfigError unless value is an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ConfigError(f"{name} must be an integer of at least 1, not {value!r}")
    return int(value)


def bucket(n: int) -> int:
    """The smallest of 1, 2, 3, 4, 6, 8, 12, 16, 24, ... that is at least n: few shapes, little padding."""
    power = 1 << (n - 1).bit_length()
    return power // 4 * 3 if power >= 4 and n <= power // 4 * 3 else power


def padded(data: Recordings, cost: Callable[[int], int]) -> Iterator[Padded]:
    """Batches of recordings alike in length; cost(L) = numbers that one recording of L frames needs."""
    lengths = np.array([bucket(len(y)) for y in data.sequences])
    for L in np.unique(lengths):
        rows = np.flatnonzero(lengths == L)
        size = min(bucket(len(rows)), max(1, NUMBERS_OF_A_BATCH // cost(int(L))))
        for first in range(0, len(rows), size):
            yield _pad(data, rows[first : first + size], size, int(L))


def _pad(data, rows, size, L):
    y = np.zeros((size, L, *data.sequences[0].shape[1:]), np.float32)
    T = np.array([len(data.sequences[row]) for row in np.resize(rows, size)])
    for out, row in zip(y, np.resize(rows, size), strict=True):
        out[: len(data.sequences[row])] = data.sequences[row][:]
    beside = of_windows(data.beside, np.resize(rows, size), np.zeros(size, int), T, L)
    return Padded(rows, y, np.arange(L)[None] < T[:, None], beside)


def by_recording(
    program: Callable,
    model: SVAE,
    data: Recordings,
    numbers: Callable,
    key: PRNGKeyArray,
    more: tuple[np.ndarray, ...] = (),
) -> list:
    """program(model, y, mask, keys, beside, *more) over batches; its result, row by row, in recordings' order.

    A recording's key depends on its place only, not on the batch. `more` are arrays with a row for each recording.
    """
    found = [None] * len(data.sequences)
    for rows, y, mask, beside in padded(data, numbers):
        keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.asarray(np.resize(rows, len(y))))
        y = jnp.asarray(y, jnp.result_type(float))
        own = (jnp.asarray(a[np.resize(rows, len(y))], jnp.result_type(float)) for a in more)
        result = jax.tree.map(np.asarray, program(model, y, jnp.asarray(mask), keys, beside, *own))
        for i, row in enumerate(rows):
            found[row] = jax.tree.map(lambda a, i=i: a[i], result)
            require_finite(data.names[row], found[row])
    return found


def require_finite(name: str, result: Any) -> None:
    """No answer is better than one with a silent NaN."""
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(result)):
        raise DataError(f"{name} leads to a result that is not finite; check its units, or fit the model for longer.")


def posterior(model: SVAE, y: Any, mask: Any, beside: Beside) -> Any:
    """q*(x, z) of one sequence in model units."""
    return model.posterior(expfam.moments(model.q), y, mask, None, beside)


def states_of(model: SVAE) -> int:
    """K of the block that is shown, 1 for a model without discrete states."""
    return model.pgm.states


def frame_cost(model: SVAE) -> int:
    """Numbers that inference holds for one frame, about."""
    D, width = model.config.latent_dim, max(model.config.hidden, default=1)
    return 2 * int(np.prod(model.shape)) + 2 * width + 4 * states_of(model) * D * (D + 1)
