"""Arrays to netCDF-3 with 64-bit offsets; xarray opens them, and so does `svae.load`."""

from pathlib import Path
from typing import Any, NamedTuple


class Variable(NamedTuple):
    """dimensions: one name per axis."""

    dimensions: tuple[str, ...]
    values: Any
    units: str
    words: str


def frames(values: Any, before: tuple[str, ...], words: str) -> Variable:
    """A variable (*before, *event) in the unit of the data; the axes of a frame are event_0, event_1, ..."""
    event = tuple(f"event_{i}" for i in range(values.ndim - len(before)))
    return Variable((*before, *event), values, "unit of the data", words)


def clock(values: Any, rate: float | None) -> Variable:
    """When each frame was taken; frame numbers where no rate is known."""
    return Variable(("time",), values, "s" if rate else "frame", "time of the frame" if rate else "number of the frame")


def write(file: Path, recording: str, variables: dict[str, Variable]) -> None:
    """Replace one file whole."""
    from svae._sealed import replace_by

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_by(file, lambda temporary: _write(temporary, recording, variables))
    except OSError as error:
        from svae.runs import RunError

        raise RunError(f"{file} could not be written: {error.strerror or error}") from None


def _write(file, recording, variables):
    from scipy.io import netcdf_file

    sizes = {d: n for v in variables.values() for d, n in zip(v.dimensions, v.values.shape, strict=True)}
    with netcdf_file(str(file), "w", version=2) as target:
        target.recording, target.source = recording.encode(), b"svae"
        for dimension, size in sizes.items():
            target.createDimension(dimension, size)
        for name, (dimensions, values, units, words) in variables.items():
            made = target.createVariable(name, "i4" if values.dtype.kind == "i" else values.dtype.str[1:], dimensions)
            made[:] = values
            made.units, made.long_name = units.encode(), words.encode()
