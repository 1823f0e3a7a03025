"""Labels from files: bouts, what BORIS exports, or a line for each frame."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .carried import with_labels
from .clock import frames_between, frames_of, seconds_known
from .files import files_of
from .readers.pieces import listed
from .readers.sheets import BEHAVIOUR, RECORDING, Sheet, number_in, owners, sheet_of
from .recordings import DataError, Recordings

START = ("start_s", "start_frame", "start (s)", "start", "onset", "from")
STOP = ("stop_s", "stop_frame", "stop (s)", "stop", "end", "offset", "to", "end_s", "end_frame", "end (s)")
NAME = ("state_name", "label", *BEHAVIOUR, "annotation", "syllable", "action", "class", "name", "state")
STATUS = ("behavior type", "behaviour type", "status")  # of an event: START, STOP or POINT
BLOCK = ("block",)  # of a run with several discrete blocks
FRAME, TIME = ("frame", "frame_number", "frame index"), ("time_s", "time", "seconds", "t", "time (s)")
UNKNOWN = {"", "-1", "nan", "na", "n/a", "unlabelled", "unlabeled"}


class Bout(NamedTuple):
    """A stretch of one label; seconds, or frames."""

    recording: int
    label: str
    start: float
    stop: float
    in_frames: bool


def load_labels(data: Recordings, source: str | os.PathLike) -> Recordings:
    """Recordings with the labels of a file, a folder or a pattern of files.

    A file has bouts (start, stop, label), as bouts.csv of a run, or what BORIS exports (aggregated or tabular events),
    or one line for each frame: a column of labels, or a column of 0 and 1 for each. A column called recording says
    whose they are; else each file is called like a recording. Frames of which nobody speaks are free.

    Args:
        data: Recordings, such as `load` returns.
        source: A path, a folder, or a pattern such as "labels/*.csv".

    Returns:
        The recordings with their labels. With names, state k is the k-th name in alphabetical order.

    Raises:
        DataError: The labels do not fit; the sentence says where.

    Examples:
        >>> import numpy as np, pathlib, tempfile
        >>> import svae
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "scored.csv"
        >>> _ = file.write_text("recording,label,start,stop\\nwalk,rear,0.5,1.0\\n")
        >>> walk = svae.load({"walk": np.zeros((6, 2))}, fps=4)
        >>> svae.data.load_labels(walk, file).beside[0].labels.tolist()
        [-1, -1, 0, 0, -1, -1]
    """
    found = [np.full(len(y), "", object) for y in data.sequences]
    notes: list[str] = []
    for file in files_of(Path(os.path.expanduser(os.fspath(source)))).files:
        sheet = sheet_of(file)
        if sheet.place(START) is not None and sheet.place(STOP) is not None:
            bouts = _bouts(sheet, data)
        elif sheet.place(BEHAVIOUR) is not None and sheet.place(STATUS) is not None:
            bouts, said = _events(sheet, data)
            notes += said
        else:
            _frames(sheet, data, found)
            continue
        notes += _fill(sheet, data, bouts, found)
    numbers = all(label.isdigit() for one in found for label in one if label)
    every = [np.array([int(x) if x else -1 for x in one]) for one in found] if numbers else found
    named = with_labels(data, dict(zip(data.names, every, strict=True)))
    known = sum(int(np.sum(one.labels >= 0)) for one in named.beside)
    notes.append(f"{known} of {data.frames} frames are labelled, {100 * known / data.frames:.2g} %.")
    return named._replace(notes=(*named.notes, *notes))


# --- bouts --------------------------------------------------------------------------------------------------------


def _bouts(sheet: Sheet, data: Recordings) -> list[Bout]:
    start, stop, name = sheet.place(START), sheet.place(STOP), _named(sheet)
    in_frames, called = "frame" in sheet.names[start], _names_beside(sheet)
    found, block = [], sheet.place(BLOCK)
    shown = "" if block is None or not sheet.rows else sheet.rows[0][block]
    for row, owner in enumerate(owners(sheet, data.names)):
        if block is not None and sheet.rows[row][block] != shown:
            continue  # of several discrete blocks the first one is the one that labels are about
        label = sheet.rows[row][name].strip()
        a, b = number_in(sheet, row, start), number_in(sheet, row, stop)
        found.append(Bout(owner, called.get(label, label), a, b, in_frames))
    return found


def _named(sheet):
    place = sheet.place(NAME)
    if place is None:
        raise DataError(f"{sheet.what} has no column of labels; call one label. It has {listed(sheet.header, 12)}.")
    return place


def _names_beside(sheet: Sheet) -> dict[str, str]:
    """The names that people have given to the states of a run, beside its bouts.csv; states without one get none."""
    import json

    file = sheet.file.with_name("names.json")
    if sheet.file.name != "bouts.csv" or "state_name" in sheet.names or not file.is_file():
        return {}
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    names = {k: v for k, v in known.items() if isinstance(v, str)} if isinstance(known, dict) else {}
    return {k: names.get(k, f"state {k}") for k in set(sheet.cells(_named(sheet)))} if names else {}


def _events(sheet: Sheet, data: Recordings) -> tuple[list[Bout], list[str]]:
    """START and STOP of each behaviour of each subject, in pairs; points have no duration."""
    name, status, time = _named(sheet), sheet.place(STATUS), sheet.place(TIME)
    if time is None:
        raise DataError(f"{sheet.what} has events but no column of times; it has {listed(sheet.header, 12)}.")
    subject, found, points = sheet.place(("subject",)), [], 0
    open_at: dict[tuple[Any, ...], float] = {}
    for row, owner in enumerate(owners(sheet, data.names)):
        cells, at = sheet.rows[row], number_in(sheet, row, time)
        who = owner, "" if subject is None else cells[subject].strip(), cells[name].strip()
        kind = cells[status].strip().upper()
        points += kind == "POINT"
        if kind == "START" and who not in open_at:
            open_at[who] = at
        elif kind == "STOP" and who in open_at:
            found.append(Bout(owner, who[2], open_at.pop(who), at, False))
        elif kind != "POINT":
            raise DataError(
                f"{sheet.what} has {kind} of {who[2]} at {at:g} s without its other end; mend row {row + 2}."
            )
    if open_at:
        who, at = next(iter(open_at.items()))
        raise DataError(f"{sheet.what} has START of {who[2]} at {at:g} s and no STOP; mend it.")
    return found, [f"{sheet.what} has {points} events without duration, left aside."] if points else []


def _fill(sheet: Sheet, data: Recordings, bouts: Iterable[Bout], found: list[np.ndarray]) -> list[str]:
    """Writes the labels of bouts to their frames; a sentence on labels whose bouts are too short for one."""
    short, filled = set(), set()
    for bout in bouts:
        if bout.label.lower() in UNKNOWN:
            continue
        first, last = frames_between(data, bout.recording, bout.start, bout.stop, bout.in_frames, sheet.what)
        own = found[bout.recording][first:last]
        for other in set(own) - {"", bout.label}:
            raise DataError(
                f"{sheet.what}: {other} and {bout.label} overlap at {bout.start:g} in {data.names[bout.recording]}; a "
                "frame has one label, so leave one of them out."
            )
        own[:] = bout.label
        (filled if last > first else short).add(bout.label)
    lost = sorted(short - filled)
    return [f"{sheet.what}: no frame is labelled {listed(lost)}, whose bouts are shorter than one."] if lost else []


# --- a line for each frame ----------------------------------------------------------------------------------------


def _frames(sheet: Sheet, data: Recordings, found: list[np.ndarray]) -> None:
    rows = np.array(owners(sheet, data.names))
    labels = np.array(_labels_of_rows(sheet), object)
    for i in np.unique(rows):
        own = np.flatnonzero(rows == i)
        at = _places(sheet, data, int(i), own)
        found[i][at] = labels[own]


def _labels_of_rows(sheet: Sheet) -> list[str]:
    """The label of each row: from a column of labels, or from a column of 0 and 1 for each label."""
    special = {*RECORDING, *FRAME, *TIME, ""}
    rest = [i for i, name in enumerate(sheet.names) if name not in special]
    place = sheet.place(NAME)
    if place is not None or len(rest) == 1:
        cells = sheet.cells(rest[0] if place is None else place)
        return ["" if cell.lower() in UNKNOWN else cell.removesuffix(".0") for cell in cells]
    if not rest or {cell for i in rest for cell in sheet.cells(i)} - {"0", "1", "", "0.0", "1.0"}:
        raise DataError(f"{sheet.what} has no column of labels; call one label. It has {listed(sheet.header, 12)}.")
    found = []
    for number, row in enumerate(sheet.rows):
        ones = [sheet.header[i] for i in rest if row[i].strip() in ("1", "1.0")]
        if len(ones) > 1:
            raise DataError(f"{sheet.what} has {' and '.join(ones)} in row {number + 2}; a frame has one label.")
        found.append(ones[0] if ones else "")
    return found


def _places(sheet: Sheet, data: Recordings, i: int, rows: np.ndarray) -> np.ndarray:
    """The frames that some rows speak of: by their number, by their time, or all in order."""
    frame, time, T = sheet.place(FRAME), sheet.place(TIME), len(data.sequences[i])
    if frame is not None:
        at = np.array([number_in(sheet, int(row), frame) for row in rows]).astype(int)
    elif time is not None:
        seconds_known(data, i, sheet.what)
        at = frames_of(data, i, np.array([number_in(sheet, int(row), time) for row in rows]))
    elif len(rows) != T:
        raise DataError(f"{sheet.what} has {len(rows)} lines for {data.names[i]}, which has {T} frames.")
    else:
        at = np.arange(T)
    if at.min() < 0 or at.max() >= T:
        raise DataError(
            f"{sheet.what} speaks of frame {at[(at < 0) | (at >= T)][0]} of {data.names[i]}, which has {T}."
        )
    return at
