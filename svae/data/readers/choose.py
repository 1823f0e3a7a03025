"""Which arrays of a container are the recordings.

Of the numeric arrays whose names do not sound like labels, those with at least two axes are candidates (those with one
axis, where there are no others). Arrays with the same number of axes and the same frames belong together. The group
with the most numbers is chosen if no other has more than half as many; else the caller is told to say `dataset`.
An array (N, T, ...) of N recordings is told by its shape: four axes (N, T, P, 2 or 3) or (N, T, H, W), or three axes
of real numbers with N < T whose frames are neither keypoints nor square images.
"""

import fnmatch
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..recordings import DataError
from ..views import Floats, Mapped, View
from .pieces import CONFIDENCE, Clock, Contents, Note, Piece, left_aside, numbers_in, time_base

RATE = re.compile(r"(^|[/_. ])(fps|frame_?rate|sampling_?rate|sample_?rate|framerate)$", re.IGNORECASE)
STEP = re.compile(r"(^|[/_. ])(hop_s|dt|frame_time)$", re.IGNORECASE)
TIMES = re.compile(r"(^|[/_.])(times?|timestamps?|seconds|time_s)$", re.IGNORECASE)
PARTS = re.compile(r"(^|[/_. ])(lengths?|doc_range|boundaries)$", re.IGNORECASE)
LABELS = re.compile(
    r"label|class|target|valid|mask|conf|likelihood|score$|prev$|index|idx|^_|/_|truez|^z_|truth|annotation|onset|offset|"
    r"duration|pause|timestamp|(^|/)times?$|occupancy|metadata|param",
    re.IGNORECASE,
)


class Candidate(NamedTuple):
    """An array of a file: `open` gives something with shape, dtype, [a:b] and, for several recordings, `part(i)`."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    open: Callable[[], Any]

    @property
    def numeric(self) -> bool:
        return self.dtype.kind in "biuf" and len(self.shape) >= 1 and numbers_in(self.shape) > 1


def choose(candidates: Sequence[Candidate], dataset: str | None, what: str) -> Contents:
    """The recordings among the arrays of a container, by the rule above or by name."""
    chosen = _named(candidates, dataset, what) if dataset else _likely(candidates, what)
    names = _short_names([c.name for c in chosen])
    read = [_pieces(c, name) for c, name in zip(chosen, names, strict=True)]
    pieces, notes = [piece for found in read for piece in found.pieces], [n for found in read for n in found.notes]
    used = {c.name for c in chosen}
    if len(pieces) == 1:
        pieces, lengths = _in_parts(pieces[0], candidates)
        used |= {lengths}
        notes += [Note(f"it is cut into {len(pieces)} recordings by {lengths}")] if lengths else []
    rates = [c for c in candidates if RATE.search(c.name) or STEP.search(c.name)]
    clock, name = _clock(candidates, {len(piece.y) for piece in pieces})
    used |= {c.name for c in rates} | {name}
    if dataset is None:
        notes += left_aside("dataset", [f"{c.name} {c.shape}" for c in candidates if c.name not in used and c.shape])
    timed = [piece._replace(times=clock.times) for piece in pieces]
    return Contents(timed, _rate(candidates) or clock.fps, [*dict.fromkeys(notes), *clock.notes])


def _clock(candidates, lengths) -> tuple[Clock, str]:
    """From an array of seconds, one for each frame of recordings of one length, and its name."""
    for c in candidates:
        if TIMES.search(c.name) and c.dtype.kind in "iuf" and c.shape in {(n,) for n in lengths} and len(lengths) == 1:
            times = np.asarray(c.open()[:], float)
            clock = time_base(times - times[0])
            return clock._replace(notes=[n._replace(words=f"{c.name}: {n.words}") for n in clock.notes]), c.name
    return Clock(), ""


def _named(candidates, dataset, what):
    wanted = dataset.strip("/")
    found = [c for c in candidates if c.name == wanted or c.name.startswith(f"{wanted}/")]
    found = found or [c for c in candidates if fnmatch.fnmatchcase(c.name, wanted)]
    numeric = [c for c in found if c.numeric]
    if not numeric:
        raise DataError(f"{what} holds no numbers named {dataset!r}; it has {_listed(candidates)}.")
    return numeric


def _likely(candidates, what):
    usable = [c for c in candidates if c.numeric and c.dtype.kind != "b" and not LABELS.search(c.name)]
    signals = [c for c in usable if len(c.shape) >= 2 and c.shape[0] > 1] or [c for c in usable if max(c.shape) > 9]
    groups = {}
    for c in signals:
        groups.setdefault((len(c.shape), _event(c)), []).append(c)
    sizes = {key: sum(numbers_in(c.shape) for c in group) for key, group in groups.items()}
    ranked = sorted(sizes, key=sizes.get, reverse=True)
    if not ranked:
        raise DataError(f"{what} holds no array that looks like a recording; it has {_listed(candidates)}.")
    if len(ranked) > 1 and sizes[ranked[1]] > sizes[ranked[0]] / 2:
        raise DataError(f"{what} holds several arrays; say which with --dataset NAME: {_listed(signals)}.")
    return groups[ranked[0]]


def _listed(candidates):
    named = [f"{c.name} {c.shape}" for c in candidates if c.shape]
    return (", ".join(named[:8]) + (f" and {len(named) - 8} more" if len(named) > 8 else "")) or "nothing"


def _several(shape, dtype):
    """Whether the first axis counts recordings rather than frames."""
    if len(shape) == 4:
        return shape[3] not in (1, 3, 4) or (shape[3] == 3 and shape[0] < shape[1] and shape[2] < 64)
    plain = len(shape) == 3 and shape[2] not in (2, 3) and dtype.kind == "f"
    return plain and shape[0] < shape[1] and shape[1] != shape[2]


def _event(c):
    return c.shape[2:] if _several(c.shape, c.dtype) else c.shape[1:]


def _pieces(c, name) -> Contents:
    source = c.open()
    if not _several(c.shape, c.dtype):
        y, notes = as_frames(source)
        return Contents([Piece(name, y)], None, notes)
    start = f"{name}-" if name else ""
    read = [as_frames(recording_of(source, i)) for i in range(c.shape[0])]
    said = Note(f"{c.name or 'its array'} {c.shape} is taken for {c.shape[0]} recordings, one along its first axis")
    return Contents([Piece(f"{start}{i}", y) for i, (y, _) in enumerate(read)], None, [said, *read[0][1]])


def _short_names(names):
    """Without the parts at either end that all share: 0/series, 1/series -> 0, 1; "" for the only one."""
    paths = [[part for part in name.split("/") if part not in ("", ".", "..")] for name in names]
    for end in (0, -1):
        while all(paths) and len({path[end] for path in paths}) == 1:
            paths = [path[1:] if end == 0 else path[:-1] for path in paths]
    return ["-".join(path) for path in paths]


def recording_of(source: Any, number: int) -> Any:
    """Recording `number` of an array (N, T, ...)."""
    return source[number] if isinstance(source, np.ndarray) else source.part(number)


def as_frames(source: Any) -> tuple[View, list[Note]]:
    """Floats of an array, and what is to be said of them."""
    y = as_view(source)
    gaps = isinstance(y, Mapped) and y.kind == "keypoints"
    words = f"the third number of each point is taken for a confidence; points below {CONFIDENCE} count as missing"
    return y, [Note(words)] if gaps else []


def as_view(source: Any, *, block: int = 1) -> View:
    """Floats of an array; one axis becomes one column, (x, y, confidence) becomes (x, y) with gaps."""
    if len(source.shape) == 1:
        return Mapped(Floats(source), lambda y: y[:, None], (1,), Floats(source).dtype)
    view = Floats(source, block=getattr(source, "block", block))
    if view.ndim == 3 and view.shape[2] in (2, 3) and view.shape[1] >= 3:
        view.kind = "keypoints"
        if _has_confidence(view):
            return Mapped(view, _confident, (view.shape[1], 2), view.dtype)
    return view


def _has_confidence(view):
    """(x, y, c): the third of each point is a probability, and the places are not."""
    if view.shape[2] != 3:
        return False
    xy, c = np.split(view[: min(len(view), 1000)], [2], -1)
    seen = c[np.isfinite(c)]
    return seen.size > 0 and seen.min() >= 0 and seen.max() <= 1 and np.nanmax(np.abs(xy), initial=0) > 2


def _confident(frames):
    return np.where(frames[..., 2:] >= CONFIDENCE, frames[..., :2], np.nan)


def _in_parts(piece, candidates):
    """One long array cut into recordings where the file has their lengths or bounds, and the name of those."""
    for c in candidates:
        if PARTS.search(c.name) and len(c.shape) == 1 and c.dtype.kind in "iu" and c.shape[0] < 10**6:
            bounds = np.asarray(c.open()[:], np.int64)
            bounds = bounds if bounds[0] == 0 else np.cumsum([0, *bounds])
            if len(bounds) > 2 and bounds[-1] == len(piece.y) and (np.diff(bounds) > 0).all():
                return _cut(piece, bounds), c.name
    return [piece], ""


def _cut(piece, bounds):
    from ..views import cut

    return [Piece(str(i), cut(piece.y, int(bounds[i]), int(bounds[i + 1]))) for i in range(len(bounds) - 1)]


def _rate(candidates):
    """Frames per second from a number that the file has for it."""
    for pattern, rate in ((RATE, lambda value: value), (STEP, lambda value: 1 / value)):
        for c in candidates:
            if pattern.search(c.name) and c.dtype.kind in "iuf" and numbers_in(c.shape) == 1:
                value = float(np.asarray(c.open()[()]).reshape(-1)[0])
                if np.isfinite(value) and value > 0:
                    return rate(value)
    return None
