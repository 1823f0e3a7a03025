"""Recordings side by side: time from the start of each, one individual a recording, poses as movement has them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from svae.data import Recordings
from svae.data.recordings import seconds

SPACE = ("x", "y", "z")


class Table(NamedTuple):
    """What a data set is made of: variables and coordinates as (dimensions, values), and attributes."""

    variables: dict[str, Any]
    coordinates: dict[str, Any]
    attributes: dict[str, Any]


class Side(NamedTuple):
    """An empty table of recordings side by side, and how arrays (T, ...) are put into it."""

    table: Table
    stacked: Callable  # (arrays, value where a recording is over) -> (time, ..., individuals)


def side_by_side(names: Sequence[str], times: Sequence[np.ndarray], rate: float | None, seconds: bool) -> Side:
    """The time that recordings share; where they share none, frame numbers, and `clock` has the time of every frame."""
    longest = max(times, key=len)
    shared = all(np.allclose(time, longest[: len(time)], rtol=0, atol=0.5 * _step(longest)) for time in times)
    lengths = np.array([len(time) for time in times])
    coordinates = {"time": longest if shared else np.arange(len(longest)), "individuals": list(names)}
    variables: dict[str, Any] = {"frames": (("individuals",), lengths)}
    if not shared:
        variables["clock"] = (("time", "individuals"), _stacked(times, np.nan, len(longest)))
    attributes = {"time_unit": "seconds" if shared and seconds else "frames", **({"fps": rate} if rate else {})}
    return Side(Table(variables, coordinates, attributes), lambda parts, value: _stacked(parts, value, len(longest)))


def frames_of(data: Recordings) -> Table:
    """The recordings as they are: `position` and `confidence` of keypoints, `y` of anything else."""
    times = [seconds(data, i) for i in range(len(data.names))]
    empty, stacked = side_by_side(data.names, times, data.fps, bool(data.fps or data.times))
    first, event = data.sequences[0], tuple(data.sequences[0].shape[1:])
    frames = stacked([np.asarray(y) for y in data.sequences], np.nan)
    if len(event) == 2 and event[1] in (2, 3) and getattr(first, "kind", "") in ("keypoints", ""):
        points = list(getattr(first, "points", ()) or (f"keypoint_{p}" for p in range(event[0])))
        added = {"keypoints": points, "space": list(SPACE[: event[1]])}
        trust = stacked([_confidence(y) for y in data.sequences], np.nan)
        variables = {
            "position": (("time", "space", "keypoints", "individuals"), np.moveaxis(frames, 2, 1)),
            "confidence": (("time", "keypoints", "individuals"), trust),
        }
        attributes = {"ds_type": "poses", "source_software": "unknown"}
    else:
        columns = getattr(first, "columns", ()) or getattr(first, "points", ())
        axes = ("channel",) if len(event) == 1 else tuple(f"event_{i}" for i in range(len(event)))
        added = {"channel": list(columns)} if len(event) == 1 and columns else {}
        variables, attributes = {"y": (("time", *axes, "individuals"), frames)}, {}
    unit = {"unit": first.unit} if getattr(first, "unit", "") else {}
    return Table(
        {**empty.variables, **variables},
        {**empty.coordinates, **added},
        {**empty.attributes, **attributes, **unit},
    )


def _confidence(y):
    """(T, P); NaN where the tracker gave none."""
    found = getattr(y, "confidence", None)
    return np.full(y.shape[:2], np.nan, np.float32) if found is None else np.asarray(found)


def _stacked(parts, value, length):
    """Arrays (T, ...) of several recordings, filled up at the end, as one (time, ..., individuals)."""
    shape = (length, *parts[0].shape[1:], len(parts))
    found = np.full(shape, value, np.result_type(*parts))
    for i, part in enumerate(parts):
        found[: len(part), ..., i] = part
    return found


def _step(time):
    return float(np.median(np.diff(time))) if len(time) > 1 else 1.0
