"""posterior/<recording>.nc (netCDF-3, 64-bit offsets; xarray opens it) and bouts.csv."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from svae._sealed import replace_by, write_atomically
from svae.runs._folder import BOUTS, POSTERIOR, RunError, read_text, writing


class Posterior(NamedTuple):
    """What a model says of one recording of T frames."""

    time: np.ndarray  # (T,) seconds; the frame number where no clock is known
    state: np.ndarray  # (T,) int, the most probable path
    probability: np.ndarray  # (T, K)
    mean: np.ndarray  # (T, D) of the latent
    sd: np.ndarray  # (T, D)
    error: np.ndarray  # (T,) root mean square over a frame's observed entries; NaN where it has none


class Bout(NamedTuple):
    """Frames in a row in one state."""

    recording: str
    state: int
    start: float
    stop: float
    probability: float  # of the state, mean over the bout
    unit: str = "s"  # of start and stop: "frames" where no frame rate is known


SECONDS = ("recording", "state", "start_s", "stop_s", "probability")  # the head of bouts.csv
FRAMES = ("recording", "state", "start_frame", "stop_frame", "probability")  # and without a frame rate


VARIABLES = {  # field of Posterior -> name in the file, dimensions, type, units, words
    "time": ("time", ("time",), "f8", "s", "time of the frame"),
    "state": ("state", ("time",), "i4", "1", "most probable state"),
    "probability": ("state_probability", ("time", "state_index"), "f4", "1", "posterior probability of each state"),
    "mean": ("latent_mean", ("time", "latent"), "f4", "1", "posterior mean of the latent"),
    "sd": ("latent_sd", ("time", "latent"), "f4", "1", "posterior standard deviation of the latent"),
    "error": ("reconstruction_error", ("time",), "f4", "unit of the data", "root mean square error of the frame"),
}


def write_posterior(file: Path, name: str, found: Posterior, *, clock: bool) -> None:
    """Replace one netCDF file whole; without a `clock` times are frame numbers."""
    with writing(file.parent):
        replace_by(file, lambda temporary: _write(temporary, name, found, clock))


def _write(file, name, found, clock):
    from scipy.io import netcdf_file

    sizes = {"time": len(found.time), "state_index": found.probability.shape[1], "latent": found.mean.shape[1]}
    with netcdf_file(str(file), "w", version=2) as target:
        target.recording, target.source = name.encode(), b"svae"
        for dimension, size in sizes.items():
            target.createDimension(dimension, size)
        for field, (variable, dimensions, kind, units, words) in VARIABLES.items():
            counted = field == "time" and not clock
            values = target.createVariable(variable, kind, dimensions)
            values[:] = getattr(found, field)
            values.units = ("frame" if counted else units).encode()
            values.long_name = ("number of the frame" if counted else words).encode()


def read_posterior(file: Path) -> Posterior:
    """What `write_posterior` wrote."""
    return Posterior(*_variables(file, [variable for variable, *_ in VARIABLES.values()]))


def read_states(file: Path) -> np.ndarray:
    """The most probable path (T,) alone."""
    return _variables(file, ["state"])[0]


def _variables(file, names) -> list[np.ndarray]:
    """Copies of some variables; of a long file only these are read."""
    from scipy.io import netcdf_file

    try:
        with netcdf_file(str(file), "r", mmap=True) as source:
            return [_native(source.variables[name].data) for name in names]
    except OSError as error:
        raise RunError(f"{file} could not be read: {error.strerror or error}") from None
    except (TypeError, ValueError, KeyError, IndexError, EOFError, AssertionError) as error:
        raise RunError(f"{file} is damaged ({type(error).__name__}); write it again with `svae apply`") from None


def _native(values: np.ndarray) -> np.ndarray:
    return values.astype(values.dtype.newbyteorder("="))


# --- bouts --------------------------------------------------------------------------------------------------------


def bouts(name: str, found: Posterior, *, clock: bool = True) -> Iterator[Bout]:
    """Maximal stretches of one state, in order; each stops where the next begins. Without a `clock` in frames."""
    first = np.flatnonzero(np.r_[True, found.state[1:] != found.state[:-1]])
    last = np.r_[first[1:], len(found.state)]
    unit = "s" if clock else "frames"
    edges = np.r_[found.time, found.time[-1] + _frame_time(found.time)]
    for a, b in zip(first, last, strict=True):
        k = int(found.state[a])
        yield Bout(name, k, float(edges[a]), float(edges[b]), float(found.probability[a:b, k].mean()), unit)


def _frame_time(time: np.ndarray) -> float:
    return float(np.median(np.diff(time))) if len(time) > 1 else 1.0


def write_bouts(folder: Path, found: list[Bout]) -> None:
    """Replace bouts.csv whole."""
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(head_of(found))
    rows.writerows((b.recording, b.state, *edges_of(b), f"{b.probability:.4f}") for b in found)
    with writing(folder):
        write_atomically(folder / BOUTS, text.getvalue().encode())


def head_of(found: list[Bout]) -> tuple[str, ...]:
    """The names of the columns: frames where any bout is counted in them."""
    return FRAMES if any(b.unit == "frames" for b in found) else SECONDS


def edges_of(bout: Bout) -> tuple[str, str]:
    """Where it starts and stops, as bouts.csv has it."""
    digits = 0 if bout.unit == "frames" else 6
    return f"{bout.start:.{digits}f}", f"{bout.stop:.{digits}f}"


def read_bouts(folder: Path) -> list[Bout]:
    """What `write_bouts` wrote; in runs of format 1 the posterior files say whether its seconds are frames."""
    rows = list(csv.reader(io.StringIO(read_text(folder / BOUTS), newline="")))
    try:
        if tuple(rows[0]) not in (SECONDS, FRAMES):
            raise ValueError
        unit = "frames" if tuple(rows[0]) == FRAMES or _without_clock(folder) else "s"
        return [Bout(r, int(k), float(a), float(b), float(p), unit) for r, k, a, b, p in rows[1:]]
    except (ValueError, IndexError):
        raise RunError(f"{folder / BOUTS} is damaged; write it again with `svae apply`") from None


def _without_clock(folder: Path) -> bool:
    """Whether the first posterior file beside the bouts counts frames."""
    from scipy.io import netcdf_file

    file = next(iter(sorted((folder / POSTERIOR).glob("*.nc"))), None)
    try:
        with netcdf_file(str(file), "r", mmap=False) as source:
            return source.variables["time"].units == b"frame"
    except (OSError, TypeError, ValueError, KeyError, IndexError, AttributeError, AssertionError, EOFError):
        return False  # there is none, or what is wrong with it is said when it is read
