"""Text files: rows and cells, and DeepLabCut's csv with several header rows."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

from ..recordings import DataError
from .pieces import Contents
from .poses import points_by_animal
from .tables import Table, number, numbers, table_contents

LONGEST_LINE = 2**24  # characters


def read_csv(path: Path, dataset: str | None) -> Contents:
    """A table in a text file; `dataset` names columns, divided by commas."""
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as stream:
        return read_text(stream, path.name, dataset)


def read_text(stream: io.TextIOBase, what: str, dataset: str | None) -> Contents:
    """A table in a stream of text."""
    start = "".join(line for line, _ in zip(_lines(stream, what), range(20), strict=False))
    stream.seek(0)
    divider = _divider(start)
    rows = [row for row in _rows(_lines(stream, what), divider) if any(cell.strip() for cell in row)]
    if not rows:
        raise DataError(f"{what} has no rows.")
    if (levels := _levels(rows)) is not None:
        return _deeplabcut(levels, rows[len(levels) :], what)
    named = sum(number(cell) is None for cell in rows[0]) * 2 > len(rows[0])
    header = [cell.strip() for cell in rows[0]] if named else [str(i) for i in range(len(rows[0]))]
    _require_rectangle(rows, what)
    return table_contents(Table(header, rows[1:] if named else rows, what), dataset)


def _require_rectangle(rows, what):
    if len(rows) == 1:
        raise DataError(f"{what} has one row; frames are rows, so turn the table round.")
    for number_of_row, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise DataError(
                f"{what} is no table: row 1 has {len(rows[0])} cells but row {number_of_row + 1} has {len(row)}."
            )


def _lines(stream, what) -> Iterator[str]:
    while line := stream.readline(LONGEST_LINE):
        if len(line) >= LONGEST_LINE:
            raise DataError(f"{what} has a line of more than {LONGEST_LINE} characters; it is no table of text.")
        yield line


def _divider(text):
    """The most frequent of comma, semicolon and tab in the first lines; None = blanks."""
    counts = {mark: text.count(mark) for mark in ",;\t"}
    best = max(counts, key=counts.get)
    return best if counts[best] else None


def _rows(lines, divider):
    if divider is None:
        return (line.split() for line in lines)
    return csv.reader(lines, delimiter=divider)


# --- DeepLabCut ---------------------------------------------------------------------------------------------------


def _levels(rows):
    """The header rows of DeepLabCut (scorer, [individuals,] bodyparts, coords), or None."""
    words = {"scorer", "individuals", "bodyparts", "coords"}
    heads = [row for row in rows[:4] if words & {cell.strip().lower() for cell in row[:2]}]
    return heads if len(heads) >= 3 or (len(heads) == 2 and "bodyparts" in heads[0][0]) else None


def _deeplabcut(levels, rows, what):
    first = 1 + max(i for head in levels for i, cell in enumerate(head[:2]) if cell.strip().lower() in
                    {"scorer", "individuals", "bodyparts", "coords"})  # fmt: skip
    names = [[cell.strip() for cell in head[first:]] for head in levels]
    if len(names) == 2:
        names.insert(0, ["scorer"] * len(names[0]))
    if len({len(level) for level in names}) != 1:
        raise DataError(f"{what} has header rows of different lengths; export it from DeepLabCut again.")
    columns = [_undoubled(column) for column in zip(*names, strict=True)]
    return points_by_animal(columns, numbers(rows, range(first, first + len(columns)), len(levels), what), what)


def _undoubled(column):
    """Names as they were before a table library told equal ones apart by .1, .2, ..."""
    return tuple(re.sub(r"\.\d+$", "", word) for word in column)
