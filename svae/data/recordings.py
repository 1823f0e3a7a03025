"""Named recordings: sequences of frames that are in memory or read from a file window by window."""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from .beside import Beside, Called

LONGEST_NAME = 200  # bytes of UTF-8; a file system takes 255, a suffix included


class DataError(ValueError):
    """Data that no model can use; the message names the place and the remedy."""


class Recordings(NamedTuple):
    """sequences: (T_i, *event) each, NaN = missing, arrays or views (`data.views`); names: one each.

    fps: frames per second, or None; times: seconds of each frame, None where they are frame / fps, () = None for all.
    notes: what was left out, taken for granted or changed when they were read, one sentence each.
    beside: what each carries beside y, () = nothing; called: what its inputs and labels are called.
    """

    sequences: tuple[Any, ...]
    names: tuple[str, ...]
    fps: float | None = None
    times: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()
    beside: tuple[Beside, ...] = ()
    called: Called = Called()

    def __repr__(self) -> str:
        number = f"{len(self.names)} recording{'' if len(self.names) == 1 else 's'}"
        shapes = sorted({str(tuple(y.shape)[1:]) for y in self.sequences})
        frames = sum(y.shape[0] if y.shape else 0 for y in self.sequences)
        rate = f" at {self.fps:g} frames per second" if self.fps else ""
        return f"Recordings: {number}, {frames:,} frames of shape {' or '.join(shapes)}{rate}"

    @property
    def frames(self) -> int:
        """Frames of all recordings together."""
        return sum(map(len, self.sequences))


def recordings(data: Any, *, fps: float | None = None) -> Recordings:
    """From one array (T, *event), a list of such, or a dict by name; small types become float32, others float64.

    Args:
        data: Arrays as they are; or `Recordings`, which stay as they are.
        fps: Frames a second.

    Returns:
        `Recordings`.

    Examples:
        >>> import numpy as np
        >>> import svae
        >>> svae.data.recordings({"monday": np.zeros((20, 3))}, fps=30.0)
        Recordings: 1 recording, 20 frames of shape (3,) at 30 frames per second
    """
    if isinstance(data, Recordings):
        return data
    if isinstance(data, Mapping):
        return Recordings(tuple(map(_floating, data.values())), tuple(map(str, data)), fps)
    arrays = data if isinstance(data, Sequence) else [data]
    return Recordings(tuple(map(_floating, arrays)), tuple(f"recording {i}" for i in range(len(arrays))), fps)


def _floating(array):
    """An offset of 1e8 would not survive float32 before it is standardised; what is no number is left to `check`."""
    array = np.asarray(array)
    return array if array.dtype.kind not in "biuf" else array.astype(float_type(array.dtype), copy=False)


def float_type(dtype: np.dtype) -> type:
    """float32 for types that it holds exactly, else float64."""
    exact = dtype.itemsize <= 2 or (dtype.kind == "f" and dtype.itemsize == 4)
    return np.float32 if exact else np.float64


def seconds(data: Recordings, number: int) -> Float[np.ndarray, " T"]:
    """When each frame of a recording was taken; the frame number where nothing is known.

    Args:
        data: Recordings.
        number: Which of them.

    Returns:
        Times (T,).

    Examples:
        >>> import numpy as np
        >>> import svae
        >>> svae.data.seconds(svae.data.recordings(np.zeros((3, 1)), fps=10.0), 0)
        array([0. , 0.1, 0.2])
    """
    if data.times and data.times[number] is not None:
        return np.asarray(data.times[number], np.float64)
    return np.arange(len(data.sequences[number])) / (data.fps or 1.0)


def take(data: Recordings, chosen: Sequence[int]) -> Recordings:
    """Some of the recordings, in this order.

    Args:
        data: Recordings.
        chosen: Their numbers.

    Returns:
        `Recordings`.
    """
    times = tuple(data.times[i] for i in chosen) if data.times else ()
    sequences, names = tuple(data.sequences[i] for i in chosen), tuple(data.names[i] for i in chosen)
    beside = tuple(data.beside[i] for i in chosen) if data.beside else ()
    return data._replace(sequences=sequences, names=names, times=times, beside=beside)


def safe_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names that are unique file stems on every system: no separators, no control characters, no leading dot.

    Args:
        names: Names of recordings.

    Returns:
        As many names.

    Examples:
        >>> import svae
        >>> svae.data.safe_names(["a/b", "a:b"])
        ('a_b', 'a_b-2')
    """
    found, taken = [], set()
    for name in map(_safe, names):
        number, unique = 2, name
        while unique.casefold() in taken:
            number, unique = number + 1, f"{name}-{number}"
        taken.add(unique.casefold())
        found.append(unique)
    return tuple(found)


def _safe(name):
    kept = [c if c.isprintable() and c not in '/\\:*?"<>|' else "_" for c in unicodedata.normalize("NFC", str(name))]
    text = "".join(kept).encode("utf-8", "replace")[:LONGEST_NAME].decode("utf-8", "ignore").strip(" .")
    return text or "recording"
