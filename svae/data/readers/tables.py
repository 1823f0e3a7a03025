"""What the columns of a table are: time, counters, names of recordings, labels, coordinates of points, or features."""

import datetime
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..recordings import DataError
from ..views import Floats
from .pieces import Contents, Piece, keypoints, time_base

SAMPLE = 200  # rows that decide which columns are numbers
MISSING = {"", "na", "nan", "null", "none", "n/a", "-nan", "?"}
TIME = {"time", "t", "timestamp", "timestamps", "date", "datetime", "seconds", "time_s", "time (s)", "sec"}
COUNTER = {"", "frame", "frames", "index", "frame_idx", "frame_number", "tstep_id", "unnamed: 0", "id", "row"}
RECORDING = {"seq_id", "recording", "session", "sequence", "video", "track", "animal", "recording_id"}
LABEL = re.compile(r"^(is_)?(anomaly|label|labels|class|target|state|syllable|species|behaviou?r)$", re.IGNORECASE)
BOUTS = [{"from", "to"}, {"start", "stop"}, {"start", "end"}, {"start_s", "stop_s"}, {"onset", "offset"}]
POINT = re.compile(r"^(.*?)[._ ]?(?<![a-z])(x|y|z|likelihood|score|confidence|conf)$", re.IGNORECASE)


class Table(NamedTuple):
    """Rows of text, their header, and where they come from."""

    header: list[str]
    rows: list[list[str]]
    what: str


def number(cell):
    """A cell as a number, NaN where it says that it is missing, None where it is none."""
    text = cell.strip()
    if text.lower() in MISSING:
        return math.nan
    try:
        return float(text)
    except ValueError:
        return None


def table_contents(table: Table, dataset: str | None) -> Contents:
    """Numeric columns of a table as recordings, with time, counters and names of recordings put where they belong."""
    names = [name.lower() for name in table.header]
    if any(pair <= set(names) for pair in BOUTS) and dataset is None:
        raise DataError(f"{table.what} is a table of bouts, not of frames; give the recording that it describes.")
    columns = _asked(table, dataset) if dataset else _columns(table, names)
    values = numbers(table.rows, columns, 1, table.what)
    labels = [table.header[i] for i in columns]
    time = next((i for i, name in enumerate(names) if name in TIME), None)
    times = None if time is None else _seconds([_cell(row, time) for row in table.rows])
    which = next((i for i, name in enumerate(names) if name in RECORDING), None)
    keys = [""] * len(table.rows) if which is None else [_cell(row, which) for row in table.rows]
    return _by_recording(values, labels, times, keys)


def _asked(table, dataset):
    wanted = [name.strip() for name in dataset.split(",")]
    for name in wanted:
        if name not in table.header:
            raise DataError(f"{table.what} has no column {name!r}; it has {', '.join(table.header[:12])}.")
    return [table.header.index(name) for name in wanted]


def _columns(table, names):
    """Columns of numbers that are neither time nor counters nor labels."""
    special = TIME | COUNTER | RECORDING
    sample = table.rows[:: max(1, len(table.rows) // SAMPLE)]
    plain = [i for i, name in enumerate(names) if name not in special and not LABEL.match(name)]
    numeric = [i for i in plain if all(number(_cell(row, i)) is not None for row in sample)]
    numeric = [i for i in numeric if not all(math.isnan(number(_cell(row, i))) for row in sample)]
    if not numeric or not table.rows:
        raise DataError(f"{table.what} has no column of numbers; it has {', '.join(table.header[:12]) or 'nothing'}.")
    return numeric


def _cell(row, i):
    return row[i] if i < len(row) else ""


def numbers(rows, columns, skipped, what):
    """(T, columns) of float64; a cell that is no number is named."""
    values = np.empty((len(rows), len(columns)))
    for t, row in enumerate(rows):
        for j, i in enumerate(columns):
            value = number(_cell(row, i))
            if value is None:
                text = _cell(row, i).strip()[:20]
                raise DataError(f"{what} has {text!r} in row {t + 1 + skipped}, column {i + 1}, not a number; mend it.")
            values[t, j] = value
    return values


def _seconds(cells):
    """Numbers, or dates and times of day, as seconds from the first; None when a cell is neither."""
    found = [number(cell) for cell in cells]
    if None in found:
        try:
            found = [datetime.datetime.fromisoformat(cell.strip()).timestamp() for cell in cells]
        except (ValueError, OverflowError, OSError):
            return None
    times = np.array(found)
    return times - times[0]


def _by_recording(values, labels, times, keys):
    groups = {}
    for row, key in enumerate(keys):
        groups.setdefault(key, []).append(row)
    pieces, rates = [], []
    for key, rows in groups.items():
        fps, own = (None, None) if times is None else time_base(times[rows] - times[rows[0]])
        rates.append(fps)
        pieces.append(Piece(str(key).strip(), _frames(values[rows], labels), own))
    return Contents(pieces, rates[0] if len({r and round(r, 6) for r in rates}) == 1 else None)


def _frames(values, labels):
    """Columns nose_x, nose_y, ... become points; any others stay columns."""
    matched = [POINT.match(label) for label in labels]
    if all(matched) and len(labels) >= 4:
        columns = [("", m[1] or "point", _axis(m[2])) for m in matched]
        if len(set(columns)) == len(columns):
            return _points(columns, values)
    return Floats(values)


def _axis(word):
    return word.lower() if word.lower() in "xyz" else "likelihood"


def _points(columns: Sequence[tuple[str, str, str]], values):
    names = list(dict.fromkeys(name for _, name, _ in columns))
    where = {(name, axis): i for i, (_, name, axis) in enumerate(columns)}
    axes = [axis for axis in "xyz" if all((name, axis) in where for name in names)]
    if len(axes) < 2:
        return Floats(values)
    xy = np.stack([values[:, [where[name, axis] for name in names]] for axis in axes], -1)
    trust = [where.get((name, "likelihood")) for name in names]
    return keypoints(xy, None if None in trust else values[:, trust], names)
