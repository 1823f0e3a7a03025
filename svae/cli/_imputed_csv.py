"""Imputed recordings as csv, in the layout of the file that they came from."""

import csv
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from svae.cli._unaligned import Filled

DIGITS = 7  # of a number that is written


class Cells(NamedTuple):
    """A csv file: all its rows, and the columns of each entry of a frame."""

    file: Path
    divider: str
    rows: list[list[str]]
    first: int  # row of frame 0
    columns: dict[tuple[str, str, str], int]  # (animal, point, axis), or ("", "", number of the column)


def write(out: Path, data: str, recordings: Any, found: list[Filled]) -> list[str]:
    """Write every recording into `out` and the list filled.csv; the names of the files.

    A csv file keeps all its rows, columns and headers, and only empty cells change; others become new csv files.
    """
    from svae._sealed import write_atomically

    out.mkdir(parents=True, exist_ok=True)
    opened: dict[Path, Cells] = {}
    made: dict[str, bytes] = {}
    for name, y, one in zip(recordings.names, recordings.sequences, found, strict=True):
        source = _source(data, name)
        cells = opened.get(source) or (source and _cells(source))
        points = tuple(getattr(y, "points", ()))
        if cells is None or not _fits(cells, name, points, one):
            made[f"{name}.csv"] = _new(points, one)
            continue
        opened[source] = cells
        _fill(cells, name, points, one)
    made |= {cells.file.name: _text(cells.rows, cells.divider) for cells in opened.values()}
    made["filled.csv"] = _text([["recording", "frame", "entry", "sd"], *_list(recordings, found)], ",")
    for name, text in made.items():
        write_atomically(out / name, text)
    return list(made)


def _text(rows, divider) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=divider, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _list(recordings, found) -> Iterator[list]:
    """One row for each point or number that was filled in."""
    for name, y, one in zip(recordings.names, recordings.sequences, found, strict=True):
        points = getattr(y, "points", ())
        for t, *entry in np.argwhere(one.new).tolist():
            label = points[entry[0]] if points and len(entry) == 1 else "/".join(map(str, entry))
            yield [name, t, label, f"{one.sd[t, *entry]:.{DIGITS}g}"]


def _source(data: str, name: str) -> Path | None:
    """The csv file that a recording came from."""
    from svae.data import safe_names
    from svae.data.files import files_of
    from svae.data.load import stem_of
    from svae.data.readers.sniff import kind_of

    files = [file for file in files_of(Path(data).expanduser()).files if kind_of(file) == "csv"]
    stems = {file: safe_names([stem_of(file)])[0] for file in files}
    mine = [file for file, stem in stems.items() if name == stem or name.startswith(f"{stem}-")]
    return max(mine, key=lambda file: len(stems[file]), default=None)


def _cells(file: Path) -> Cells:
    """The cells of DeepLabCut's csv, of a table with columns such as nose_x, or of any table of numbers."""
    from svae.data.readers.csvs import divider_of
    from svae.data.readers.deeplabcut import LEVELS, heads_of
    from svae.data.readers.points import coordinates_of
    from svae.data.readers.tables import Table, number_columns

    text = file.read_text(encoding="utf-8-sig", errors="replace")
    divider = divider_of(text.splitlines(keepends=True)[:20]) or " "
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=divider) if any(c.strip() for c in row)]
    if (levels := heads_of(rows)) is not None:
        heads = [[cell.strip() for cell in row] for row in levels]
        names = {
            next(c.lower() for c in head[:2] if c.lower() in LEVELS): head for head in heads if LEVELS & _lower(head)
        }
        width = range(
            1 + max(i for head in heads for i, c in enumerate(head[:2]) if c.lower() in LEVELS), len(heads[-1])
        )
        animal = names.get("individuals", [""] * len(heads[-1]))
        key = lambda i: (animal[i], names["bodyparts"][i], names["coords"][i].lower())  # noqa: E731
        return Cells(file, divider, rows, len(levels), {key(i): i for i in width})
    header = [cell.strip() for cell in rows[0]]
    if len(coordinates := coordinates_of(header)) >= 4:
        return Cells(file, divider, rows, 1, {("", c.point, c.axis): i for i, c in coordinates.items()})
    numbers, _ = number_columns(Table(header, rows[1:], file.name), [name.lower() for name in header])
    return Cells(file, divider, rows, 1, {("", "", str(j)): i for j, i in enumerate(numbers)})


def _lower(head):
    return {cell.lower() for cell in head[:2]}


def _places(cells: Cells, name: str, points: tuple[str, ...], one: Filled) -> Iterator[tuple[tuple, int | None]]:
    """(index in a frame, column) of every entry; None where the file has no such column."""
    animals = {animal for animal, _, _ in cells.columns}
    mine = next((a for a in animals if len(animals) > 1 and name.endswith(f"-{a}")), next(iter(animals)))
    for index in np.ndindex(one.frames.shape[1:]):
        key = (mine, points[index[0]], "xyz"[index[1]]) if points else ("", "", str(index[0]))
        yield index, cells.columns.get(key)


def _fits(cells, name, points, one) -> bool:
    """Whether the file has a column for each entry and a row for each frame."""
    shape = one.frames.shape[1:]
    known = (points and len(shape) == 2) or (not points and len(shape) == 1)
    return bool(
        known
        and len(cells.rows) - cells.first == len(one.frames)
        and all(column is not None for _, column in _places(cells, name, points, one))
    )


def _fill(cells: Cells, name, points, one) -> None:
    """Only cells of entries that were filled in change; the likelihood of a filled point becomes 1."""
    animals = {animal for animal, _, _ in cells.columns}
    mine = next((a for a in animals if len(animals) > 1 and name.endswith(f"-{a}")), next(iter(animals)))
    for index, column in _places(cells, name, points, one):
        new = one.new[:, index[0]]
        trust = cells.columns.get((mine, points[index[0]], "likelihood")) if points else None
        for t in np.flatnonzero(new):
            row = cells.rows[cells.first + t]
            row[column] = f"{one.frames[t][index]:.{DIGITS}g}"
            if trust is not None:
                row[trust] = "1"


def _new(points: tuple[str, ...], one: Filled) -> bytes:
    """DeepLabCut's layout for points; columns with their numbers for anything else."""
    T = len(one.frames)
    if not points:
        flat = one.frames.reshape(T, -1)
        return _text([list(range(flat.shape[1])), *([f"{v:.{DIGITS}g}" for v in row] for row in flat)], ",")
    parts = (*"xyz"[: one.frames.shape[-1]], "likelihood")
    head = [["scorer", *["svae"] * len(points) * len(parts)], ["bodyparts", *(n for n in points for _ in parts)]]
    head.append(["coords", *parts * len(points)])
    return _text([*head, *([t, *itertools.chain.from_iterable(map(_shown, one.frames[t]))] for t in range(T))], ",")


def _shown(point) -> list[str]:
    """The cells of a point, empty where it is not known."""
    known = bool(np.isfinite(point).all())
    return [*(f"{v:.{DIGITS}g}" if known else "" for v in point), str(int(known))]
