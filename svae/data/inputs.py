"""Inputs from files: what somebody did to the animal, or what it was shown, at every frame of every recording."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from .clock import frames_of, seconds_known
from .driven import with_inputs
from .files import files_of
from .labels import FRAME, TIME
from .readers.pieces import listed
from .readers.sheets import RECORDING, Sheet, number_in, owners, sheet_of
from .readers.tables import number
from .recordings import DataError, Recordings


def load_inputs(data: Recordings, source: str | os.PathLike) -> Recordings:
    """Recordings with the inputs of a file, a folder or a pattern of files.

    A table has a column for each input, and a line for each frame; or a column `time_s` or `frame`, and a line for each
    change, which holds until the next; or a column `recording` and one line for each recording. Columns of text are
    left aside.

    Args:
        data: Recordings, such as `load` returns.
        source: A path, a folder, or a pattern such as "stimuli/*.csv".

    Returns:
        The recordings with their inputs, in the units of the table.

    Raises:
        DataError: The inputs do not fit; the sentence says where.

    Examples:
        >>> import numpy as np, pathlib, tempfile
        >>> import svae
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "light.csv"
        >>> _ = file.write_text("time_s,light\\n0,0\\n0.5,30\\n")
        >>> walk = svae.load({"walk": np.zeros((4, 2))}, fps=4)
        >>> svae.data.load_inputs(walk, file).beside[0].inputs.tolist()
        [[0.0], [0.0], [30.0], [30.0]]
    """
    found: list[Any] = [None] * len(data.names)
    names: tuple[str, ...] = ()
    notes: list[str] = []
    for file in files_of(Path(os.path.expanduser(os.fspath(source)))).files:
        sheet = sheet_of(file)
        columns, said = _columns(sheet)
        notes += said
        here = tuple(sheet.header[i] for i in columns)
        if names and here != names:
            raise DataError(f"{sheet.what} has the inputs {listed(here)}, other files have {listed(names)}.")
        names = here
        rows = np.array(owners(sheet, data.names))
        for i in np.unique(rows):
            own = np.flatnonzero(rows == i)
            if found[i] is not None:
                raise DataError(f"{sheet.what} has inputs of {data.names[i]}, which another file has too.")
            values = np.array([[number_in(sheet, int(row), c) for c in columns] for row in own])
            found[i], said = _every_frame(sheet, data, int(i), own, values)
            notes += said
    lost = [name for name, inputs in zip(data.names, found, strict=True) if inputs is None]
    if lost:
        raise DataError(f"There are no inputs of {listed(lost)}; every recording needs them at every frame.")
    driven = with_inputs(data, found, names=names)
    return driven._replace(notes=(*driven.notes, *notes))


def _columns(sheet: Sheet) -> tuple[list[int], list[str]]:
    """The columns of numbers, and a sentence on the others."""
    special = {*RECORDING, *FRAME, *TIME, ""}
    rest = [i for i, name in enumerate(sheet.names) if name not in special]
    texts = [i for i in rest if any(number(cell) is None for cell in sheet.cells(i))]
    kept = [i for i in rest if i not in texts]
    if not kept:
        raise DataError(f"{sheet.what} has no column of numbers for inputs; it has {listed(sheet.header, 12)}.")
    words = listed([sheet.header[i] for i in texts])
    return kept, [f"{sheet.what}: {words} holds text and is no input."] if texts else []


def _every_frame(sheet: Sheet, data: Recordings, i: int, rows: np.ndarray, values: np.ndarray):
    """Values (T, n) of one recording from its rows (N, n), and what is to be said of them."""
    frame, time, T = sheet.place(FRAME), sheet.place(TIME), len(data.sequences[i])
    if frame is None and time is None:
        if len(rows) == T:
            return values, []
        if len(rows) == 1 and sheet.place(RECORDING) is not None:
            return np.repeat(values, T, 0), []
        raise DataError(
            f"{sheet.what} has {len(rows)} lines for {data.names[i]}, which has {T} frames; give a line for each, or a "
            "column time_s."
        )
    at = np.array([number_in(sheet, int(row), time if frame is None else frame) for row in rows])
    if np.any(np.diff(at) < 0):
        raise DataError(f"{sheet.what} goes back in time for {data.names[i]}; sort its lines.")
    if frame is None:
        seconds_known(data, i, sheet.what)
        at = frames_of(data, i, at)
    place = np.searchsorted(at, np.arange(T), side="right") - 1
    late = int(np.sum(place < 0))
    if late == T:
        raise DataError(f"{sheet.what} begins after the end of {data.names[i]}; do they share a clock?")
    said = [f"{sheet.what}: the first {late} frames of {data.names[i]} have its first line."] if late else []
    return values[np.maximum(place, 0)], said
