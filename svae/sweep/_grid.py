"""The grid of a sweep, and sweep.json, which says all that is needed to go on with it."""

import itertools
import os
from pathlib import Path
from typing import Any, NamedTuple

from svae.config import CHECKS
from svae.runs import Run, RunError, is_run
from svae.runs._folder import read_json, write_json, writing

FILE = "sweep.json"
FORMAT = 1
AXES = {"states": "states{}", "latent_dim": "latent{}", "target_duration": "{}"}  # and how a folder says the value
OVER = ("finished", "time over")  # how a fit that needs no more work stands


class Plan(NamedTuple):
    """What a sweep fits: each axis with its values from small to large, and what all fits share."""

    axes: dict[str, list[Any]]
    options: dict[str, Any]  # of the configuration, the same for all fits
    source: dict[str, Any]  # arguments of `load`
    max_time: float | None = None  # seconds of each fit


def grid(plan: Plan) -> dict[str, dict[str, Any]]:
    """Name of each fit -> its place on the axes, in order."""
    points = [dict(zip(plan.axes, values, strict=True)) for values in itertools.product(*plan.axes.values())]
    return {"-".join(AXES[axis].format(value) for axis, value in point.items()): point for point in points}


def neighbours(plan: Plan) -> list[tuple[str, str]]:
    """Pairs of fits that are one step apart on one axis."""
    points = grid(plan)
    places = {name: [plan.axes[axis].index(value) for axis, value in point.items()] for name, point in points.items()}
    apart = lambda a, b: sum(abs(i - j) for i, j in zip(places[a], places[b], strict=True))  # noqa: E731
    return [(a, b) for a, b in itertools.combinations(points, 2) if apart(a, b) == 1]


def is_done(folder: Path) -> bool:
    """Whether the fit in a folder needs no more work."""
    return is_run(folder) and Run(folder).provenance().get("status") in OVER


def write_plan(out: Path, plan: Plan) -> None:
    """Begin a sweep in a new folder."""
    with writing(out):
        os.makedirs(out, exist_ok=True)
        others = sorted(file.name for file in out.iterdir())
        if FILE in others:
            raise RunError(f"{out} holds a sweep already; go on with  svae sweep --resume --out {out}")
        if others:
            raise RunError(f"{out} holds other files ({others[0]}); choose a new folder")
        write_json(out / FILE, {"format": FORMAT, **plan._asdict()})


def read_plan(out: Path) -> Plan:
    """What `write_plan` wrote."""
    if not (out / FILE).is_file():
        raise RunError(f"{out} is not the folder of a sweep: it has no {FILE}; name the folder that `svae sweep` wrote")
    found = read_json(out / FILE)
    plan = Plan(*(found.get(name) for name in Plan._fields))
    if found.get("format") != FORMAT or not _makes_sense(plan):
        raise RunError(f"{out / FILE} is damaged, or of another version of svae; start a new sweep")
    return plan


def _makes_sense(plan):
    """Nothing in the file can name a folder outside of the sweep's."""
    dicts = all(isinstance(part, dict) for part in plan[:3])
    return (
        dicts
        and bool(plan.axes)
        and set(plan.axes) <= set(AXES)
        and all(isinstance(v, list) and v and all(map(_is_value, v)) for v in plan.axes.values())
        and set(plan.options) <= set(CHECKS)
        and "path" in plan.source
        and (plan.max_time is None or isinstance(plan.max_time, int | float))
    )


def _is_value(value):
    return isinstance(value, int) or (isinstance(value, str) and "".join(value.split(".")).isalnum())
