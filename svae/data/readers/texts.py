"""Small formats of text and bytes: series (.ts), motion (.bvh), idx images, and gzip around any of these."""

import gzip
import io
import re
from pathlib import Path

import numpy as np

from ..recordings import DataError
from ..views import Floats
from .csvs import read_text
from .pieces import Contents, Note, Piece, require_in_memory, require_size
from .points import unique
from .tables import number

LARGEST_TEXT = 2**30  # bytes of text that are read at once
IDX_TYPES = {8: np.uint8, 9: np.int8, 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def read_gzip(path: Path, dataset: str | None) -> Contents:
    """What is inside a gzip file, up to a size that memory takes."""
    with gzip.open(path) as stream:
        data = stream.read(LARGEST_TEXT + 1)
    if len(data) > LARGEST_TEXT:
        raise DataError(f"{path.name} unpacks to more than {LARGEST_TEXT / 2**30:.0f} GB; unpack it and give the file.")
    if data[:3] == b"\x00\x00\x08":
        return Contents([Piece("", Floats(_idx(data, path.name)))])
    if b"\x00" in data[:4096]:
        raise DataError(f"{path.name} packs something that is not text; unpack it and give the file.")
    if data.startswith((b"#!OML:ASF", b":FULLY-SPECIFIED")):
        raise DataError(f"{path.name} is AMC motion capture, which svae does not read; convert it to BVH or csv.")
    return read_text(io.StringIO(data.decode("utf-8", "replace")), path.name, dataset)


def read_idx(path: Path, dataset: str | None) -> Contents:
    """Images in the idx format of MNIST."""
    require_in_memory(path.name, path.stat().st_size)
    return Contents([Piece("", Floats(_idx(path.read_bytes(), path.name)))])


def _idx(data, what):
    kind, axes = (data[2], data[3]) if len(data) >= 4 else (0, 0)
    start = 4 + 4 * axes
    if kind not in IDX_TYPES or axes < 1 or len(data) < start:
        raise DataError(f"{what} is a damaged idx file.")
    shape = tuple(np.frombuffer(data, ">u4", axes, 4).tolist())
    dtype = np.dtype(IDX_TYPES[kind])
    require_size(what, shape, dtype.itemsize, len(data) - start)
    if axes < 2:
        raise DataError(f"{what} holds one number for each item, so it is labels rather than a recording.")
    return np.frombuffer(data, dtype, int(np.prod(shape)), start).reshape(shape)


def _text(path):
    if path.stat().st_size > LARGEST_TEXT:
        raise DataError(f"{path.name} is more than {LARGEST_TEXT / 2**30:.0f} GB of text; convert it to .npy.")
    return path.read_text(encoding="utf-8-sig", errors="replace")


def read_ts(path: Path, dataset: str | None) -> Contents:
    """Series of the UEA archive: one a line, its channels divided by colons, its class at the end."""
    head, body = (*re.split(r"(?im)^@data\s*$", _text(path), maxsplit=1), "")[:2]
    labelled = re.search(r"(?im)^@classlabel\s+true", head) is not None
    pieces = []
    for line in filter(None, map(str.strip, body.splitlines())):
        channels = line.split(":")[: -1 if labelled else None]
        columns = [[number(cell) for cell in channel.split(",")] for channel in channels]
        if not columns or len({len(c) for c in columns}) != 1 or any(v is None for c in columns for v in c):
            raise DataError(f"{path.name} has a series {len(pieces)} whose channels are not numbers of one length.")
        pieces.append(Piece(str(len(pieces)), Floats(np.array(columns, float).T)))
    if not pieces:
        raise DataError(f"{path.name} has no series after @data.")
    return Contents(pieces, notes=[Note("its class labels are left aside")] if labelled else [])


def read_bvh(path: Path, dataset: str | None) -> Contents:
    """Motion capture: the channels of every frame, without the first, which is a T-pose."""
    skeleton, _, motion = _text(path).partition("MOTION")
    lines = [line.strip() for line in motion.splitlines() if line.strip()]
    if len(lines) < 4 or not lines[1].lower().startswith("frame time"):
        raise DataError(f"{path.name} is a BVH file without motion.")
    rows = [[number(cell) for cell in line.split()] for line in lines[2:]]
    if len({len(row) for row in rows}) != 1 or any(v is None for row in rows for v in row):
        raise DataError(f"{path.name} has frames of different lengths or cells that are no numbers; it is damaged.")
    step = number(lines[1].split(":")[-1])
    names = _channels(skeleton)
    y = Floats(np.array(rows[1:], float), columns=names if len(names) == len(rows[0]) else ())
    note = Note("its first frame is taken for a T-pose and left out")
    return Contents([Piece("", y)], 1 / step if step and step > 0 else None, [note])


def _channels(skeleton) -> tuple[str, ...]:
    """Joint and channel of each number of a frame."""
    found = re.findall(r"(?:ROOT|JOINT)\s+(\S+)|CHANNELS\s+\d+([^\n]*)", skeleton)
    names, joint = [], ""
    for own, channels in found:
        joint = own or joint
        names += [f"{joint} {channel}" for channel in channels.split()]
    return unique(names)
