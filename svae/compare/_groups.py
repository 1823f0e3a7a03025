"""Which recording is of which animal, and which animal is in which group: a table that people write."""

import csv
import difflib
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from svae.config import ConfigError
from svae.data import DataError

FILE = "groups.csv"
LARGEST_TABLE = 2**24  # bytes of a table that we read
FEWEST = 3  # animals in a group


class Study(NamedTuple):
    """Animals in the order of their groups."""

    by: str
    groups: tuple[str, ...]  # the reference first, then in the order in which the table names them
    animals: tuple[str, ...]
    group: tuple[int, ...]  # of each animal
    recordings: dict[str, int]  # name -> the animal's number

    @property
    def sizes(self) -> tuple[int, ...]:
        """Animals in each group."""
        return tuple(self.group.count(g) for g in range(len(self.groups)))


def write_template(file: Path, recordings: Sequence[str], by: str) -> Path:
    """A table with a row for each recording; the column `by` is left to be filled in."""
    if by in ("recording", "animal"):
        raise ConfigError(f"--by names the column of the groups, such as genotype; {by!r} has its own meaning")
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(["recording", "animal", by])
    rows.writerows([name, name, ""] for name in recordings)
    try:
        with open(file, "x", encoding="utf-8", newline="") as stream:  # never over a table that people filled in
            stream.write(text.getvalue())
    except FileExistsError:
        raise DataError(f"{file} exists already; fill it in, or name another one with --groups") from None
    except OSError as error:
        raise DataError(f"{file} could not be written: {error.strerror or error}") from None
    return file


def read_study(file: Path, by: str, recordings: Sequence[str], reference: str | None = None) -> Study:
    """The study that a table describes; every recording needs a row, and one without a group is left out.

    The others are compared with the `reference`, the first group that the table names unless given.
    """
    rows = _rows(file, by)
    for name in recordings:
        if name not in rows:
            raise DataError(f"{file} has no row for the recording {name!r}{_nearest(name, rows)}")
    kept = {name: rows[name] for name in rows if name in set(recordings) and rows[name][by]}
    animals = _animals(file, by, kept)
    groups = _from_reference(file, by, tuple(dict.fromkeys(animals.values())), reference)
    _require_enough(file, by, groups, animals)
    order = sorted(animals, key=lambda animal: groups.index(animals[animal]))
    numbers = {name: order.index(row["animal"]) for name, row in kept.items()}
    return Study(by, groups, tuple(order), tuple(groups.index(animals[a]) for a in order), numbers)


def _from_reference(file, by, groups: tuple[str, ...], reference: str | None) -> tuple[str, ...]:
    """The reference, then the others in their order."""
    if reference is None:
        return groups
    if reference not in groups:
        near = difflib.get_close_matches(reference, groups, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(groups) or 'none'}"
        raise ConfigError(f"--reference {reference!r} is no group of the column {by!r} of {file}; {hint}")
    return (reference, *(group for group in groups if group != reference))


def _rows(file, by) -> dict[str, dict[str, str]]:
    """The cells of each recording by the name of their column."""
    lines = list(csv.reader(io.StringIO(text := _text(file), newline=""), delimiter=_delimiter(text)))
    head = [cell.strip() for cell in lines[0]] if lines else []
    for column in ("recording", by):
        if column not in head:
            near = difflib.get_close_matches(column, head, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(head) or 'nothing'}"
            raise DataError(f"{file} has no column {column!r}; {hint}")
    found: dict[str, dict[str, str]] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not any(cell.strip() for cell in line):
            continue
        if len(line) != len(head):
            raise DataError(f"{file}, line {number}, has {len(line)} cells where the first line has {len(head)}")
        row = dict(zip(head, (cell.strip() for cell in line), strict=True))
        row["animal"] = row.get("animal") or row["recording"]
        if row["recording"] in found:
            raise DataError(f"{file}, line {number}: the recording {row['recording']!r} has a row already")
        found[row["recording"]] = row
    return found


def _text(file):
    try:
        if os.path.getsize(file) > LARGEST_TABLE:
            raise DataError(f"{file} is too large for a table of groups; name the csv file with --groups")
        return Path(file).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataError(
            f"{file} is missing: it says which recording is of which animal and group; write one to fill in with"
            f"  svae compare RUN --by COLUMN --template"
        ) from None
    except OSError as error:
        raise DataError(f"{file} could not be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise DataError(f"{file} is not text in UTF-8; save it again as CSV UTF-8") from None


def _delimiter(text):
    """Spreadsheets of some countries write semicolons."""
    head = text.partition("\n")[0]
    return max(",;\t", key=head.count)


def _nearest(name, rows):
    near = difflib.get_close_matches(name, rows, n=1)
    return f"; is it {near[0]!r} there?" if near else "; add one, with no group to leave it out"


def _animals(file, by, kept) -> dict[str, str]:
    """Group of each animal; an animal in two groups is no unit."""
    found: dict[str, str] = {}
    for row in kept.values():
        before = found.setdefault(row["animal"], row[by])
        if before != row[by]:
            raise DataError(
                f"{file} puts the animal {row['animal']!r} into two groups of {by!r}, {before!r} and {row[by]!r}; "
                f"an animal can be in one"
            )
    return found


def _require_enough(file, by, groups, animals):
    if len(groups) < 2:
        what = f"only the group {groups[0]!r}" if groups else "no group"
        raise DataError(f"{file} has {what} in the column {by!r}; a comparison needs two")
    for group in groups:
        count = list(animals.values()).count(group)
        if count < FEWEST:
            raise DataError(
                f"the group {group!r} has {count} animal{'s' * (count != 1)}; a comparison needs at least {FEWEST} "
                f"in each group, and recordings or frames of one animal do not replace another"
            )
