"""`load`: recordings from a file of any known format, a folder, a pattern, or an object in memory."""

import glob
import math
import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .checks import check_shapes
from .readers import arrays, csvs, hdf5, matlab, objects, parquet, sniff, texts, video
from .readers.choose import as_view
from .readers.pieces import Contents, Piece
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
BESIDE = {
    ".md",
    ".txt",
    ".json",
    ".toml",
    ".yaml",
    ".yml",
    ".log",
    ".pdf",
    ".png",
    ".jpg",
    ".svg",
    ".py",
    ".ini",
    ".html",
}


def load(source: Any, *, fps: float | int | None = None, dataset: str | None = None) -> Recordings:
    """Recordings from a path, a folder, a pattern such as "day1/*.csv", or arrays, tables and dicts of them.

    The format is told by the content of a file. `fps` overrides the frame rate that a file gives; `dataset` says which
    array of a container, or which columns of a table, to take. Large files are read by parts as they are needed.
    """
    if fps is not None and not (math.isfinite(fps) and fps > 0):
        raise DataError(f"A frame rate of {fps} is impossible; give frames per second, such as 30.")
    if isinstance(source, str | os.PathLike):
        found = _from_files(_files(Path(os.path.expanduser(os.fspath(source)))), dataset)
    else:
        found = _from_object(source, dataset)
    return found if fps is None else found._replace(fps=float(fps), times=())


# --- files --------------------------------------------------------------------------------------------------------


def _files(path: Path) -> list[Path]:
    """The file, those of the folder, or those that the pattern matches."""
    if _is(path, "is_dir"):
        return _of_folder(path)
    if _is(path, "exists"):
        return [path]
    matched = sorted(glob.glob(str(path))) if glob.has_magic(str(path)) and "\0" not in str(path) else []
    files = [Path(name) for name in matched if os.path.isfile(name)]
    if not files:
        raise DataError(f"There is no file {path}; check the path." if not glob.has_magic(str(path)) else
                        f"No file matches {path}; check the pattern.")  # fmt: skip
    return files


def _is(path, question):
    try:
        return getattr(path, question)()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _of_folder(folder):
    """Data files at the top of a folder, else below it; they must be of one format."""
    files = sorted(filter(_is_data, folder.iterdir())) or sorted(filter(_is_data, folder.rglob("*")))
    if not files:
        raise DataError(f"{folder} holds no data files.")
    kinds = Counter(sniff.kind_of(file) for file in files)
    if len(kinds) > 1:
        named = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
        raise DataError(
            f'{folder} holds files of several kinds ({named}); choose with a pattern such as "{folder}/*.csv".'
        )
    return files


def _is_data(file):
    return file.is_file() and not file.name.startswith(".") and file.suffix.lower() not in BESIDE


def _from_files(files, dataset):
    contents = [read(file, dataset) for file in files]
    names = [_name(file, piece) for file, c in zip(files, contents, strict=True) for piece in c.pieces]
    return _put_together(contents, names)


def _name(file, piece):
    return f"{_stem(file)}-{piece.name}" if piece.name else _stem(file)


def _stem(file):
    stem = file.stem
    return stem.rpartition(".")[0] if stem.endswith((".csv", ".txt", ".npy")) else stem


def read(file: Path, dataset: str | None = None) -> Contents:
    """What one file holds. Parsers raise anything on a damaged file: whatever it is becomes one sentence."""
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


def _put_together(contents, names):
    pieces = [piece for c in contents for piece in c.pieces]
    rates = {c.fps for c in contents}
    times = tuple(piece.times for piece in pieces)
    found = Recordings(
        tuple(piece.y for piece in pieces),
        safe_names(names),
        rates.pop() if len(rates) == 1 else None,
        times if any(t is not None for t in times) else (),
    )
    check_shapes(found)
    return found


# --- objects ------------------------------------------------------------------------------------------------------


def _from_object(source, dataset):
    if isinstance(source, Recordings):
        return source._replace(names=safe_names(source.names))
    if isinstance(source, Mapping) and objects.home(source) != "xarray":  # a Dataset is a mapping too
        read_all = [_held(value, dataset, str(name)) for name, value in source.items()]
        names = [_joined(str(name), p) for name, c in zip(source, read_all, strict=True) for p in c.pieces]
        return _put_together(read_all, names)
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        if source and not _is_row(source):
            return _from_object({f"recording {i}": value for i, value in enumerate(source)}, dataset)
        return _from_object({"recording 0": np.asarray(source)}, dataset)
    return _from_object({"recording 0": source}, dataset)


def _is_row(source):
    return isinstance(source[0], Sequence) and not isinstance(source[0], str) and np.ndim(source[0][0]) == 0


def _joined(name, piece):
    return f"{name}-{piece.name}" if piece.name else name


def _held(value, dataset, name):
    if objects.home(value) == "pandas":
        return objects.from_pandas(value, dataset, name)
    if objects.home(value) == "xarray":
        found = objects.from_xarray(value, dataset, name)
        return found if len(found.pieces) > 1 else Contents([found.pieces[0]._replace(name="")], found.fps)
    array = value if isinstance(value, View) else np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name} holds {array.dtype} values, not numbers; give a float array, NaN where missing.")
    if isinstance(array, View):
        return Contents([Piece("", array)])
    if array.ndim == 0:
        raise DataError(f"{name} is a single number; give an array of shape (frames, ...).")
    return Contents([Piece("", as_view(array))])
