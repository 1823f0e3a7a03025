"""Sequences that are read when they are sliced: memory is set by the window, not by the recording.

A view has `shape`, `dtype`, `len`, and `view[a:b]`, an array of floats; `kind` says what a frame is ("keypoints",
"frames", "depth", or "" when nobody knows), `points` names the keypoints and `columns` the columns, `unit` is that of
their values where a file says it, and `block` is how many frames are read at no more cost than one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .recordings import DataError, Recordings, float_type

BLOCK_NUMBERS = 2**20  # that one block of a pass over all frames has
KEPT_BYTES = 2**28  # bytes that are rather kept in memory than read again and again
LARGE = 2**14  # numbers of a frame that is costly to read
LOOKED_AT = 2000  # frames of a recording that tell its scale
SAMPLED = 2**25  # numbers in a sample of frames at most: 109 pictures of 480 x 640


class View:
    """What all views share; each has its own `_read(first, last)`."""

    shape: tuple[int, ...]
    dtype: np.dtype
    kind: str = ""
    points: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    unit: str = ""
    block: int = 1
    confidence: np.ndarray | None = None  # of keypoints (T, P), as their tracker gave it
    edges: tuple[tuple[int, int], ...] = ()  # pairs of keypoints that their file joins by a line
    seen_by: tuple[Any, "View"] | None = None  # a preprocessing, and this view after it
    kept: np.ndarray | None = None  # all of it, once it was settled

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=object))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, frames: Any) -> np.ndarray:
        if not isinstance(frames, slice) or frames.step not in (None, 1):
            raise TypeError("a view is read by slices of frames, view[a:b]; np.asarray(view) reads all of it")
        first, last, _ = frames.indices(len(self))
        return self._read(first, max(first, last))

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.asarray(self[:], dtype)


class Floats(View):
    """An array, or a reader with shape, dtype and [a:b], whose frames become floats as they are read."""

    def __init__(
        self,
        source: Any,
        *,
        kind: str = "",
        points: tuple[str, ...] = (),
        columns: tuple[str, ...] = (),
        unit: str = "",
        block: int = 1,
    ):
        self.source, self.shape, self.dtype = source, tuple(source.shape), np.dtype(float_type(source.dtype))
        self.kind, self.points, self.columns, self.unit, self.block = kind, points, columns, unit, block

    def _read(self, first, last):
        return np.asarray(self.source[first:last]).astype(self.dtype, copy=False)


class Sliced(View):
    """Frames [first, last) of another view."""

    def __init__(self, source: View, first: int, last: int):
        self.source, self.first, self.shape, self.dtype = source, first, (last - first, *source.shape[1:]), source.dtype
        self.kind, self.points, self.columns = source.kind, source.points, source.columns
        self.unit, self.block = source.unit, source.block

    def _read(self, first, last):
        return self.source[self.first + first : self.first + last]


class Mapped(View):
    """Another sequence with a function of frames (T, *event) -> (T, *event after) applied as they are read.

    A function that looks at frames around each one, `reach` on either side, gets them too.
    """

    def __init__(
        self, source: Any, function: Callable, event: tuple[int, ...], dtype: Any = np.float32, *, reach: int = 0
    ):
        self.source, self.function, self.shape, self.dtype = source, function, (len(source), *event), np.dtype(dtype)
        self.reach = reach
        self.kind, self.points = getattr(source, "kind", ""), getattr(source, "points", ())
        self.block = getattr(source, "block", 1)

    def _read(self, first, last):
        start = max(0, first - self.reach)
        frames = self.function(self.source[start : min(len(self), last + self.reach)])
        return np.asarray(frames[first - start : last - start], self.dtype)


class Picked(View):
    """Some points or columns of another sequence, by their places in it, under the names given."""

    def __init__(self, source: View, places: Sequence[int], names: tuple[str, ...]):
        self.source, self.places, self.dtype = source, list(places), source.dtype
        self.shape = (len(source), len(self.places), *source.shape[2:])
        self.kind, self.unit, self.block = source.kind, source.unit, source.block
        self.points, self.columns = (names, ()) if source.points else ((), names)

    def _read(self, first, last):
        return self.source[first:last][:, self.places]


def names_of(y: Any) -> tuple[str, ...]:
    """Names of the points or columns of a frame; none where nobody has named them."""
    return tuple(getattr(y, "points", ())) or tuple(getattr(y, "columns", ()))


def cut(y: Any, first: int, last: int) -> Any:
    """Frames [first, last) without reading them.

    Args:
        y: A sequence (T, *event), an array or a view.
        first: The first frame.
        last: The frame after the last one.

    Returns:
        An array, or a view that reads them when it is asked.
    """
    return Sliced(y, first, last) if isinstance(y, View) else y[first:last]


def blocks(y: Any, numbers: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
    """(first frame, frames) over a whole sequence, about `numbers` numbers at a time.

    Args:
        y: A sequence (T, *event), an array or a view.
        numbers: About how many numbers a block has; 2^20 unless given.

    Returns:
        Pairs of the first frame of a block and its frames.
    """
    numbers = BLOCK_NUMBERS if numbers is None else numbers
    step = max(1, numbers // max(1, int(np.prod(y.shape[1:], dtype=object))))
    block = getattr(y, "block", 1)
    step = max(step - step % block, min(block, 64 * step))
    for first in range(0, len(y), step):
        yield first, y[first : first + step]


def is_points(y: Any) -> bool:
    """Whether frames are points in the plane or in space."""
    return y.ndim == 3 and y.shape[2] in (2, 3) and y.shape[1] >= 2


def sampled(y: Any) -> np.ndarray:
    """Frames spread over a recording, in float64; of what is costly to read, a few stretches."""
    step = max(1, len(y) // LOOKED_AT)
    if len(y) * int(np.prod(y.shape[1:])) < 10**7:
        return np.asarray(y[:], np.float64)[::step]
    number = 20 if np.prod(y.shape[1:]) < LARGE else 3  # of stretches: a video is decoded for each
    runs = np.unique(np.linspace(0, max(0, len(y) - 20), number).astype(int))
    return np.concatenate([np.asarray(cut(y, int(a), min(len(y), int(a) + 20))[:], np.float64) for a in runs])


def settled(data: Recordings) -> Recordings:
    """Views of which all together are small become arrays; others stay views.

    Args:
        data: Recordings.

    Returns:
        `Recordings`.
    """
    views = [y for y in data.sequences if isinstance(y, View)]
    if not views or sum(y.size * y.dtype.itemsize for y in views) > KEPT_BYTES:
        return data
    return data._replace(sequences=tuple(_whole(y) if isinstance(y, View) else y for y in data.sequences))


def _whole(y):
    if y.kept is None:
        out = np.empty(y.shape, y.dtype)
        for first, frames in blocks(y):
            out[first : first + len(frames)] = frames
        y.kept = out
    return y.kept


def sample_frames(data: Recordings, number: int, seed: int) -> np.ndarray:
    """At most `number` frames (N, *event) of all recordings, fewer of large ones, drawn without replacement.

    Only these are read.

    Args:
        data: Recordings.
        number: How many frames at most.
        seed: The seed of the choice.

    Returns:
        Frames (N, *event).
    """
    number = min(number, max(1, SAMPLED // max(1, int(np.prod(data.sequences[0].shape[1:], dtype=object)))))
    starts = np.cumsum([0, *map(len, data.sequences)])
    chosen = np.random.default_rng(seed).permutation(starts[-1])[:number]
    order = np.argsort(chosen, kind="stable")
    out = np.empty((len(chosen), *data.sequences[0].shape[1:]), np.result_type(*(y.dtype for y in data.sequences)))
    for y, first, last in zip(data.sequences, starts[:-1], starts[1:], strict=True):
        rows = order[np.searchsorted(chosen[order], first) : np.searchsorted(chosen[order], last)]
        _gather(y, chosen[rows] - first, out, rows)
    return out


def _gather(y, frames, out, rows):
    """out[rows] = y[frames], frames ascending, by one reading per block that holds any."""
    if _by_number(y):
        out[rows] = _at(y, frames)
        return
    for number in np.unique(frames // y.block):
        within = frames // y.block == number
        read = y[int(number) * y.block : (int(number) + 1) * y.block]
        out[rows[within]] = read[frames[within] - number * y.block]


def _by_number(y):
    """Whether any frames of a sequence can be had at once, without those around them, and hold few numbers."""
    while isinstance(y, Mapped | Picked | Sliced):
        if getattr(y, "reach", 0):
            return False
        y = y.source
    y = y.source if isinstance(y, Floats) else y
    return isinstance(y, np.ndarray) and not isinstance(y, np.memmap) and int(np.prod(y.shape[1:])) < LARGE


def _at(y, frames):
    """y[frames] of a sequence in memory: what is done to its frames is done to these."""
    if isinstance(y, Sliced):
        return _at(y.source, frames + y.first)
    if isinstance(y, Picked):
        return _at(y.source, frames)[:, y.places]
    if isinstance(y, Mapped):
        return np.asarray(y.function(_at(y.source, frames)), y.dtype)
    return np.asarray(y.source[frames]).astype(y.dtype, copy=False) if isinstance(y, Floats) else y[frames]


def reading(what: str, read: Callable[[], Any]) -> Any:
    """What `read` returns; a file that was cut short, changed or removed since it was opened becomes a DataError."""
    try:
        return read()
    except MemoryError:
        raise DataError(f"{what} asks for more memory than there is; give smaller frames.") from None
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise DataError(f"{what} could not be read any more: {first_line(error)}; was it changed?") from None


def first_line(error: BaseException) -> str:
    """The first line of an error's message, without a full stop, or its type."""
    lines = str(error).strip().splitlines()
    return (lines[0].strip().rstrip(".") if lines else type(error).__name__)[:200]
