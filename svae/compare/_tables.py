"""One row for each state (or transition) and pair of groups: the effect with its interval, then the test."""

import csv
import io
import itertools
import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from svae.compare._groups import FEWEST, Study
from svae.compare._measures import Measure
from svae.compare._statistics import NOTHING, Interval, difference, false_discovery, hedges, permutation_p

LEVEL = 0.05  # of false discoveries among all that are called different, in a family


class Row(NamedTuple):
    """Group b against group a; p over all groups at once (`p_all`) only where there are more than two."""

    key: tuple[int, ...]
    a: int
    b: int
    n_a: int  # animals that say something
    n_b: int
    mean_a: float  # in the unit of the measure
    mean_b: float
    effect: Interval
    g: Interval
    p: float
    q: float
    p_all: float
    q_all: float
    differs: bool  # with false discoveries under control


class Control(NamedTuple):
    """q of each pair of groups and key, q of all groups at once for each key, and what is called different."""

    q: Float[np.ndarray, "pairs m"]
    q_all: Float[np.ndarray, " m"]
    differs: Bool[np.ndarray, "pairs m"]


def controlled(p: Float[np.ndarray, "pairs m"], p_all: Float[np.ndarray, " m"]) -> Control:
    """Two groups: over all keys. More: keys are chosen by the test of all groups, then pairs are taken within each,
    at the level times the share of keys that were chosen (Benjamini and Bogomolov, 2014)."""
    q_all = false_discovery(p_all)
    if len(p) == 1:
        q = false_discovery(p[0])[None]
        return Control(q, q_all, q <= LEVEL)
    chosen = q_all <= LEVEL
    within = np.stack([false_discovery(column) for column in p.T], axis=-1) if p.shape[1] else p
    q = np.minimum(within * np.isfinite(p_all).sum() / max(1, chosen.sum()), 1.0)
    return Control(q, q_all, (q <= LEVEL) & chosen)


def table(measure: Measure, study: Study) -> list[Row]:
    """All pairs of groups of all keys."""
    group = np.array(study.group)
    pairs = list(itertools.combinations(range(len(study.groups)), 2))
    p = np.array([_tested(measure.values, group, pair) for pair in pairs])  # (pairs, keys)
    everyone = tuple(range(len(study.groups)))
    p_all = _tested(measure.values, group, everyone) if len(pairs) > 1 else np.full(len(measure.keys), math.nan)
    found = controlled(p, p_all)
    return [
        _row(measure, group, k, pair)._replace(
            p=float(p[i, k]),
            q=float(found.q[i, k]),
            p_all=float(p_all[k]),
            q_all=float(found.q_all[k]),
            differs=bool(found.differs[i, k]),
        )
        for k in range(len(measure.keys))
        for i, pair in enumerate(pairs)
    ]


def _tested(values, group, chosen) -> np.ndarray:
    """p of each key between these groups; NaN where one of them has too few animals that say something."""
    mine = np.isin(group, chosen)
    values, group = values[mine], np.searchsorted(chosen, group[mine])
    enough = (_counts(values, group) >= FEWEST).all(0)
    found = np.full(values.shape[1], np.nan)
    if enough.any():
        found[enough] = permutation_p(values[:, enough], group)
    return found


def _counts(values, group):
    """Animals with a value, (groups, keys)."""
    return np.stack([np.isfinite(values[group == g]).sum(0) for g in range(group.max() + 1)])


def _row(measure, group, k, pair) -> Row:
    a, b = (column[np.isfinite(column)] for column in (measure.values[group == g, k] for g in pair))
    means = [float(measure.shown(x.mean())) if len(x) else math.nan for x in (a, b)]
    enough = min(len(a), len(b)) >= FEWEST
    effect, g = (difference(a, b), hedges(a, b)) if enough else (NOTHING, NOTHING)
    effect = Interval(*(float(measure.shown(x)) for x in effect))
    return Row(measure.keys[k], *pair, len(a), len(b), *means, effect, g, *[math.nan] * 4, False)


# --- as text ------------------------------------------------------------------------------------------------------


def record(row: Row, measure: Measure, study: Study, names: dict[int, str]) -> dict[str, object]:
    """A row under the names of its columns; what is not known is None."""
    states = dict(zip(("state", "next_state"), row.key, strict=False))
    named = {f"{column.removesuffix('state')}name": names[k] for column, k in states.items()}
    numbers = {
        "mean_a": row.mean_a,
        "mean_b": row.mean_b,
        "unit": measure.unit,
        "effect": row.effect.value,
        "low": row.effect.low,
        "high": row.effect.high,
        "effect_unit": measure.effect_unit,
        "g": row.g.value,
        "g_low": row.g.low,
        "g_high": row.g.high,
        "p": row.p,
        "q": row.q,
    }
    several = {"p_all": row.p_all, "q_all": row.q_all} if len(study.groups) > 2 else {}
    pair = {"group_a": study.groups[row.a], "group_b": study.groups[row.b], "n_a": row.n_a, "n_b": row.n_b}
    found = {**states, **named, **pair, **numbers, **several, "differs": row.differs}
    return {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in found.items()}


def as_csv(records: list[dict[str, object]]) -> bytes:
    """Six digits of every number; an empty cell where there is none."""
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(records[0] if records else [])
    rows.writerows(map(_cell, record.values()) for record in records)
    return text.getvalue().encode()


def _cell(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else value


def per_animal(measures: list[Measure], study: Study, names: dict[int, str]) -> list[dict[str, object]]:
    """The number of each animal behind every test."""
    return [
        {
            "animal": study.animals[i],
            study.by: study.groups[study.group[i]],
            "measure": measure.name,
            "state": key[0],
            "name": names[key[0]],
            "next_state": key[1] if len(key) > 1 else None,
            "next_name": names[key[1]] if len(key) > 1 else None,
            "value": float(measure.shown(measure.values[i, k])) if np.isfinite(measure.values[i, k]) else None,
            "unit": measure.unit,
        }
        for measure in measures
        for k, key in enumerate(measure.keys)
        for i in range(len(study.animals))
    ]
