"""`load`: recordings from a file of any known format, a folder, a pattern, or an object in memory."""

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .checks import check_shapes
from .files import files_of
from .one_set import alike, one_clock, sentences
from .readers import arrays, csvs, hdf5, matlab, objects, parquet, sniff, texts, video
from .readers.choose import as_frames
from .readers.installed import read_installed, reader_of
from .readers.pieces import Contents, Note, Piece
from .recordings import DataError, Recordings, safe_names
from .views import View, first_line

READERS = {
    "npy": arrays.read_npy,
    "npz": arrays.read_npz,
    "csv": csvs.read_csv,
    "parquet": parquet.read_parquet,
    "hdf5": hdf5.read_hdf5,
    "matlab73": hdf5.read_matlab73,
    "matlab": matlab.read_matlab,
    "netcdf": matlab.read_netcdf,
    "video": video.read_video,
    "gzip": texts.read_gzip,
    "idx": texts.read_idx,
    "ts": texts.read_ts,
    "bvh": texts.read_bvh,
}


def load(source: Any, *, fps: float | int | None = None, dataset: str | None = None) -> Recordings:
    """Recordings from a path, a folder, a pattern such as "day1/*.csv", or arrays, tables and dicts of them.

    The format is read off the content of a file. Large files are read by parts as they are needed.

    Args:
        source: A path, a folder, a pattern, or an object in memory.
        fps: Frames per second; it overrides the rate that a file gives.
        dataset: Which array of a container, or which columns of a table, to take.

    Returns:
        `Recordings`: sequences, names, frame rate and times.

    Raises:
        DataError: The file cannot be read or used; the sentence says why.

    Examples:
        >>> import numpy as np
        >>> import svae
        >>> found = svae.load({"monday": np.zeros((10, 3)), "tuesday": np.zeros((8, 3))}, fps=30)
        >>> found.names, found.frames
        (('monday', 'tuesday'), 18)
    """
    if fps is not None and not (math.isfinite(fps) and fps > 0):
        raise DataError(f"A frame rate of {fps} is impossible; give frames per second, such as 30.")
    if isinstance(source, str | os.PathLike):
        return _from_files(files_of(Path(os.path.expanduser(os.fspath(source)))), dataset, fps)
    return _from_object(source, dataset, fps)


# --- files --------------------------------------------------------------------------------------------------------


def _from_files(found, dataset, fps):
    contents = [read(file, dataset) for file in found.files]
    names = [_name(file, piece) for file, c in zip(found.files, contents, strict=True) for piece in c.pieces]
    return _put_together(contents, [file.name for file in found.files], names, fps, found.notes)


def _name(file, piece):
    return f"{stem_of(file)}-{piece.name}" if piece.name else stem_of(file)


def stem_of(file):
    stem = file.stem
    return stem.rpartition(".")[0] if stem.endswith((".csv", ".txt", ".npy")) else stem


def read(file: Path, dataset: str | None = None) -> Contents:
    """What one file holds. Parsers raise anything on a damaged file: whatever it is becomes one sentence."""
    if reader_of(file):
        return _as_contents(file, dataset)
    kind = sniff.kind_of(file)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return READERS[kind](file, dataset)
    except DataError:
        raise
    except MemoryError:
        raise DataError(f"{file.name} asks for more memory than there is; it may be damaged.") from None
    except Exception as error:
        raise DataError(f"{file.name} could not be read as {kind}: {first_line(error)}; it may be damaged.") from error


def _as_contents(file: Path, dataset: str | None) -> Contents:
    """The answer of a package's reader, as if it had been given in memory."""
    found = _from_object(read_installed(file), dataset, None)
    times = found.times or (None,) * len(found.names)
    names = found.names if len(found.names) > 1 else ("",)
    pieces = [Piece(name, y, t) for name, y, t in zip(names, found.sequences, times, strict=True)]
    return Contents(pieces, found.fps, [Note(note) for note in found.notes])


def _put_together(contents, files, names, fps, notes=()):
    """All recordings with frames alike and one clock."""
    if not names:
        raise DataError("There are no recordings; give at least one array of shape (frames, ...).")
    pieces = [piece for c in contents for piece in c.pieces]
    rates = [piece.fps or c.fps for c in contents for piece in c.pieces]
    names = safe_names(names)
    sequences, reordered = alike(pieces, names)
    rate, times, clock = one_clock(pieces, rates, names, None if fps is None else float(fps))
    said = sentences(contents, files, [*notes, *reordered, *clock])
    found = Recordings(tuple(sequences), names, rate, times, said)
    check_shapes(found)
    return found


# --- objects ------------------------------------------------------------------------------------------------------


def _from_object(source, dataset, fps):
    if isinstance(source, Recordings):
        found = source._replace(names=safe_names(source.names))
        return found if fps is None else found._replace(fps=float(fps), times=())
    if isinstance(source, Mapping) and objects.home(source) != "xarray":  # a Dataset is a mapping too
        read_all = [_held(value, dataset, str(name)) for name, value in source.items()]
        names = [_joined(str(name), p) for name, c in zip(source, read_all, strict=True) for p in c.pieces]
        return _put_together(read_all, list(map(str, source)), names, fps)
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        if source and not _is_row(source):
            return _from_object({f"recording {i}": value for i, value in enumerate(source)}, dataset, fps)
        return _from_object({"recording 0": np.asarray(source)}, dataset, fps)
    return _from_object({"recording 0": source}, dataset, fps)


def _is_row(source):
    return isinstance(source[0], Sequence) and not isinstance(source[0], str) and np.ndim(source[0][0]) == 0


def _joined(name, piece):
    return f"{name}-{piece.name}" if piece.name else name


def _held(value, dataset, name):
    if objects.home(value) == "pandas":
        return objects.from_pandas(value, dataset, name)
    if objects.home(value) == "xarray":
        found = objects.from_xarray(value, dataset, name)
        return found if len(found.pieces) > 1 else found._replace(pieces=[found.pieces[0]._replace(name="")])
    array = value if isinstance(value, View) else np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name} holds {array.dtype} values, not numbers; give a float array, NaN where missing.")
    if isinstance(array, View):
        return Contents([Piece("", array)])
    if array.ndim == 0:
        raise DataError(f"{name} is a single number; give an array of shape (frames, ...).")
    y, notes = as_frames(array)
    return Contents([Piece("", y)], None, notes)
