"""Text files: rows and cells."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

from ..recordings import DataError
from .deeplabcut import heads_of, read_rows
from .pieces import Contents, Note, listed
from .tables import Table, number, table_contents

LONGEST_LINE = 2**24  # characters
DECIMAL = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")


def read_csv(path: Path, dataset: str | None) -> Contents:
    """A table in a text file; `dataset` names columns, divided by commas."""
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as stream:
        return read_text(stream, path.name, dataset)


def read_text(stream: io.TextIOBase, what: str, dataset: str | None) -> Contents:
    """A table in a stream of text."""
    start = [line for line, _ in zip(_lines(stream, what), range(20), strict=False)]
    stream.seek(0)
    divider = divider_of(start)
    rows, notes = _without_blanks(list(_rows(_lines(stream, what), divider)))
    if not rows:
        raise DataError(f"{what} has no rows.")
    _require_no_events(rows, what)
    if divider in (";", "\t"):
        rows, said = _with_points(rows)
        notes += said
    if (heads := heads_of(rows)) is not None:
        return read_rows(heads, rows[len(heads) :], what, dataset, notes)
    header, named, said = _header(rows)
    _require_rectangle(rows, what)
    _require_frames(rows, named, what)
    return table_contents(Table(header, rows[1:] if named else rows, what, [*notes, *said]), dataset)


def _header(rows):
    """Names of the columns, whether the first row holds them, and what is to be said of it."""
    first = [cell.strip() for cell in rows[0]]
    if sum(number(cell) is None for cell in first) * 2 > len(first):
        return first, True, []
    counted = first[1:] if first[0] == "" else first
    if len(first) > 2 and counted == [str(i) for i in range(len(counted))]:
        return first, True, [Note(f"its first row, {listed(counted, 3)}, counts the columns and is their header")]
    return [str(i) for i in range(len(first))], False, []


def _require_rectangle(rows, what):
    if len(rows) == 1 and any(number(cell) is not None for cell in rows[0]):
        raise DataError(f"{what} has one row; frames are rows, so turn the table round.")
    for number_of_row, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise DataError(
                f"{what} is no table: row 1 has {len(rows[0])} cells but row {number_of_row + 1} has {len(row)}."
            )


def _require_frames(rows, named, what):
    """Raise for a header without frames, and for a second row that says more of the columns, such as their units."""
    if named and len(rows) == 1:
        raise DataError(f"{what} has a header but no frames; leave it out.")
    words = [cell.strip() for cell in rows[1] if cell.strip() and number(cell) is None]
    below = rows[2] if len(rows) > 2 else []
    if named and 2 * len(words) > len(rows[1]) and 2 * sum(number(cell) is not None for cell in below) > len(below) > 0:
        raise DataError(f"{what} has words in row 2 ({listed(words, 3)}), as under a header; delete that row.")


def _require_no_events(rows, what):
    """BORIS writes what it knows of an observation above its table of events."""
    first = {row[0].strip().lower() for row in rows[:30] if row}
    if "observation id" in first and first & {"media file(s)", "observation date", "time offset (s)", "player #1"}:
        raise DataError(
            f"{what} is a table of behaviours as BORIS exports it, not of frames; give the video or the keypoints "
            "that it describes."
        )


def _lines(stream, what) -> Iterator[str]:
    while line := stream.readline(LONGEST_LINE):
        if len(line) >= LONGEST_LINE:
            raise DataError(f"{what} has a line of more than {LONGEST_LINE} characters; it is no table of text.")
        yield line


def divider_of(lines):
    """A semicolon or tab that divides every line alike, else the most frequent of all marks; None = blanks."""
    full = [line for line in lines if line.strip()]
    for mark in ";\t":
        if full and len({line.count(mark) for line in full}) == 1 and mark in full[0]:
            return mark
    counts = {mark: sum(line.count(mark) for line in full) for mark in ",;\t"}
    best = max(counts, key=counts.get)
    return best if counts[best] else None


def _rows(lines, divider):
    if divider is None:
        return (line.split() for line in lines)
    return csv.reader(lines, delimiter=divider)


def _without_blanks(rows):
    """Rows without blank lines; a row of empty cells is a frame in which all is missing, and stays."""
    blank = [i for i, row in enumerate(rows) if len(row) == 0 or (len(row) == 1 and not row[0].strip())]
    kept = [row for row in rows if len(row) > 1 or (row and row[0].strip())]
    kept, said = _without_comments(kept)
    last = max((i for i, row in enumerate(rows) if len(row) > 1 or (row and row[0].strip())), default=-1)
    inside = sum(i < last for i in blank)
    while len(kept) > 1 and not any(cell.strip() for cell in kept[0]):
        kept = kept[1:]  # cells of a sheet above its header
    return kept, [*said, *([Note(f"{inside} blank lines are left out")] if inside else [])]


def _without_comments(rows):
    """Rows without lines above the header that begin with # and are no row of the table."""
    wide = len(rows[-1]) if rows else 0
    first = next((i for i, row in enumerate(rows) if not row[0].lstrip().startswith("#") or len(row) == wide), 0)
    return rows[first:], [Note(f"{first} lines of comments are left out")] if first else []


def _with_points(rows):
    """1,5 becomes 1.5 in a table whose cells are not divided by commas."""
    if not any(DECIMAL.fullmatch(cell.strip()) for row in rows[:50] for cell in row):
        return rows, []
    changed = [[cell.replace(",", ".") if DECIMAL.fullmatch(cell.strip()) else cell for cell in row] for row in rows]
    return changed, [Note("its decimal commas are read as points: 1,5 is 1.5")]
