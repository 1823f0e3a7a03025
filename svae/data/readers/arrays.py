"""npy and npz: read by seeking, so that pages of the file never count as memory of the process."""

import os
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..recordings import DataError
from ..views import reading
from .choose import Candidate, as_frames, choose
from .pieces import Contents, Piece, left_aside, numbers_in, require_in_memory, require_size

LONGEST_HEADER = 10_000  # characters; numpy's own limit
MOST_MEMBERS = 100_000
DEFLATE_RATIO = 1032  # the most that deflate can pack


class NpyArray(NamedTuple):
    """An array in C order at an offset of a file."""

    path: Path
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype

    def __getitem__(self, frames: Any) -> np.ndarray:
        if not isinstance(frames, slice):
            return self._read(0, numbers_in(self.shape)).reshape(self.shape)[frames]
        first, last, _ = frames.indices(self.shape[0])
        event = self.shape[1:]
        each = numbers_in(event)
        return self._read(first * each, max(0, last - first) * each).reshape(-1, *event)

    def _read(self, first, count):
        return reading(self.path.name, lambda: self._fromfile(first, count))

    def _fromfile(self, first, count):
        with open(self.path, "rb") as stream:
            stream.seek(self.offset + first * self.dtype.itemsize)
            found = np.fromfile(stream, self.dtype, count)
        if len(found) < count:
            raise OSError("it is shorter than its header says")
        return found

    def part(self, number: int) -> "NpyArray":
        step = numbers_in(self.shape[1:]) * self.dtype.itemsize
        return self._replace(offset=self.offset + number * step, shape=self.shape[1:])


class Header(NamedTuple):
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype


def read_header(stream: Any, what: str) -> Header:
    """What an npy stream declares; the stream is left where the numbers begin."""
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise DataError(f"{what} is npy of version {version}, which holds no plain numbers; save it as a float array.")
    header = Header(*readers[version](stream, max_header_size=LONGEST_HEADER))
    if header.dtype.hasobject:
        raise DataError(f"{what} holds Python objects, which svae never reads; save it as a numeric array.")
    if header.dtype.kind not in "biufSU":
        raise DataError(f"{what} holds {_type(header.dtype)}, not plain numbers; save it as a float array.")
    return header


def _type(dtype):
    return "a table of fields" if dtype.names else f"{dtype} values"


def read_npy(path: Path, dataset: str | None) -> Contents:
    """An array (T, *event) that is read by parts; in Fortran order it is read at once."""
    with open(path, "rb") as stream:
        header = read_header(stream, path.name)
        offset = stream.tell()
    require_size(path.name, header.shape, header.dtype.itemsize, os.path.getsize(path) - offset)
    if header.dtype.kind not in "biuf":
        raise DataError(f"{path.name} holds text, not numbers; save it as a float array.")
    if len(header.shape) == 0:
        raise DataError(f"{path.name} holds a single number; give an array of shape (frames, ...).")
    source = NpyArray(path, offset, header.shape, header.dtype)
    if header.fortran and len(header.shape) > 1:
        require_in_memory(path.name, numbers_in(header.shape) * header.dtype.itemsize)
        source = source[:].reshape(-1).reshape(header.shape, order="F")
    if len(header.shape) == 4 and header.shape[3] in (2, 3) and header.shape[0] < header.shape[1]:
        return choose([Candidate("", header.shape, header.dtype, lambda: source)], "", path.name)  # animals, not frames
    y, notes = as_frames(source)
    return Contents([Piece("", y)], None, notes)


def read_npz(path: Path, dataset: str | None) -> Contents:
    """The arrays of a numpy archive."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if len(members) > MOST_MEMBERS:
            raise DataError(f"{path.name} holds {len(members)} arrays, more than svae reads; split it.")
        inside = [m for m in members if m.filename.endswith(".npy")]
        if not inside:
            raise DataError(f"{path.name} is a zip archive without numpy arrays; unpack it and give the files.")
        candidates = [_member(path, archive, member) for member in inside]
    found = choose([c for c in candidates if c is not None], dataset, path.name)
    lost = [m.filename.removesuffix(".npy") for m, c in zip(inside, candidates, strict=True) if c is None]
    others = [m.filename for m in members if m not in inside]
    return found._replace(notes=[*found.notes, *left_aside("array without plain numbers", lost + others)])


def _member(path, archive, member):
    """One array of the archive; None when it holds no plain values."""
    what = f"{member.filename} of {path.name}"
    if member.compress_size > os.path.getsize(path) or member.file_size > DEFLATE_RATIO * member.compress_size + 1024:
        raise DataError(f"{what} declares {member.file_size} bytes, more than it can hold; the archive is damaged.")
    with archive.open(member) as stream:
        try:
            header = read_header(stream, what)
        except DataError:
            return None
        start = stream.tell()
    size = numbers_in(header.shape) * header.dtype.itemsize
    require_size(what, header.shape, header.dtype.itemsize, member.file_size - start)

    def opened():
        if member.compress_type == zipfile.ZIP_STORED and not header.fortran and header.shape:
            return NpyArray(path, _stored_at(path, member) + start, header.shape, header.dtype)
        require_in_memory(what, size)
        return _unpacked(path, member, start, header, size)

    return Candidate(member.filename.removesuffix(".npy"), header.shape, header.dtype, opened)


def _stored_at(path, member):
    """Where the bytes of a member that is not compressed begin."""
    with open(path, "rb") as stream:
        stream.seek(member.header_offset)
        local = stream.read(30)
    if local[:4] != b"PK\x03\x04":
        raise DataError(f"{path.name} is a damaged archive: {member.filename} is not where its index says.")
    return member.header_offset + 30 + int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")


def _unpacked(path, member, start, header, size):
    with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
        stream.read(start)
        data = stream.read(size)
    flat = np.frombuffer(data, header.dtype, numbers_in(header.shape))
    return flat.reshape(header.shape, order="F" if header.fortran else "C")
