"""DeepLabCut's tables, csv and h5: columns of (scorer, individual, point, coordinate)."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..recordings import DataError
from .pieces import Contents, Note, Piece, doubted, keypoints, left_aside, listed, numbers_in, require_in_memory, text
from .tables import frame_jumps, number, numbers

TOKEN = re.compile(rb"V([^\n]*)\np(\d+)\n|g(\d+)\n")
LEVELS = {"scorer", "individuals", "bodyparts", "coords"}  # of the header


def heads_of(rows):
    """The header rows of DeepLabCut (scorer, individuals, bodyparts, coords, or some of them), or None."""
    heads = [row for row in rows[:4] if LEVELS & {cell.strip().lower() for cell in row[:2]}]
    return heads if len(heads) >= 3 or (len(heads) == 2 and "bodyparts" in heads[0][0]) else None


def read_rows(heads, rows, what, dataset, notes) -> Contents:
    """A table under DeepLabCut's header rows."""
    if any("labeled-data" in cell for row in rows[:5] for cell in row[:3]):
        raise DataError(f"{what} holds images that people labelled, not a recording; give the tracking of a video.")
    first = 1 + max(i for head in heads for i, cell in enumerate(head[:2]) if cell.strip().lower() in LEVELS)
    levels = [next(cell.strip().lower() for cell in head[:2] if cell.strip().lower() in LEVELS) for head in heads]
    names = [[cell.strip() for cell in head[first:]] for head in heads]
    if len({len(level) for level in names}) != 1:
        raise DataError(f"{what} has header rows of different lengths; export it from DeepLabCut again.")
    columns = [_undoubled(column) for column in zip(*names, strict=True)]
    values = numbers(rows, range(first, first + len(columns)), len(heads), what)
    jumps = frame_jumps(np.array([number(row[0]) for row in rows], float), "its first column") if rows else []
    found = points_by_animal(columns, values, what, levels=levels, wanted=dataset)
    return found._replace(notes=[*notes, *jumps, *found.notes])


def _undoubled(column):
    """Names as they were before a table library told equal ones apart by .1, .2, ..."""
    return tuple(re.sub(r"\.\d+$", "", word) for word in column)


def points_by_animal(
    columns: list[tuple[str, ...]],
    values: np.ndarray,
    what: str,
    *,
    levels: Sequence[str] = (),
    wanted: str | None = None,
) -> Contents:
    """Columns (scorer, [animal,] point, coordinate) of a table (T, columns) as one recording for each animal.

    `levels` are the names of those four where the file has them; `wanted` names points, divided by commas.
    """
    whose = _whose(columns, levels)
    table = {(who, column[-2], column[-1]): i for i, (who, column) in enumerate(zip(whose, columns, strict=True))}
    if len(table) < len(columns):
        raise DataError(f"{what} has columns of one name; export it from DeepLabCut again.")
    points = {who: _placed(table, who) for who in dict.fromkeys(whose)}
    if not any(points.values()):
        raise DataError(f"{what} has points without x and y; it is no table of keypoints.")
    points, notes = _alike({who: names for who, names in points.items() if names})
    if wanted is not None:
        points = {who: _chosen(names, wanted, what) for who, names in points.items()}
    used = {(who, name) for who, names in points.items() for name in names}
    rest = dict.fromkeys(name for who, name, _ in table if (who, name) not in used and wanted is None and who in points)
    pieces, unseen, notes = [], [], [*notes, *left_aside("column without x and y", list(rest))]
    for who, names in points.items():
        piece, said = _animal(table, values, who, names)
        notes += said
        (pieces if np.isfinite(piece.y[:]).any() else unseen).append(piece)
    if not pieces:
        raise DataError(f"{what} has no point that is seen in any frame; track the video first.")
    notes += left_aside("animal that is never seen", [piece.name for piece in unseen])
    if len(points) > 1:
        notes.append(Note(f"its animals are recordings of their own: {listed([p.name for p in pieces])}"))
    return Contents(pieces if len(points) > 1 else [pieces[0]._replace(name="")], notes=list(dict.fromkeys(notes)))


def _whose(columns, levels):
    """The animal of each column: all that is above point and coordinate, but for a scorer that all share."""
    above = [column[:-2] for column in columns]
    if levels[:1] == ["scorer"] or not levels:
        same = len({names[:1] for names in above}) == 1
        above = [names[1:] if same else names for names in above]
    return ["-".join(names) for names in above]


def _placed(table, who):
    """Points of an animal that have x and y."""
    names = dict.fromkeys(point for owner, point, _ in table if owner == who)
    return [name for name in names if {(who, name, "x"), (who, name, "y")} <= table.keys()]


def _alike(points):
    """Animals that have the same points; DeepLabCut keeps those of no animal under the name `single`."""
    others = [names for who, names in points.items() if who != "single"]
    if "single" in points and others and points["single"] != others[0]:
        single = points.pop("single")
        return points, left_aside("point that belongs to no animal", single)
    return points, []


def _chosen(names, wanted, what):
    asked = [name.strip() for name in wanted.split(",")]
    for name in asked:
        if name not in names:
            raise DataError(f"{what} has no point {name!r}; it has {listed(names, 12)}.")
    return asked


def _animal(table, values, who, points):
    axes = "xyz" if all((who, point, "z") in table for point in points) else "xy"
    flat = [f"{point} z" for point in points if (who, point, "z") in table and axes == "xy"]
    xy = np.stack([values[:, [table[who, point, axis] for point in points]] for axis in axes], -1)
    trust = [table.get((who, point, "likelihood")) for point in points]
    known = [np.ones(len(values)) if i is None else values[:, i] for i in trust]
    confidence = None if set(trust) == {None} else np.stack(known, 1)
    said = [*left_aside("height", flat), *doubted(xy, confidence)]
    return Piece(who, keypoints(xy, confidence, points)), said


# --- h5 ---------------------------------------------------------------------------------------------------------------


def pandas_table(file: Any, path: Path) -> Contents | None:
    """DeepLabCut's h5: a pandas table, in either of its two layouts, without pandas or PyTables."""
    readers = {name: reader for name in file if (reader := _layout(file, name)) is not None}
    if not readers:
        return None
    name = next(iter(readers))
    columns, values, index = readers[name](file, name, path)
    found = points_by_animal(columns, values, path.name)
    jumps = frame_jumps(index.astype(float), "its index") if index.dtype.kind in "iuf" else []
    others = left_aside("table", [other for other in file if other != name])
    return found._replace(notes=[*found.notes, *jumps, *others])


def _layout(file, name):
    """How pandas has written a table, or None for anything else."""
    if f"{name}/table" in file and b"values_block_0_kind" in _keys(file[f"{name}/table"]):
        return _one_table
    return _blocks if f"{name}/block0_values" in file and f"{name}/block0_items_level1" in file else None


def _one_table(file, name, path):
    table = file[f"{name}/table"]
    _require_table(table, path)
    blocks = [field for field in table.dtype.names if field.startswith("values_block_")]
    columns = [
        column
        for field in blocks
        for column in _columns(bytes(table.attrs[f"{field}_kind"]), table.dtype[field].shape[0], path)
    ]
    index = table["index"] if "index" in table.dtype.names else np.zeros(0)
    return columns, np.concatenate([table[field] for field in blocks], 1), index


def _blocks(file, name, path):
    from .hdf5 import whole

    columns, values = [], []
    for block in range(sum(f"{name}/block{i}_values" in file for i in range(len(file[name])))):
        levels = sum(f"{name}/block{block}_items_level{i}" in file for i in range(8))
        words = [_level(file, name, block, i, path) for i in range(levels)]
        columns += zip(*words, strict=True)
        values.append(whole(file, f"{name}/block{block}_values", path))
    index = whole(file, f"{name}/axis1", path) if f"{name}/axis1" in file else np.zeros(0)
    return columns, np.concatenate(values, 1), index


def _keys(item):
    return {key.encode() for key in item.attrs}


def _require_table(table, path):
    from .hdf5 import require_plausible

    if table.dtype.names is None or "values_block_0" not in table.dtype.names or table.dtype.hasobject:
        raise DataError(f"{path.name} is a pandas table whose columns are not numbers; save it as csv.")
    require_plausible(table, path)
    require_in_memory(path.name, numbers_in(table.shape) * table.dtype.itemsize)


def _columns(text, number, path):
    """Names of columns from the text in which pandas wrote them: only its strings are looked at, nothing is run."""
    seen, words = {}, []
    for match in TOKEN.finditer(text):
        if match[1] is not None:
            seen[match[2]] = match[1].decode("unicode_escape" if b"\\u" in match[1] else "utf-8")
        words.append(seen[match[2] or match[3]])
    levels = len(words) // number
    if levels not in (3, 4) or levels * number != len(words):
        raise DataError(f"{path.name} has column names that svae cannot read; save the table as csv.")
    return [tuple(words[i : i + levels]) for i in range(0, len(words), levels)]


def _level(file, name, block, number, path):
    """One level of the names of a block's columns, spelled out for every column."""
    from .hdf5 import whole

    codes = whole(file, f"{name}/block{block}_items_label{number}", path).astype(int)
    words = [text(word) for word in whole(file, f"{name}/block{block}_items_level{number}", path)]
    return [words[code] for code in codes]
