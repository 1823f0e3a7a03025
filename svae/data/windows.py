"""Windows of recordings: every frame counts in exactly one window and may serve others as context."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from .beside import Beside, of_windows, part
from .recordings import DataError, Recordings, take
from .views import cut

MOST_SHARES = 2.0  # times the share to hold out that a recording may be, to be held out whole
LINE = 64  # bytes
SHORT_FRAMES = 20  # frames; a recording of so few has no end to hold out


class Windows(NamedTuple):
    """Rows of windows: frames [first, last) are inferred, [core_first, core_last) counted; `length` = the longest."""

    recording: Int[np.ndarray, " N"]
    first: Int[np.ndarray, " N"]
    core_first: Int[np.ndarray, " N"]
    core_last: Int[np.ndarray, " N"]
    last: Int[np.ndarray, " N"]
    length: int


class Batch(NamedTuple):
    """y (B, L, *event) padded with 0 at the end; mask: real; counted: core; start: frame 0 is a true start.

    beside: what these frames carry beside y, padded alike.
    """

    y: Float[np.ndarray, "B L *event"]
    mask: Bool[np.ndarray, "B L"]
    counted: Bool[np.ndarray, "B L"]
    start: Bool[np.ndarray, " B"]
    beside: Beside = Beside()


class Split(NamedTuple):
    """Recordings to train on and recordings held out."""

    train: Recordings
    test: Recordings


def windows(data: Recordings, length: int, overlap: int) -> Windows:
    """Cut every recording into cores of `length` frames (the last may be shorter) with `overlap` frames around them.

    Args:
        data: Recordings.
        length: Frames of a core.
        overlap: Frames around it that count for nothing but give it a past and a future.

    Returns:
        `Windows`: a table with a row for each.
    """
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
    """The windows of some rows, all padded to the table's length so that every batch has one shape.

    Args:
        data: Recordings in memory or views.
        table: Their windows, as `windows` cuts them.
        rows: Which windows.

    Returns:
        `Batch`: frames, masks and what else the windows carry, with a leading axis for the windows.
    """
    frame = np.arange(table.length) + table.first[rows, None]
    y = aligned_zeros((len(rows), table.length, *data.sequences[0].shape[1:]))
    for out, row in zip(y, rows, strict=True):
        out[: table.last[row] - table.first[row]] = data.sequences[table.recording[row]][
            table.first[row] : table.last[row]
        ]
    counted = (frame >= table.core_first[rows, None]) & (frame < table.core_last[rows, None])
    beside = of_windows(data.beside, table.recording[rows], table.first[rows], table.last[rows], table.length)
    return Batch(y, frame < table.last[rows, None], counted, table.first[rows] == 0, beside)


def epoch_order(num_windows: int, batch_size: int, *, seed: int, epoch: int) -> Int[np.ndarray, "steps batch"]:
    """Rows shuffled by (seed, epoch) only, in full batches; what is left over waits for another epoch's shuffle.

    Args:
        num_windows: The number of windows.
        batch_size: Windows in a batch.
        seed: The seed of the fit.
        epoch: The number of the pass over the windows.

    Returns:
        Rows (steps, batch) of the table of windows.
    """
    order = np.random.default_rng([seed, epoch]).permutation(num_windows)
    size = min(batch_size, num_windows)
    return order[: num_windows // size * size].reshape(-1, size)


def split(data: Recordings, fraction: float, seed: int) -> Split:
    """Hold out whole recordings where there are at least 3 and none is too large for it, else the end of each.

    Of three recordings one is a third of all frames, where a tenth is asked for, and may be all there is of an action.

    Args:
        data: Recordings.
        fraction: About how much of the frames to hold out.
        seed: The seed of the choice.

    Returns:
        `Split`: what is trained on, and what is held out.
    """
    if not 0 < fraction < 1:
        raise DataError(f"Cannot hold out a fraction of {fraction}; use a number between 0 and 1, such as 0.2.")
    lengths = [len(y) for y in data.sequences]
    alike = max(lengths) <= MOST_SHARES * fraction * sum(lengths)
    whole = len(lengths) >= 3 and (alike or min(lengths) <= SHORT_FRAMES)
    return _split_whole(data, fraction, seed) if whole else _split_ends(data, fraction)


def _split_whole(data, fraction, seed):
    """Recordings with labels, and the only one of a group, are held out last: they are there to be learned from."""
    B = len(data.sequences)
    order = np.random.default_rng(seed).permutation(B)
    order = order[np.argsort(_alone(data)[order] | (_labelled(data)[order] > 0), kind="stable")]
    held = order[: min(max(1, round(fraction * B)), B - 1)]
    return Split(take(data, sorted(set(range(B)) - set(held.tolist()))), take(data, sorted(held.tolist())))


def _labelled(data):
    """Labelled frames of each recording."""
    carried = data.beside or [Beside()] * len(data.sequences)
    return np.array([0 if one.labels is None else int(np.sum(one.labels >= 0)) for one in carried])


def _alone(data):
    """Whether each recording is the only one of its group."""
    groups = [one.group for one in data.beside] or [None] * len(data.sequences)
    return np.array([group is not None and groups.count(group) == 1 for group in groups])


def _split_ends(data, fraction):
    for name, y in zip(data.names, data.sequences, strict=True):
        if len(y) < 2:
            raise DataError(f"{name} has {len(y)} frame, too few to hold out its end; give 2 frames or 3 recordings.")
    cuts = [min(max(1, round((1 - fraction) * len(y))), len(y) - 1) for y in data.sequences]
    first = stretches(data, [(i, 0, c) for i, c in enumerate(cuts)])
    return Split(first, stretches(data, [(i, c, len(data.sequences[i])) for i, c in enumerate(cuts)]))


def stretches(data: Recordings, pieces: Sequence[tuple[int, int, int]]) -> Recordings:
    """Frames [first, last) of recordings, (number, first, last) each, their times and what they carry.

    Args:
        data: Recordings.
        pieces: The number of a recording, a first frame and the frame after the last one, for each stretch.

    Returns:
        `Recordings`, one for each stretch.
    """
    sequences = tuple(cut(data.sequences[i], a, b) for i, a, b in pieces)
    times = tuple(None if data.times[i] is None else data.times[i][a:b] for i, a, b in pieces) if data.times else ()
    beside = tuple(part(data.beside, i, a, b) for i, a, b in pieces) if data.beside else ()
    names = tuple(data.names[i] for i, _, _ in pieces)
    return data._replace(sequences=sequences, names=names, times=times, beside=beside)
