"""HDF5: datasets read by windows, with known layouts of pose trackers and MoSeq first, and any dataset otherwise."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..recordings import DataError
from ..views import Floats, reading
from .choose import Candidate, choose
from .optional import need
from .pieces import Clock, Contents, Piece, numbers_in, require_size, time_base

MOST_OBJECTS = 100_000
COMPRESSION = 2000  # a dataset that claims to be packed better than this, and is large, is a trap
ALWAYS_FINE = 2**26  # bytes


class Hdf5Array(NamedTuple):
    """A dataset, or recording `index` of it, opened anew for each reading; `transposed` as MATLAB writes them."""

    path: Path
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    block: int = 1
    index: tuple[int, ...] = ()
    transposed: bool = False

    def __getitem__(self, frames: Any) -> Any:
        return reading(self.path.name, lambda: self._read(frames))

    def _read(self, frames):
        import h5py

        with h5py.File(self.path, "r", locking=False) as file:
            if frames == ():
                return file[self.name][()]
            order = -1 if self.transposed else 1
            rest = (slice(None),) * (len(self.shape) - 1)
            found = file[self.name][(*self.index, frames, *rest)[::order]]
        return found.T if self.transposed else found

    def part(self, number: int) -> "Hdf5Array":
        return self._replace(index=(*self.index, number), shape=self.shape[1:])


def read_hdf5(path: Path, dataset: str | None) -> Contents:
    """Recordings of an HDF5 file of any layout; `dataset` is a path within it."""
    from . import deeplabcut, nwb, poses

    h5py = need("h5py", f"{path.name} is HDF5, which")
    with h5py.File(path, "r", locking=False) as file:
        if dataset is None:
            known = (_moseq, deeplabcut.pandas_table, poses.sleap_analysis, poses.sleap_project, poses.jabs, nwb.pose)
            for reader in known:
                if (found := reader(file, path)) is not None:
                    return found
        return choose(candidates(file, path), dataset, path.name)


def read_matlab73(path: Path, dataset: str | None) -> Contents:
    """Variables of a MATLAB 7.3 file, whose axes HDF5 sees in reverse."""
    h5py = need("h5py", f"{path.name} is MATLAB 7.3, which")
    with h5py.File(path, "r", locking=False) as file:
        found = [c for c in candidates(file, path, transposed=True) if not c.name.startswith("#")]
    return choose(found, dataset, path.name)


def candidates(file: Any, path: Path, *, transposed: bool = False) -> list[Candidate]:
    """Every dataset of plain numbers that lies in the file itself: no links to other files are followed."""
    import h5py

    found = []

    def visit(name, item):
        if len(found) > MOST_OBJECTS:
            raise DataError(f"{path.name} holds more than {MOST_OBJECTS} datasets; say which with --dataset NAME.")
        if isinstance(item, h5py.Dataset) and plain(item):
            found.append(_candidate(name, item, path, transposed))

    file.visititems(visit)
    return found


def plain(item: Any) -> bool:
    """Whether a dataset is numbers kept in the file itself."""
    inside = item.shape is not None and item.external is None and not item.is_virtual
    return inside and item.dtype.kind in "biuf" and item.dtype.names is None and item.dtype.subdtype is None


def _candidate(name, item, path, transposed):
    require_plausible(item, path)
    if transposed and item.ndim == 2 and 1 in item.shape:  # MATLAB has no vectors, only matrices of one row or column
        return Candidate(name, (max(item.shape),), item.dtype, lambda: _vector(path, name))
    item_type = item.dtype
    shape = tuple(item.shape[::-1] if transposed else item.shape)
    block = min(int(item.chunks[0]), 4096) if item.chunks and not transposed else 1
    return Candidate(name, shape, item.dtype, lambda: Hdf5Array(path, name, shape, item_type, block, (), transposed))


def _vector(path, name):
    return Hdf5Array(path, name, (1,), np.dtype(float))[()].reshape(-1)


def require_plausible(item: Any, path: Path) -> None:
    """Raise for a dataset that declares far more than the file stores for it."""
    what = f"{item.name.strip('/')} of {path.name}"
    stored = min(item.id.get_storage_size(), os.path.getsize(path))
    require_size(what, item.shape, item.dtype.itemsize, max(ALWAYS_FINE, COMPRESSION * stored))


def whole(file: Any, name: str, path: Path) -> Any:
    """All of a dataset, after its size was compared with what is stored."""
    item = file[name]
    if not plain(item) and item.dtype.kind not in "SO" and item.dtype.names is None:
        raise DataError(f"{name} of {path.name} is not kept in the file itself; copy it into one file.")
    require_plausible(item, path)
    return item[()]


def has(file: Any, name: str) -> bool:
    """Whether a dataset lies in the file itself; links out of it do not count."""
    import h5py

    return name in file and not isinstance(file.get(name, getlink=True), h5py.ExternalLink)


def _moseq(file, path):
    """MoSeq: aligned depth frames in mm, with timestamps in ms."""
    if not (has(file, "frames") and "metadata/extraction" in file and plain(file["frames"])):
        return None
    frames = file["frames"]
    if frames.ndim != 3:
        return None
    require_plausible(frames, path)
    block = int(frames.chunks[0]) if frames.chunks else 1
    y = Floats(Hdf5Array(path, "frames", frames.shape, frames.dtype, block), kind="depth", unit="mm", block=block)
    fps, clock = _number(file, "metadata/extraction/parameters/fps", path), Clock()
    if has(file, "timestamps") and file["timestamps"].shape == (len(frames),):
        stamps = whole(file, "timestamps", path).astype(float) / 1000
        clock = time_base(stamps - stamps[0])
    return Contents([Piece("", y, clock.times)], fps or clock.fps, clock.notes)


def _number(file, name, path):
    if not has(file, name) or numbers_in(file[name].shape or ()) != 1:
        return None
    value = float(np.asarray(whole(file, name, path)).reshape(-1)[0])
    return value if np.isfinite(value) and value > 0 else None
