"""What the columns of a table are: time, counters, names of recordings, labels, coordinates of points, or features."""

import datetime
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..recordings import DataError
from .pieces import Clock, Contents, Note, Piece, left_aside, listed, time_base
from .points import found_points

SAMPLE = 200  # rows that decide which columns are numbers
MISSING = {
    "",
    "na",
    "nan",
    "null",
    "none",
    "n/a",
    "-nan",
    "?",
    "-",
    "--",
    ".",
    "nil",
    "n.a.",
    "#n/a",
    "#na",
    "<na>",
    "missing",
}
TIME = re.compile(
    r"(?:times?|timestamps?|t|date|datetime|seconds|sec)"
    r"(?:(?:[ _]+|[ _]*[\[(])(s|sec|seconds|ms|msec|us|ns|min)[\])]?)?"
)
SECONDS = {"ms": 1e-3, "msec": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0}
FRAME = {"frame", "frames", "frame_idx", "frame_number", "frame_id", "frame index"}
COUNTER = FRAME | {"", "index", "tstep_id", "unnamed: 0", "id", "row"}
RECORDING = {"seq_id", "recording", "session", "sequence", "video", "track", "animal", "recording_id", "individual",
             "subject", "animal_id", "track_id", "mouse", "mouse_id", "instance", "trial"}  # fmt: skip
LABEL = re.compile(r"^(is_)?(anomaly|label|labels|class|target|state|syllable|species|behaviou?r)$", re.IGNORECASE)
BOUTS = [{"from", "to"}, {"start", "stop"}, {"start", "end"}, {"start_s", "stop_s"}, {"onset", "offset"},
         {"start_frame", "stop_frame"}, {"start (s)", "stop (s)"}]  # fmt: skip
BORIS = [{"behavior", "behavior type"}, {"behavior", "status"}, {"behaviour", "status"}, {"observation id", "behavior"}]
LONG = {"bodypart", "bodyparts", "body_part", "keypoint", "keypoints", "node", "joint", "landmark", "marker"}


class Table(NamedTuple):
    """Rows of text, their header, where they come from, and what was said when they were read."""

    header: list[str]
    rows: list[list[str]]
    what: str
    notes: Sequence[Note] = ()


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
    names = [name.strip().lower() for name in table.header]
    if dataset is None:
        _require_frames(table, names)
    columns, notes = _asked(table, dataset) if dataset else number_columns(table, names)
    values = numbers(table.rows, columns, 1, table.what)
    labels = [table.header[i] for i in columns]
    times, said = _times(table, names)
    groups, which = _groups(table, names)
    sort = found_points(values, labels, table.what, asked=dataset is not None)
    pieces, more = [], list(sort.notes)
    for key, rows in groups.items():
        clock, begins = (Clock(), []) if times is None else _clock(times[rows])
        more += [*begins, *clock.notes, *_jumps(table, names, rows)]
        pieces.append(Piece(key, sort.view(rows), clock.times, clock.fps))
    return Contents(pieces, None, [*table.notes, *notes, *which, *said, *dict.fromkeys(more)])


def _require_frames(table, names):
    """Raise for tables whose rows are no frames."""
    if any(pair <= set(names) for pair in BORIS):
        raise DataError(
            f"{table.what} is a table of behaviours as BORIS exports it, not of frames; give the video or the "
            "keypoints that it describes."
        )
    if any(pair <= set(names) for pair in BOUTS):
        raise DataError(f"{table.what} is a table of bouts, not of frames; give the recording that it describes.")
    if long := LONG & set(names):
        raise DataError(
            f"{table.what} has one row for each point (column {sorted(long)[0]}); give one row for each frame, with "
            "columns such as nose_x, nose_y."
        )


def _asked(table, dataset):
    """The columns that `dataset` names; the name of a point stands for its coordinates."""
    found = []
    for name in (name.strip() for name in dataset.split(",")):
        own = [i for i, column in enumerate(table.header) if column == name]
        own = own or [i for i, column in enumerate(table.header) if _is_coordinate(column, name)]
        if not own:
            raise DataError(f"{table.what} has no column {name!r}; it has {listed(table.header, 12)}.")
        found += own
    return found, []


def _is_coordinate(column, point):
    return column.startswith(point) and column[len(point) :].strip("._ ").lower() in {
        "x",
        "y",
        "z",
        "likelihood",
        "score",
    }


def number_columns(table, names):
    """Columns of numbers that are neither time nor counters nor labels, and a note on all others."""
    sample = table.rows[:: max(1, len(table.rows) // SAMPLE)]
    special = [i for i, name in enumerate(names) if TIME.fullmatch(name) or name in COUNTER | RECORDING]
    plain = [i for i in range(len(names)) if i not in special]
    labels = [i for i in plain if LABEL.match(names[i])]
    cells = {i: [number(_cell(row, i)) for row in sample] for i in plain if i not in labels}
    text = [i for i, found in cells.items() if _is_text(found)]
    empty = [i for i, found in cells.items() if i not in text and all(map(math.isnan, found)) and _is_empty(table, i)]
    numeric = [i for i in cells if i not in text and i not in empty]
    if not numeric or not table.rows:
        raise DataError(f"{table.what} has no column of numbers; it has {listed(table.header, 12) or 'nothing'}.")
    named = lambda which: [table.header[i] for i in which]  # noqa: E731
    notes = [*left_aside("column of text", named(text)), *left_aside("empty column", named(empty))]
    return numeric, [*notes, *left_aside("column of labels", named(labels))]


def _is_text(cells):
    """Whether at least half of the cells that are not missing are no numbers; fewer are mistakes that get named."""
    words = sum(cell is None for cell in cells)
    return words > 0 and 2 * words >= words + sum(cell is not None and not math.isnan(cell) for cell in cells)


def _is_empty(table, i):
    return all(_cell(row, i).strip().lower() in MISSING for row in table.rows)


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


# --- time and recordings ------------------------------------------------------------------------------------------


def _times(table, names):
    """Seconds from the first column of times that can be read, and what is to be said of it and of the others."""
    found = [i for i, name in enumerate(names) if TIME.fullmatch(name)]
    read = {i: _seconds([_cell(row, i) for row in table.rows]) for i in found}
    usable = [i for i in found if read[i] is not None]
    notes = [_unread(table, i) for i in found if read[i] is None]
    if not usable:
        return None, notes
    unit = TIME.fullmatch(names[usable[0]])[1]
    return read[usable[0]] * SECONDS.get(unit, 1.0), [
        *notes,
        *left_aside("further column of times", [table.header[i] for i in usable[1:]]),
    ]


def _unread(table, i):
    """What is said of a column of times that is not used, with the first cell that is none."""
    cells = [_cell(row, i).strip() for row in table.rows]
    numeric = [number(cell) for cell in cells]
    wrong = next((t for t, value in enumerate(numeric) if value is None), 0)
    why = f"{cells[wrong][:20]!r} in row {wrong + 2} is no time" if None in numeric else "it is empty"
    return Note(f"the column of times {table.header[i]} is left aside: {why}")


def _clock(times):
    """The clock of one recording, from its first frame on."""
    start = times[np.argmax(np.isfinite(times))]
    said = [Note(f"its times begin at {start:.10g} s, which is 0 here")] if start != 0 else []
    return time_base(times - start), said


def _seconds(cells):
    """Numbers, or dates and times of day, as seconds; None when a cell is neither, or none has a value."""
    found = [number(cell) for cell in cells]
    if None in found:
        try:
            found = [_moment(cell.strip()) for cell in cells]
            found = [moment - min(found) for moment in found]
        except (ValueError, OverflowError, OSError):
            return None
    times = np.array(found)
    return times if np.isfinite(times).any() else None


def _moment(text):
    return math.nan if text.lower() in MISSING else datetime.datetime.fromisoformat(text).timestamp()


def _groups(table, names):
    """The rows of each recording by its name: one for each combination of what the columns of names say."""
    which = [i for i, name in enumerate(names) if name in RECORDING or (name == "id" and _is_identity(table, i))]
    varying = [i for i in which if len({_cell(row, i) for row in table.rows}) > 1]
    which = varying or which[:1]
    groups = {}
    for t, row in enumerate(table.rows):
        groups.setdefault("-".join(_cell(row, i).strip() for i in which), []).append(t)
    number = len(groups)
    by = listed([table.header[i] for i in which])
    return groups, [Note(f"its rows are {number} recordings, by {by}")] if number > 1 else []


def _is_identity(table, i):
    """Whether a column names animals rather than rows."""
    return len({_cell(row, i) for row in table.rows}) <= len(table.rows) / 2


def _jumps(table, names, rows):
    """Frame numbers of a recording that do not go up by one: frames are missing, or rows belong to several animals."""
    column = next((i for i, name in enumerate(names) if name in FRAME), None)
    if column is None:
        return []
    found = np.array([number(_cell(table.rows[t], column)) for t in rows], float)  # None becomes NaN
    return frame_jumps(found, table.header[column])


def frame_jumps(numbers: np.ndarray, column: str) -> list[Note]:
    """What is odd in the numbers of frames, where rows do not go up by one."""
    steps = np.diff(numbers)
    if len(steps) == 0 or not np.isfinite(steps).all():
        return []
    usual = max(1.0, float(np.median(steps)))
    back, gaps = int(np.sum(steps <= 0)), int(np.sum(steps > usual))
    said = [f"repeat or go back {back} times"] if back else []
    said += [f"jump {gaps} times, by up to {int(steps.max())}"] if gaps else []
    if not said:
        return []
    return [Note(f"its frame numbers ({column}) {' and '.join(said)}; rows count as frames in a row")]
