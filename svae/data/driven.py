"""Inputs that recordings carry beside y: given by a person, matched with a model by name, and in its units."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .beside import Beside
from .carried import by_recording
from .checks import Standardize
from .readers.pieces import listed
from .recordings import DataError, Recordings


def with_inputs(data: Recordings, inputs: Any, *, names: Sequence[str] = ()) -> Recordings:
    """Recordings that are driven by what is known at every frame: a stimulus, a dose, the speed of a wheel.

    Args:
        data: Recordings, such as `load` returns.
        inputs: For each recording, in order or by name, an array (T, n), or (n,) for what does not change.
        names: What the n columns are called.

    Returns:
        The recordings with their inputs, in their own units.

    Raises:
        DataError: The inputs do not fit; the sentence says where.

    Examples:
        >>> import numpy as np
        >>> import svae
        >>> walk = svae.load({"walk": np.zeros((4, 2))})
        >>> found = svae.data.with_inputs(walk, {"walk": [0.5]}, names=["dose"])
        >>> found.called.inputs, found.beside[0].inputs.shape
        (('dose',), (4, 1))
    """
    every = by_recording(data, inputs, "inputs")
    if any(one is None for one in every):
        lost = [name for name, one in zip(data.names, every, strict=True) if one is None]
        raise DataError(f"There are no inputs of {listed(lost)}; every recording needs them at every frame.")
    found = [_inputs(name, len(y), one) for name, y, one in zip(data.names, data.sequences, every, strict=True)]
    n = found[0].shape[1]
    own = tuple(map(str, names)) or tuple(f"input {i}" for i in range(n))
    if any(one.shape[1] != len(own) for one in found) or len(set(own)) < len(own):
        raise DataError(
            f"The inputs have {n} columns and the names {listed(own)}; give every column a name of its own."
        )
    carried = data.beside or (Beside(),) * len(found)
    beside = tuple(one._replace(inputs=values) for one, values in zip(carried, found, strict=True))
    return data._replace(beside=beside, called=data.called._replace(inputs=own))


def _inputs(name, T, values):
    values = np.asarray(values, np.float64)
    values = np.repeat(values[None], T, 0) if values.ndim == 1 and (len(values) != T or T == 1) else values
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != T:
        raise DataError(f"{name} has {T} frames but inputs of shape {values.shape}; give (frames, columns).")
    if not np.isfinite(values).all():
        t, column = np.argwhere(~np.isfinite(values))[0]
        raise DataError(f"{name} has no input at frame {t} in column {column}; inputs are known at every frame.")
    return values


def with_known_inputs(data: Recordings, wanted: int) -> Recordings:
    """Recordings as a model takes them that wants so many inputs; DataError where it wants others.

    A model without inputs takes recordings without theirs: `said_of_inputs` tells so.
    """
    own, names = data.called.inputs, listed(data.called.inputs)
    if wanted == 0:
        return without_inputs(data)
    if len(own) != wanted:
        there = f"the data have {len(own)} ({names})" if own else "the data have none"
        raise DataError(f"The model takes {wanted} inputs at every frame and {there}; give them, with --inputs.")
    return data


def without_inputs(data: Recordings) -> Recordings:
    """Recordings that are driven by nothing."""
    beside = tuple(one._replace(inputs=None) for one in data.beside)
    return data._replace(beside=beside, called=data.called._replace(inputs=()))


def said_of_inputs(data: Recordings, wanted: int) -> list[str]:
    """Sentences on inputs that a model does not take, and on those that never change."""
    if data.called.inputs and not wanted:
        return [f"The latent model takes no inputs, so {listed(data.called.inputs)} is left aside."]
    if not wanted:
        return []
    every = np.concatenate([one.inputs for one in data.beside])
    constant = [name for name, still in zip(data.called.inputs, np.ptp(every, 0) == 0, strict=True) if still]
    return [f"The input {listed(constant)} never changes, so nothing can be learned of it."] if constant else []


def units_of_inputs(data: Recordings) -> Standardize:
    """Mean and spread of every input over the frames."""
    every = np.concatenate([one.inputs for one in data.beside])
    sd = every.std(0)
    return Standardize(every.mean(0), np.where(sd > 0, sd, 1.0)).in_float32((every.shape[1],))


def inputs_in(data: Recordings, by: Standardize | None) -> Recordings:
    """Recordings whose inputs are in the units of a model; None for a model without inputs."""
    if by is None:
        return data
    return data._replace(beside=tuple(one._replace(inputs=by.apply(one.inputs)) for one in data.beside))


def inputs_matched(data: Recordings, inputs: tuple[str, ...]) -> Recordings:
    """Inputs in the order of a model's own names of them."""
    own = data.called.inputs
    if not own or not inputs or own == inputs:
        return data
    if set(own) != set(inputs):
        raise DataError(f"The data have the inputs {listed(own)}, the model has {listed(inputs)}; name them alike.")
    order = [own.index(name) for name in inputs]
    beside = tuple(one._replace(inputs=one.inputs[:, order]) for one in data.beside)
    return data._replace(beside=beside, called=data.called._replace(inputs=inputs))
