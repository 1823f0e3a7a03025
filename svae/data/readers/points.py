"""Keypoints among the columns of a table, by the names of the columns: nose_x, nose_y, nose_likelihood, stim."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..recordings import DataError
from ..views import Floats, View
from .pieces import Note, doubted, keypoints, left_aside, listed

UNIT = r"(?:[ _]?[\[(]?(px|pixels?|mm|cm|m|um)[\])]?)?"
AFTER = re.compile(rf"(.*?)[._: -]?(?<![a-z])(x|y|z|likelihood|score|confidence|conf){UNIT}", re.IGNORECASE)
BEFORE = re.compile(rf"(x|y|z|likelihood|score|confidence|conf)[._: -]?(\d+|(?<=[._: -]).+?){UNIT}", re.IGNORECASE)
CAMEL = re.compile(rf"(.*?[a-z0-9])(X|Y|Z|Likelihood){UNIT}")
SENSOR = re.compile(r"(^|[._ ])(acc|gyr|mag|imu|quat|force|torque|vel|speed|euler|grav)", re.IGNORECASE)
FEWEST = 3  # points that are keypoints whatever else a table holds; fewer must be at least half of its columns


class Sorted(NamedTuple):
    """How rows of a table become frames, and what was left aside."""

    view: Callable[[Sequence[int]], View]
    notes: list[Note]


class Coordinate(NamedTuple):
    """One column: x, y, z or likelihood of a point."""

    point: str
    axis: str
    unit: str


def found_points(values: np.ndarray, labels: Sequence[str], what: str, *, asked: bool = False) -> Sorted:
    """Points that have x and y in a table (T, columns); all columns as they are where there are too few of them.

    `asked`: the columns were named by the user, so none is left aside.
    """
    values, labels, twice = _once(values, labels, what)
    found = coordinates_of(labels)
    where = {(c.point, c.axis): i for i, c in found.items()}
    both = [name for name in dict.fromkeys(c.point for c in found.values()) if {(name, "x"), (name, "y")} <= set(where)]
    names = [name for name in both if not SENSOR.search(name)]
    used = [i for (name, _), i in where.items() if name in names]
    rest = [label for i, label in enumerate(labels) if i not in used]
    enough = len(names) >= FEWEST or (len(names) == 2 and len(used) * 2 >= len(labels))
    if not enough or (asked and rest):
        return _columns(values, labels, twice)
    axes = "xyz" if all((name, "z") in where for name in names) else "xy"
    flat = [f"{name} z" for name in names if (name, "z") in where and axes == "xy"]
    xy = np.stack([values[:, [where[name, axis] for name in names]] for axis in axes], -1)
    trust = _confidence(values, [where.get((name, "likelihood")) for name in names])
    unit = _one_unit({c.unit for c in found.values() if c.point in names and c.axis != "likelihood"}, what)
    said = [Note(f"its {len(names)} keypoints are {listed(names)}"), *left_aside("column", rest)] if rest else []
    said += [*twice, *left_aside("height", flat), *doubted(xy, trust)]
    return Sorted(lambda rows: keypoints(xy[rows], _of(trust, rows), names, unit), said)


def _once(values, labels, what):
    """Columns without those that repeat a coordinate; coordinates of one name and different numbers are refused."""
    first, again = {}, []
    for i, label in enumerate(labels):
        if label in first and coordinates_of([label]):
            if not np.array_equal(values[:, i], values[:, first[label]], equal_nan=True):
                raise DataError(f"{what} has two columns {label} of different numbers; delete one of them.")
            again.append(i)
        first.setdefault(label, i)
    kept = [i for i in range(len(labels)) if i not in again]
    return values[:, kept], [labels[i] for i in kept], left_aside("repeated column", [labels[i] for i in again])


def _one_unit(units, what):
    if len(units) > 1:
        several = listed(sorted(u or "none" for u in units))
        raise DataError(f"{what} has coordinates of several units ({several}); use one.")
    return units.pop()


def _of(trust, rows):
    return None if trust is None else trust[rows]


def _columns(values, labels, notes):
    names = unique(labels)
    renamed = [new for new, old in zip(names, labels, strict=True) if new != old]
    said = [Note(f"columns of one name are called {listed(renamed)}")] if renamed else []
    return Sorted(lambda rows: Floats(values[rows], columns=names), [*notes, *said])


def unique(labels: Sequence[str]) -> tuple[str, ...]:
    """Names with .1, .2, ... after those that were there before."""
    found: list[str] = []
    for label in map(str, labels):
        number, name = 1, label
        while name in found:
            number, name = number + 1, f"{label}.{number}"
        found.append(name)
    return tuple(found)


def _confidence(values, places):
    """(T, P), 1 for points that have none; None where no point has any."""
    if all(place is None for place in places):
        return None
    return np.stack([np.ones(len(values)) if place is None else values[:, place] for place in places], 1)


def coordinates_of(labels) -> dict[int, Coordinate]:
    """What each column is, in the way of writing that finds most of them."""
    ways = [{i: c for i, label in enumerate(labels) if (c := way(label))} for way in (_after, _before, _camel)]
    best = max(ways, key=len)
    return best if len(set(best.values())) == len(best) else {}


def _after(label):
    return (m := AFTER.fullmatch(label)) and Coordinate(m[1] or "point", _axis(m[2]), _unit(m[3]))


def _before(label):
    return (m := BEFORE.fullmatch(label)) and Coordinate(m[2], _axis(m[1]), _unit(m[3]))


def _camel(label):
    return (m := CAMEL.fullmatch(label)) and Coordinate(m[1], _axis(m[2]), _unit(m[3]))


def _axis(word):
    return word.lower() if word.lower() in "xyz" else "likelihood"


def _unit(word):
    word = (word or "").lower()
    return "px" if word.startswith("p") else word
