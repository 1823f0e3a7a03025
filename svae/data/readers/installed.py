"""Readers of installed packages: a function for each extension, which gives what `load` takes in memory."""

from pathlib import Path
from typing import Any

from ..._entry_points import READERS, called, installed
from ..._latent_tables import ConfigError
from ..recordings import DataError

OURS = {"npy", "npz", "csv", "tsv", "txt", "gz", "parquet", "h5", "hdf5", "nwb", "mat", "nc", "mp4", "avi", "ts", "bvh"}


def reader_of(file: Path) -> str:
    """The name of the reader that a package has for files with this extension; "" where there is none.

    No package changes how files are read whose extension is ours.
    """
    extension = file.suffix.lower().removeprefix(".")
    return extension if extension and extension not in OURS and extension in installed(READERS) else ""


def read_installed(file: Path) -> Any:
    """What the reader of a package gives; DataError in one sentence where it is broken or cannot read the file."""
    try:
        return called(READERS, reader_of(file), file)
    except ConfigError as error:
        raise DataError(f"{file.name} could not be read: {error}.") from error
