"""What is odd in recordings though a model could be fitted to them, one sentence each: units, rates, swaps, stillness.

They are found block by block, or on a sample of frames where that tells as much.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from .marks import counters, marks
from .readers.pieces import listed
from .recordings import Recordings
from .sides import exchanged, mirrored, swaps
from .views import LARGE, is_points, sampled

LONGER = 1.5  # times as long, or as short, as other bodies: another unit or camera
WIDER = 5.0  # times as spread out, or as narrow, as other recordings
STILL = 0.01  # of the movement of the others, or of a body length
SLOW = 2.0  # frames per second of poses and video; less is likely a wrong unit of time
REPEATED = 0.1  # of the frames that are the same as the one before
WIDE = 50  # columns of a table that is wider than long


def doubts(data: Recordings) -> list[str]:
    """All of them; nothing for recordings without surprise.

    Args:
        data: Recordings.

    Returns:
        Sentences.
    """
    samples = [sampled(y) for y in data.sequences]
    found = [*_short(data), *_rate(data), *_clocks(data), *_copies(data), *_turned(data)]
    found += [*_units(data, samples), *_still(data, samples), *swaps(data)]
    found += [*mirrored(data, samples), *exchanged(data), *marks(data, samples), *counters(data, samples)]
    return found


# --- frames and time ----------------------------------------------------------------------------------------------


def _short(data):
    short = [name for name, y in zip(data.names, data.sequences, strict=True) if len(y) == 1]
    return [f"{listed(short, 5)}: one frame, which says nothing of how frames follow each other."] if short else []


def _rate(data):
    kind = getattr(data.sequences[0], "kind", "")
    if not data.fps or data.fps >= SLOW or not kind:
        return []
    return [f"{data.fps:.3g} frames per second is slow for {kind}; are the times in ms? --fps gives the rate."]


def _clocks(data):
    """Times given in memory; readers say it of files."""
    found = []
    for name, t in zip(data.names, data.times, strict=False):
        steps = np.diff(np.asarray(t, float)) if t is not None else np.ones(1)
        if (wrong := ~(steps > 0)).any():
            where = int(np.argmax(wrong)) + 1
            found.append(
                f"{name}: its times repeat, go back or are missing {int(wrong.sum())} times, first at {where}."
            )
    return found


def _copies(data):
    """Recordings with the same frames: a file that was copied, or a recording under two names."""
    seen, found = {}, []
    if len(data.names) < 2:
        return []
    for name, y in zip(data.names, data.sequences, strict=True):
        head = (y.shape, np.asarray(y[:50]).tobytes(), np.asarray(y[max(0, len(y) - 50) :]).tobytes())
        if head in seen and len(y) > 1:
            found.append(f"{name} and {seen[head]} are the same; a recording that counts twice misleads.")
        seen.setdefault(head, name)
    return found


def _turned(data):
    first = data.sequences[0]
    wide = [n for n, y in zip(data.names, data.sequences, strict=True) if y.ndim == 2 and WIDE <= y.shape[1] > len(y)]
    if not wide or len(first) == 1:
        return []
    return [f"{listed(wide, 5)}: more columns than frames; if time runs along the columns, turn the table round."]


# --- scale --------------------------------------------------------------------------------------------------------


def body_length(frames: Float[np.ndarray, "T P d"], like: Float[np.ndarray, "p d"] | None = None) -> float:
    """The median over pairs of points of their median distance, relative to that in `like` where it is given.

    Points that are missing do not change it, as the mean of those that are seen would.

    Args:
        frames: Points (T, P, d) over time; NaN is missing.
        like: A reference posture (p, d) that says what each distance should be.

    Returns:
        The length, in the unit of the points, or relative to `like`.
    """
    first, second = np.triu_indices(frames.shape[1], 1)
    with np.errstate(invalid="ignore"):
        apart = np.linalg.norm(frames[:, first, :2] - frames[:, second, :2], axis=-1)
    known = np.isfinite(apart).any(0)
    if not known.any():
        return float("nan")
    length = np.nanmedian(apart[:, known], 0)
    if like is None:
        return float(np.median(length))
    reference = np.linalg.norm(like[first, :2] - like[second, :2], axis=-1)[known]
    usable = reference > 0
    return float(np.median(length[usable] / reference[usable])) if usable.any() else float("nan")


def _units(data, samples):
    """Recordings whose body or spread is several times that of the others."""
    if len(samples) < 2:
        return []
    if all(map(is_points, samples)):
        return _apart(data.names, [body_length(s) for s in samples], LONGER, _body)
    return _apart(data.names, [_spread(s) for s in samples], WIDER, _values)


def _spread(frames):
    rows = frames.reshape(len(frames), -1)
    rows = rows[:, np.isfinite(rows).any(0)]
    return np.nanstd(rows, 0).mean() if rows.size else float("nan")


def _body(name, ratio):
    return f"{name}: its body is {ratio:.2g} times as long as in the other recordings; is it in another unit?"


def _values(name, ratio):
    return f"{name}: its values are {ratio:.2g} times as spread out as in the other recordings; is it in another unit?"


def _apart(names, sizes, factor, words: Callable):
    """Sentences on recordings whose size is more than `factor` times the median, or less than 1 / `factor` of it."""
    sizes = np.array(sizes)
    known = np.isfinite(sizes) & (sizes > 0)
    if known.sum() < 2:
        return []
    ratio = sizes / (np.median(sizes[known]) if known.sum() > 2 else sizes[known].max())
    found = [(n, r) for n, r, k in zip(names, ratio, known, strict=True) if k and not 1 / factor <= r <= factor]
    return [words(n, r) for n, r in found[:5]] + ([f"{len(found) - 5} more of them."] if len(found) > 5 else [])


# --- movement -----------------------------------------------------------------------------------------------------


def _still(data, samples):
    """Animals that do not move, and trackers or cameras that stand still."""
    found = []
    moved = np.array([_movement(s) for s in samples])
    size = np.array([body_length(s) if is_points(s) else np.nan for s in samples])
    most = np.nanmax(moved) if np.isfinite(moved).any() else 0.0
    for name, y, own, body in zip(data.names, data.sequences, moved, size, strict=True):
        if len(y) > 1 and (own < STILL * (body if np.isfinite(body) else most)):
            found.append(f"{name}: it does not move; leave it out if the animal was not there.")
        elif (share := _repeats(y)) > REPEATED:
            found.append(f"{name}: {100 * share:.0f} % of its frames are the same as the one before.")
    return found


def _movement(frames):
    """The largest spread of any entry over the frames."""
    rows = frames.reshape(len(frames), -1)
    rows = rows[:, np.isfinite(rows).any(0)]
    return float(np.nanmax(np.nanpercentile(rows, 90, 0) - np.nanpercentile(rows, 10, 0))) if rows.size else np.nan


def _repeats(y):
    """Share of the frames, of poses and video, that repeat the one before exactly."""
    if not getattr(y, "kind", "") or len(y) < 20:
        return 0.0
    most = 20_000 if np.prod(y.shape[1:]) < LARGE else 60
    frames = np.asarray(y[: min(len(y), most)])
    rows = frames.reshape(len(frames), -1)
    same = (rows[1:] == rows[:-1]) | (np.isnan(rows[1:]) & np.isnan(rows[:-1]))
    return float(np.mean(same.all(1) & np.isfinite(rows[1:]).any(1)))
