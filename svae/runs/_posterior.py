"""posterior/<recording>.nc (netCDF-3, 64-bit offsets; xarray opens it) and bouts.csv.

With several discrete blocks `state` and `state_probability` are those of the block that is shown, every other block has
its own with its name at the end, and the attribute `blocks` names all of them, the shown one first.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from svae._sealed import replace_by, write_atomically
from svae.runs._folder import BOUTS, POSTERIOR, RunError, read_text, writing


class States(NamedTuple):
    """What a model says of one discrete block."""

    state: np.ndarray  # (T,) int, the most probable path
    probability: np.ndarray  # (T, K)


class Posterior(NamedTuple):
    """What a model says of one recording of T frames; of several discrete blocks the one that is shown."""

    time: np.ndarray  # (T,) seconds; the frame number where no clock is known
    state: np.ndarray  # (T,) int, the most probable path
    probability: np.ndarray  # (T, K)
    mean: np.ndarray  # (T, D) of the latent
    sd: np.ndarray  # (T, D)
    error: np.ndarray  # (T,) root mean square over a frame's observed entries; NaN where it has none
    blocks: Mapping[str, States] = MappingProxyType({})  # all discrete blocks, where there are several

    def of(self, block: str) -> "Posterior":
        """The same with the states of another block."""
        return self._replace(state=self.blocks[block].state, probability=self.blocks[block].probability)


class Bout(NamedTuple):
    """Frames in a row in one state."""

    recording: str
    state: int
    start: float
    stop: float
    probability: float  # of the state, mean over the bout
    unit: str = "s"  # of start and stop: "frames" where no frame rate is known
    block: str = ""  # whose state it is, where there are several discrete blocks


HEAD_IN_SECONDS = ("recording", "state", "start_s", "stop_s", "probability")  # the head of bouts.csv
HEAD_IN_FRAMES = ("recording", "state", "start_frame", "stop_frame", "probability")  # and without a frame rate
BLOCK = ("block",)  # one more column, where there are several


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
        if found.blocks:
            _write_blocks(target, found.blocks)


def _write_blocks(target, blocks: Mapping[str, States]) -> None:
    """The states of all blocks but the first, which the file has already, and the names of all."""
    shown, *others = blocks
    target.blocks = " ".join(blocks).encode()
    for name in others:
        target.createDimension(f"state_index_{name}", blocks[name].probability.shape[1])
        for field in States._fields:
            variable, dimensions, kind, units, words = VARIABLES[field]
            axes = tuple(f"{axis}_{name}" if axis == "state_index" else axis for axis in dimensions)
            values = target.createVariable(f"{variable}_{name}", kind, axes)
            values[:] = getattr(blocks[name], field)
            values.units, values.long_name = units.encode(), f"{words} of {name}".encode()
    for field in States._fields:
        variable, _, _, _, words = VARIABLES[field]
        target.variables[variable].long_name = f"{words} of {shown}".encode()


def read_posterior(file: Path) -> Posterior:
    """What `write_posterior` wrote."""
    names = list(read_blocks(file))
    values = _variables(file, [variable for variable, *_ in VARIABLES.values()])
    return Posterior(*values)._replace(blocks={name: read_states_of(file, name) for name in names})


def read_states_of(file: Path, block: str) -> States:
    """What a file says of one of several blocks."""
    end = _ending(file, block)
    return States(*_variables(file, [f"{VARIABLES[field][0]}{end}" for field in States._fields]))


def read_states(file: Path, block: str | None = None) -> np.ndarray:
    """The most probable path (T,) alone, of the block that is shown unless another one is named."""
    return _variables(file, [f"state{_ending(file, block)}"])[0]


def _ending(file: Path, block: str | None) -> str:
    """What the names of variables end with, for a block."""
    return "" if block is None or block == next(iter(read_blocks(file)), block) else f"_{block}"


def blocks_of(folder: Path) -> dict[str, int]:
    """The number of states of each discrete block by name, the shown one first; nothing where there are not several.

    Answers that are older know only the block that is shown.
    """
    file = next(iter(sorted((folder / POSTERIOR).glob("*.nc"))), None)
    return {} if file is None else read_blocks(file)


def states_before(blocks: Mapping[str, int], block: str | None) -> int:
    """How many states the blocks before this one have: colours go on where those of the block before end."""
    names = list(blocks)
    return sum(blocks[name] for name in names[: names.index(block)]) if block in names else 0


def read_blocks(file: Path) -> dict[str, int]:
    """The same of one file."""
    return _reading(file, _blocks)


def _blocks(source) -> dict[str, int]:
    names = getattr(source, "blocks", b"").decode().split()
    return {k: source.dimensions[f"state_index_{k}" if i else "state_index"] for i, k in enumerate(names)}


def _variables(file, names) -> list[np.ndarray]:
    """Copies of some variables; of a long file only these are read."""
    return _reading(file, lambda source: [_native(source.variables[name].data) for name in names])


def _reading(file, what):
    """what(the open file); RunError where it cannot be read."""
    from scipy.io import netcdf_file

    try:
        with netcdf_file(str(file), "r", mmap=True) as source:
            return what(source)
    except OSError as error:
        raise RunError(f"{file} could not be read: {error.strerror or error}") from None
    except (TypeError, ValueError, KeyError, IndexError, EOFError, AssertionError) as error:
        raise RunError(f"{file} is damaged ({type(error).__name__}); write it again with `svae apply`") from None


def _native(values: np.ndarray) -> np.ndarray:
    return values.astype(values.dtype.newbyteorder("="))


# --- bouts --------------------------------------------------------------------------------------------------------


def bouts(name: str, found: Posterior, *, clock: bool = True) -> Iterator[Bout]:
    """Maximal stretches of one state, in order; each stops where the next begins. Without a `clock` in frames.

    Of several discrete blocks those of one come after those of the other.
    """
    for block in found.blocks or ("",):
        yield from _bouts(name, found.of(block) if block else found, clock, block)


def _bouts(name: str, found: Posterior, clock: bool, block: str) -> Iterator[Bout]:
    first = np.flatnonzero(np.r_[True, found.state[1:] != found.state[:-1]])
    last = np.r_[first[1:], len(found.state)]
    unit = "s" if clock else "frames"
    edges = np.r_[found.time, found.time[-1] + _frame_time(found.time)]
    for a, b in zip(first, last, strict=True):
        k = int(found.state[a])
        yield Bout(name, k, float(edges[a]), float(edges[b]), float(found.probability[a:b, k].mean()), unit, block)


def _frame_time(time: np.ndarray) -> float:
    return float(np.median(np.diff(time))) if len(time) > 1 else 1.0


def write_bouts(folder: Path, found: list[Bout]) -> None:
    """Replace bouts.csv whole."""
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(head_of(found))
    rows.writerows((b.recording, b.state, *edges_of(b), f"{b.probability:.4f}", *block_of(b)) for b in found)
    with writing(folder):
        write_atomically(folder / BOUTS, text.getvalue().encode())


def head_of(found: list[Bout]) -> tuple[str, ...]:
    """The names of the columns: frames where any bout is counted in them."""
    head = HEAD_IN_FRAMES if any(b.unit == "frames" for b in found) else HEAD_IN_SECONDS
    return head + BLOCK if any(b.block for b in found) else head


def block_of(bout: Bout) -> tuple[str, ...]:
    """The last column, where there are several blocks."""
    return (bout.block,) if bout.block else ()


def edges_of(bout: Bout) -> tuple[str, str]:
    """Where it starts and stops, as bouts.csv has it."""
    digits = 0 if bout.unit == "frames" else 6
    return f"{bout.start:.{digits}f}", f"{bout.stop:.{digits}f}"


def read_bouts(folder: Path, block: str | None = None) -> list[Bout]:
    """What `write_bouts` wrote, of several blocks the one that is named, or the first.

    In runs of format 1 the posterior files say whether its seconds are frames.
    """
    found = read_all_bouts(folder)
    block = found[0].block if found and block is None else block
    return [bout for bout in found if bout.block == (block or "")]


def read_all_bouts(folder: Path) -> list[Bout]:
    """The same of all blocks."""
    rows = list(csv.reader(io.StringIO(read_text(folder / BOUTS), newline="")))
    try:
        head = tuple(rows[0])
        if head not in (HEAD_IN_SECONDS, HEAD_IN_FRAMES, HEAD_IN_SECONDS + BLOCK, HEAD_IN_FRAMES + BLOCK):
            raise ValueError
        unit = "frames" if head[:5] == HEAD_IN_FRAMES or _without_clock(folder) else "s"
        return [_bout(row, unit, len(head)) for row in rows[1:]]
    except (ValueError, IndexError):
        raise RunError(f"{folder / BOUTS} is damaged; write it again with `svae apply`") from None


def _bout(row: list[str], unit: str, columns: int) -> Bout:
    recording, state, start, stop, probability, *block = row
    if len(row) != columns:
        raise ValueError
    return Bout(recording, int(state), float(start), float(stop), float(probability), unit, *block)


def _without_clock(folder: Path) -> bool:
    """Whether the first posterior file beside the bouts counts frames."""
    from scipy.io import netcdf_file

    file = next(iter(sorted((folder / POSTERIOR).glob("*.nc"))), None)
    try:
        with netcdf_file(str(file), "r", mmap=False) as source:
            return source.variables["time"].units == b"frame"
    except (OSError, TypeError, ValueError, KeyError, IndexError, AttributeError, AssertionError, EOFError):
        return False  # there is none, or what is wrong with it is said when it is read
