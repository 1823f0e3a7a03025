"""Windows of recordings: every frame counts in exactly one window and may serve others as context."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from .recordings import DataError, Recordings, take
from .views import cut

MOST = 2.0  # times the share to hold out that a recording may be, to be held out whole
LINE = 64  # bytes
SHORT = 20  # frames; a recording of so few has no end to hold out


class Windows(NamedTuple):
    """Rows of windows: frames [first, last) are inferred, [core_first, core_last) counted; `length` = the longest."""

    recording: Int[np.ndarray, " N"]
    first: Int[np.ndarray, " N"]
    core_first: Int[np.ndarray, " N"]
    core_last: Int[np.ndarray, " N"]
    last: Int[np.ndarray, " N"]
    length: int


class Batch(NamedTuple):
    """y (B, L, *event) padded with 0 at the end; mask: real; counted: core; start: frame 0 is a true start."""

    y: Float[np.ndarray, "B L *event"]
    mask: Bool[np.ndarray, "B L"]
    counted: Bool[np.ndarray, "B L"]
    start: Bool[np.ndarray, " B"]


class Split(NamedTuple):
    """Recordings to train on and recordings held out."""

    train: Recordings
    test: Recordings


def windows(data: Recordings, length: int, overlap: int) -> Windows:
    """Cut every recording into cores of `length` frames (the last may be shorter) with `overlap` frames around them."""
    if length < 1 or overlap < 0:
        raise DataError(f"Windows of {length} frames with overlap {overlap} are impossible; use at least 1 and 0.")
    if overlap < 1 and any(len(y) > length for y in data.sequences):
        raise DataError(
            "A window inside a recording needs at least 1 frame before it; use overlap >= 1 or a longer window."
        )
    T = np.array([len(y) for y in data.sequences])
    number = -(-T // length)
    recording = np.repeat(np.arange(len(T)), number)
    core_first = np.concatenate([np.arange(n) * length for n in number])
    core_last = np.minimum(core_first + length, T[recording])
    first, last = np.maximum(core_first - overlap, 0), np.minimum(core_last + overlap, T[recording])
    return Windows(recording, first, core_first, core_last, last, int((last - first).max()))


def aligned_zeros(shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """Zeros that begin on a line of the cache: a program on the CPU reads them where they lie, others are copied."""
    memory = np.zeros(math.prod(shape) + LINE // 4, np.float32)
    start = -memory.ctypes.data % LINE // 4
    return memory[start : start + math.prod(shape)].reshape(shape)


def batch(data: Recordings, table: Windows, rows: Int[np.ndarray, " B"]) -> Batch:
    """The windows of some rows, all padded to the table's length so that every batch has one shape."""
    frame = np.arange(table.length) + table.first[rows, None]
    y = aligned_zeros((len(rows), table.length, *data.sequences[0].shape[1:]))
    for out, row in zip(y, rows, strict=True):
        out[: table.last[row] - table.first[row]] = data.sequences[table.recording[row]][
            table.first[row] : table.last[row]
        ]
    counted = (frame >= table.core_first[rows, None]) & (frame < table.core_last[rows, None])
    return Batch(y, frame < table.last[rows, None], counted, table.first[rows] == 0)


def epoch_order(num_windows: int, batch_size: int, *, seed: int, epoch: int) -> Int[np.ndarray, "steps batch"]:
    """Rows shuffled by (seed, epoch) only, in full batches; what is left over waits for another epoch's shuffle."""
    order = np.random.default_rng([seed, epoch]).permutation(num_windows)
    size = min(batch_size, num_windows)
    return order[: num_windows // size * size].reshape(-1, size)


def split(data: Recordings, fraction: float, seed: int) -> Split:
    """Hold out whole recordings where there are at least 3 and none is too large for it, else the end of each.

    Of three recordings one is a third of all frames, where a tenth is asked for, and may be all there is of an action.
    """
    if not 0 < fraction < 1:
        raise DataError(f"Cannot hold out a fraction of {fraction}; use a number between 0 and 1, such as 0.2.")
    lengths = [len(y) for y in data.sequences]
    whole = len(lengths) >= 3 and (max(lengths) <= MOST * fraction * sum(lengths) or min(lengths) <= SHORT)
    return _split_whole(data, fraction, seed) if whole else _split_ends(data, fraction)


def _split_whole(data, fraction, seed):
    B = len(data.sequences)
    held = np.random.default_rng(seed).permutation(B)[: min(max(1, round(fraction * B)), B - 1)]
    return Split(take(data, sorted(set(range(B)) - set(held.tolist()))), take(data, sorted(held.tolist())))


def _split_ends(data, fraction):
    for name, y in zip(data.names, data.sequences, strict=True):
        if len(y) < 2:
            raise DataError(f"{name} has {len(y)} frame, too few to hold out its end; give 2 frames or 3 recordings.")
    cuts = [min(max(1, round((1 - fraction) * len(y))), len(y) - 1) for y in data.sequences]
    return Split(_ends(data, [0] * len(cuts), cuts), _ends(data, cuts, list(map(len, data.sequences))))


def _ends(data, first, last):
    """Frames [first_i, last_i) of each recording, and their times."""
    bounds = list(zip(first, last, strict=True))
    times = tuple(None if t is None else t[a:b] for t, (a, b) in zip(data.times, bounds, strict=False))
    return data._replace(
        sequences=tuple(cut(y, a, b) for y, (a, b) in zip(data.sequences, bounds, strict=True)), times=times
    )
