"""What can be wrong with data, said in one sentence, and the standardisation that makes the rest well scaled."""

import functools
from typing import NamedTuple

import numpy as np

from .moments import Moments, block_moments, merged, moments
from .recordings import DataError, Recordings
from .views import Mapped, blocks

FLOAT32_STEP = 6e-8  # relative rounding of float32
LARGEST_VALUE = 1e30  # a value whose scale float32 holds with room to spare; so is its inverse


class _Seen(NamedTuple):
    """What one pass over a recording finds."""

    moments: Moments
    least: float
    greatest: float


def check(data: Recordings) -> list[str]:
    """Raise DataError for data that no model can use; return warnings, one sentence each, for odd data.

    Args:
        data: Recordings.

    Returns:
        Warnings, one sentence each.
    """
    seen = _examine(data)
    least = min(s.least for s in seen)
    if least == max(s.greatest for s in seen):
        raise DataError(f"Every value of {data.names[0]} and the rest is {least:g}; check their source.")
    return _warnings(functools.reduce(merged, (s.moments for s in seen)))


def check_form(data: Recordings) -> None:
    """Raise DataError for data that even a fitted model cannot be asked about; constant data it can.

    Args:
        data: Recordings.
    """
    _examine(data)


def check_shapes(data: Recordings) -> None:
    """Raise DataError for recordings that no values could save: no numbers, no frames, or frames that differ.

    Args:
        data: Recordings.
    """
    if not data.sequences:
        raise DataError("There are no recordings; give at least one array of shape (frames, ...).")
    for name, y in zip(data.names, data.sequences, strict=True):
        _check_form(name, y)
    _check_alike(data)


def check_range(data: Recordings, least: float, greatest: float, who: str) -> None:
    """Raise DataError at the first value outside of [least, greatest], which is what `who` asks for.

    Args:
        data: Recordings.
        least: The least value that is allowed.
        greatest: The greatest one.
        who: The likelihood that asks for it, for the message.
    """
    wanted = f"values from {least:g} to {greatest:g}" if np.isfinite(greatest) else f"values of {least:g} or more"
    for name, y in zip(data.names, data.sequences, strict=True):
        for first, frames in blocks(y):
            flat = frames.reshape(len(frames), -1)
            outside = np.argwhere((flat < least) | (flat > greatest))  # neither is so of NaN
            if len(outside):
                frame, column = outside[0]
                where = f"{name} is {flat[frame, column]:g} in column {column} at frame {first + frame}"
                raise DataError(f"{where}; {who} needs {wanted}.")


def _examine(data):
    if not data.sequences:
        raise DataError("There are no recordings; give at least one array of shape (frames, ...).")
    seen = []
    for name, y in zip(data.names, data.sequences, strict=True):
        _check_form(name, y)
        seen.append(_examine_values(name, y))
    _check_alike(data)
    return seen


def _check_form(name, y):
    if y.dtype.kind not in "biuf":
        raise DataError(
            f"{name} holds {y.dtype} values, not numbers; convert it to a float array, with NaN where missing."
        )
    if y.ndim < 2:
        raise DataError(f"{name} has shape {y.shape}; give (frames, columns...), for one column y[:, None].")
    if len(y) == 0:
        raise DataError(f"{name} has 0 frames; leave it out.")
    if y.size == 0:
        raise DataError(f"{name} has shape {y.shape}, that is no columns; give at least one.")


def _examine_values(name, y) -> _Seen:
    """Raise at the first infinity; then for a recording without any value, or of a scale beyond float32."""
    found, least, greatest = None, np.inf, -np.inf
    for first, frames in blocks(y):
        _check_finite(name, first, frames)
        least = float(np.fmin(least, np.fmin.reduce(frames, axis=None)))
        greatest = float(np.fmax(greatest, np.fmax.reduce(frames, axis=None)))
        if max(-least, greatest) > LARGEST_VALUE:
            raise _beyond_float32(name, max(-least, greatest))
        here = block_moments(frames)
        found = here if found is None else merged(found, here)
    if not found.count.any():
        raise DataError(f"{name} has no finite value in any of its {len(y)} frames; leave it out.")
    largest = max(abs(least), abs(greatest))
    if 0 < largest < 1 / LARGEST_VALUE:
        raise _beyond_float32(name, largest)
    return _Seen(found, least, greatest)


def _beyond_float32(name, largest):
    return DataError(f"{name} holds values of up to {largest:.1e}, which float32 cannot square; change its unit.")


def _check_finite(name, first, frames):
    flat = frames.reshape(len(frames), -1)
    if np.isinf(flat).any():
        frame, column = np.argwhere(np.isinf(flat))[0]
        raise DataError(
            f"{name} is infinite in column {column} at frame {first + frame}; replace it by NaN (missing) or clip it."
        )


def _check_alike(data):
    shape = data.sequences[0].shape[1:]
    for name, y in zip(data.names, data.sequences, strict=True):
        if y.shape[1:] != shape:
            raise DataError(
                f"{name} has frames of shape {y.shape[1:]} but {data.names[0]} of {shape}; "
                "give all recordings the same points or columns."
            )


def _warnings(found: Moments):
    mean, sd, unseen = found.mean, found.sd(), found.count == 0
    constant = sd == 0
    offset = ~constant & (np.abs(mean) * FLOAT32_STEP > 0.05 * sd)
    size = np.where(constant, 1.0, np.maximum(sd, np.abs(mean)))
    return [
        *_say(unseen, "never observed; drop it"),
        *_say(constant & ~unseen, "constant; it carries no information, drop it if that is a surprise"),
        *_say(offset, "so far from 0 for its spread that float32 would lose it; standardise in float64 first"),
        *_say((size > 1e6) | (size < 1e-6), "of extreme scale; standardise it or change its unit"),
    ]


def _say(columns, what):
    """One sentence for all columns concerned, or none."""
    found = np.flatnonzero(columns)
    if len(found) == 0:
        return []
    named = ", ".join(map(str, found[:5])) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
    return [f"Column {named} is {what}." if len(found) == 1 else f"Each of columns {named} is {what}."]


class Standardize(NamedTuple):
    """z = (y - mean - rest) / scale, each of shape (*event,) or () for all entries.

    In a model they are float32, and `rest` holds the digits of the mean that float32 drops: an offset of 1e8 has some.
    """

    mean: np.ndarray
    scale: np.ndarray
    rest: np.ndarray = np.zeros(())

    def apply(self, y: np.ndarray) -> np.ndarray:
        """(..., *event) of any number type to float32 of unit scale, by way of float64; NaN stays NaN."""
        mean, scale, rest = (np.asarray(a, np.float64) for a in self)
        return ((np.asarray(y, np.float64) - (mean + rest)) / scale).astype(np.float32)

    def invert(self, z: np.ndarray) -> np.ndarray:
        """Back to the units of the data, in float64."""
        mean, scale, rest = (np.asarray(a, np.float64) for a in self)
        return np.asarray(z, np.float64) * scale + (mean + rest)

    def in_float32(self, shape: tuple[int, ...]) -> "Standardize":
        """The same map for a model that holds float32 arrays of the frame's shape."""
        mean, scale, rest = (np.broadcast_to(np.asarray(a, np.float64), shape) for a in self)
        high = (mean + rest).astype(np.float32)
        return Standardize(high, scale.astype(np.float32), (mean + rest - high).astype(np.float32))


def standardize_entries(data: Recordings) -> Standardize:
    """A mean and a scale for every entry of a frame: for columns of different units. Constant entries get scale 1.

    Args:
        data: Recordings.

    Returns:
        `Standardize`.
    """
    return entry_units(moments(data), data.sequences[0].shape[1:])


def standardize_globally(data: Recordings) -> Standardize:
    """One mean and one scale for all entries: for images, whose pixels share a unit.

    Args:
        data: Recordings.

    Returns:
        `Standardize`.
    """
    return global_units(moments(data))


def entry_units(found: Moments, event: tuple[int, ...]) -> Standardize:
    """A mean and a scale for every entry of a frame, from moments. Constant entries get scale 1.

    Args:
        found: Moments of the recordings.
        event: The shape of a frame.

    Returns:
        `Standardize`, a mean and a scale for every entry.
    """
    sd = found.sd()
    return Standardize(found.mean.reshape(event), np.where(sd > 0, sd, 1.0).reshape(event))


def global_units(found: Moments) -> Standardize:
    """One mean and one scale for all entries, from moments.

    Args:
        found: Moments of the recordings.

    Returns:
        `Standardize`, one mean and one scale.
    """
    pooled = found.pooled()
    sd = pooled.sd()[0]
    return Standardize(np.asarray(pooled.mean[0]), np.where(sd > 0, sd, 1.0))


def standardized(data: Recordings, by: Standardize) -> Recordings:
    """All recordings in float32 and unit scale; views stay views.

    Args:
        data: Recordings.
        by: Means and scales.

    Returns:
        `Recordings`.
    """
    return data._replace(sequences=tuple(_standardized(y, by) for y in data.sequences))


def _standardized(y, by):
    return by.apply(y) if isinstance(y, np.ndarray) else Mapped(y, by.apply, y.shape[1:])
