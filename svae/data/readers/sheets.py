"""Tables of text that describe recordings from outside: labels, inputs, groups. One line of names, then rows."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..recordings import DataError
from .csvs import divider_of
from .pieces import listed

RECORDING = ("recording", "observation id", "session", "video", "recording_id", "media file name", "media file", "file")
BEHAVIOUR = ("behavior", "behaviour")  # a column of every BORIS export
ABOVE = 40  # lines that BORIS may write above the names of its columns


class Sheet(NamedTuple):
    """The names of columns in lower case and as they are, rows of as many cells, and the file they come from."""

    names: list[str]
    header: list[str]
    rows: list[list[str]]
    file: Path

    @property
    def what(self) -> str:
        return self.file.name

    def place(self, wanted: Sequence[str]) -> int | None:
        """Where the first of some names stands, if any does."""
        return next((self.names.index(name) for name in wanted if name in self.names), None)

    def cells(self, place: int) -> list[str]:
        return [row[place].strip() for row in self.rows]


def sheet_of(file: Path) -> Sheet:
    """The table of a file."""
    try:
        with open(file, encoding="utf-8-sig", newline="") as stream:
            lines = stream.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file.name} could not be read as a table of text: {error}.") from None
    divider = divider_of(lines[-20:]) or ","
    rows = list(csv.reader(lines, delimiter=divider))
    several = max(map(len, rows), default=0) > 1  # a blank line of one column is a blank cell
    rows = [row or [""] for i, row in enumerate(rows) if row or (i and not several)]
    first = next((i for i, row in enumerate(rows[:ABOVE]) if set(BEHAVIOUR) & set(_lower(row))), 0)
    if len(rows) < first + 2:
        raise DataError(f"{file.name} has no rows below the names of its columns.")
    header, body = [cell.strip() for cell in rows[first]], rows[first + 1 :]
    for number, row in enumerate(body):
        if len(row) != len(header):
            raise DataError(f"{file.name} has {len(row)} cells in row {first + number + 2}, but {len(header)} columns.")
    return Sheet(_lower(header), header, body, file)


def _lower(cells):
    return [cell.strip().lower() for cell in cells]


def number_in(sheet: Sheet, row: int, place: int) -> float:
    """A cell as a finite number."""
    text = sheet.rows[row][place].strip()
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value != value or abs(value) == float("inf"):
        raise DataError(f"{sheet.what} has {text[:20]!r} as {sheet.header[place]} in row {row + 2}, not a number.")
    return value


def owners(sheet: Sheet, names: Sequence[str], *, single: bool = True) -> list[int]:
    """The recording of each row: by its column, else by the name of the file; the only one where there is one.

    `single` says that a table without a column of recordings may be of one recording.
    """
    places = [i for name in RECORDING for i, own in enumerate(sheet.names) if own == name]
    if not places:
        if not single:
            raise DataError(f"{sheet.what} has no column called recording; it has {listed(sheet.header, 12)}.")
        return [_of_file(sheet, names)] * len(sheet.rows)
    for place in places:  # BORIS has the observation and the file of the video
        known = {cell: owner_of(cell, names) for cell in dict.fromkeys(sheet.cells(place))}
        if None not in known.values():
            return [known[cell] for cell in sheet.cells(place)]  # type: ignore[misc]
    cells = list(dict.fromkeys(sheet.cells(places[0])))
    if len(cells) == 1 and len(names) == 1 and set(BEHAVIOUR) & set(sheet.names):
        return [0] * len(sheet.rows)  # an observation may be called anything
    lost = [cell for cell in cells if owner_of(cell, names) is None]
    raise DataError(
        f"{sheet.what} speaks of {listed(lost)}, which is no recording; there are {listed(list(names), 20)}."
    )


def owner_of(cell: str, names: Sequence[str]) -> int | None:
    """The recording that a name or the path of a file speaks of."""
    forms = [cell, Path(cell.replace("\\", "/")).name, Path(cell.replace("\\", "/")).stem]
    plain = [name.casefold() for name in names]
    return next((plain.index(form.casefold()) for form in forms if form.casefold() in plain), None)


def _of_file(sheet, names):
    if len(names) == 1:
        return 0
    own = owner_of(sheet.file.name, names)
    begun = [i for i, name in enumerate(names) if sheet.file.stem.casefold().startswith(name.casefold())]
    if own is None and len(begun) != 1:
        raise DataError(
            f"{sheet.what} does not say which recording it is of: name it like one, or give it a column called "
            f"recording; there are {listed(list(names), 20)}."
        )
    return begun[0] if own is None else own
