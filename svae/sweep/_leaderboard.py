"""What each fit of a sweep reached, the best first."""

import csv
import io
import statistics
from pathlib import Path
from typing import Any

import numpy as np

from svae._sealed import write_atomically
from svae.data.scores import IN_USE, adjusted_rand_index, difference
from svae.runs import Run, is_run
from svae.runs._folder import writing
from svae.sweep._grid import Plan, grid, is_done, neighbours

FILE = "leaderboard.csv"


def leaderboard(out: Path, plan: Plan) -> list[dict[str, Any]]:
    """One row a fit, sorted by the held-out bound per frame; fits that are not finished come last.

    `agreement` is the mean adjusted Rand index of its segmentation with those of its neighbours on the grid.
    """
    runs = {name: Run(out / name) for name in grid(plan) if is_run(out / name)}
    paths = {name: _states(run) for name, run in runs.items() if is_done(run.path)}
    near = {name: [] for name in paths}
    for a, b in neighbours(plan):
        if a in paths and b in paths:
            index = adjusted_rand_index(paths[a], paths[b])
            near[a].append(index)
            near[b].append(index)
    rows = [_row(name, run, paths.get(name), near.get(name)) for name, run in runs.items()]
    rows = sorted(rows, key=lambda row: -np.inf if row["held_out"] is None else row["held_out"], reverse=True)
    return [_behind(row, runs[row["run"]], runs[rows[0]["run"]]) for row in rows]


def _behind(row, run, best):
    """The row, with how far it is behind the best and how sure that is."""
    apart = None if row["held_out"] is None else difference(best.held_out_blocks(), run.held_out_blocks())
    found = (None, None) if apart is None else apart
    return row | {"behind_best": found[0], "standard_error": found[1]}


def _states(run: Run) -> np.ndarray:
    return np.concatenate([run.states(name) for name in run.recordings()])


def _row(name, run, states, near):
    config, provenance, lines = run.config, run.provenance(), run.metrics()
    rate = provenance.get("fps") or 1.0
    lengths = [] if states is None else [bout.stop - bout.start for bout in run.bouts()]
    unit = "s" if provenance.get("fps") else "frames"
    return {
        "run": name,
        "states": config.states,
        "latent_dim": config.latent_dim,
        f"target_{unit}": config.target_duration and config.target_duration / rate,
        "held_out": None if states is None else run.held_out(),
        "states_in_use": None if states is None else int((np.bincount(states) >= IN_USE * len(states)).sum()),
        f"median_bout_{unit}": statistics.median(lengths) if lengths else None,
        "agreement": statistics.fmean(near) if near else None,
        "steps": lines[-1]["step"] if lines else 0,
        "seconds": lines[-1].get("seconds") if lines else None,
        "status": provenance.get("status"),
    }


def write_leaderboard(out: Path, rows: list[dict[str, Any]]) -> None:
    """Replace leaderboard.csv whole."""
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow(rows[0])
    table.writerows([f"{v:.6g}" if isinstance(v, float) else v for v in row.values()] for row in rows)
    with writing(out):
        write_atomically(out / FILE, text.getvalue().encode())
