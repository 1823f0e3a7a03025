"""Objects of pandas and xarray, known by their type's home so that neither has to be installed."""

from typing import Any

import numpy as np

from ..recordings import DataError
from .choose import Candidate, as_frames, choose
from .deeplabcut import points_by_animal
from .pieces import Clock, Contents, Note, Piece, left_aside, time_base
from .tables import Table, table_contents


def home(value: Any) -> str:
    """The package that a value's type comes from."""
    return type(value).__module__.partition(".")[0]


def from_pandas(frame: Any, dataset: str | None, what: str) -> Contents:
    """A DataFrame: columns of points as DeepLabCut names them, or any numeric columns; a Series is one column."""
    if frame.ndim == 1:
        frame = frame.to_frame()
    if frame.columns.nlevels >= 3:
        columns = [tuple(map(str, column)) for column in frame.columns]
        levels = [str(name or "").lower() for name in frame.columns.names]
        values = frame.to_numpy(float, na_value=np.nan)
        return points_by_animal(columns, values, what, levels=levels if any(levels) else (), wanted=dataset)
    times = _index_seconds(frame)
    kept = [str(name) for name, kind in frame.dtypes.items() if getattr(kind, "kind", "O") in "biufM" or _is_text(kind)]
    columns = [_cells(frame[name]) for name in frame.columns if str(name) in kept]
    table = Table(kept, [list(row) for row in zip(*columns, strict=True)], what)
    found = table_contents(table, dataset)
    others = left_aside("column", [str(name) for name in frame.columns if str(name) not in kept])
    if times is None or len(found.pieces) > 1:
        lost = (
            [Note("the times of its index are not used, since it holds several recordings")]
            if times is not None
            else []
        )
        return found._replace(notes=[*found.notes, *others, *lost])
    clock = time_base(times)
    piece = found.pieces[0]._replace(times=clock.times, fps=clock.fps)
    return Contents([piece], None, [*found.notes, *others, *clock.notes])


def _is_text(kind):
    return str(kind) in ("object", "str", "string", "category")


def _cells(column):
    """Text of each cell, as a csv file would have it; "" where it is missing."""
    return ["" if missing else str(value) for value, missing in zip(column, column.isna(), strict=True)]


def _index_seconds(frame):
    index = frame.index
    if str(index.dtype).startswith("datetime64"):
        return (index - index[0]).total_seconds().to_numpy()
    named = str(index.name).lower() in ("time", "t", "seconds", "time_s")
    return index.to_numpy(float) if named else None


def from_xarray(value: Any, dataset: str | None, what: str) -> Contents:
    """A DataArray, or a variable of a Dataset; the axis `time` comes first where there is one."""
    if hasattr(value, "data_vars"):
        arrays = [Candidate(str(n), v.shape, v.dtype, lambda v=v: v) for n, v in value.data_vars.items()]
        chosen = [c for c in arrays if dataset is not None and c.name == dataset]
        if not chosen and len(arrays) > 1:
            held = [c._replace(open=lambda c=c: np.asarray(c.open())) for c in arrays]
            return choose(held, dataset, what)
        if not arrays:
            raise DataError(f"{what} has no variables.")
        value = (chosen or arrays)[0].open()
    axis = next((name for name in ("time", "t", "frame", "frames") if name in value.dims), None)
    value = value if axis is None else value.transpose(axis, ...)
    times = None
    if axis in ("time", "t") and axis in value.coords:
        times = _seconds(value.coords[axis].to_numpy())
    clock = Clock() if times is None else time_base(times)
    y, notes = as_frames(np.asarray(value))
    return Contents([Piece(str(value.name or ""), y, clock.times)], clock.fps, [*notes, *clock.notes])


def _seconds(times):
    if times.dtype.kind == "M":
        return (times - times[0]) / np.timedelta64(1, "s")
    return times.astype(float) if times.dtype.kind in "iuf" else None
