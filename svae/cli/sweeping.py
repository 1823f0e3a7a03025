"""The verb that fits many times: sweep."""

import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from svae.cli._app import Json, verb
from svae.cli._machine import use_compilation_cache
from svae.cli._options import limit_of, options_of
from svae.cli._print import print_json, print_table, say
from svae.cli._runs import new_folder, stem
from svae.cli._values import duration
from svae.cli.fitting import begun, opened, train, waited
from svae.config import CHECKS, ConfigError


@verb
def sweep(
    data: str | None = None,
    /,
    *,
    states: str | None = None,
    latent_dim: str | None = None,
    target_duration: str | None = None,
    out: Path | None = None,
    model: str | None = None,
    fps: float | None = None,
    dataset: str | None = None,
    steps: int | None = None,
    restarts: int | None = None,
    seed: int | None = None,
    config: Path | None = None,
    settings: Annotated[list[str] | None, Parameter(name="--set")] = None,
    max_time: str | None = None,
    resume: bool = False,
    json: Json = False,
):
    """Fit a grid of settings to the same recordings and rank them by the held-out bound per frame.

    Each fit is a run folder in --out, beside leaderboard.csv and sweep.png. Ctrl-C saves; --resume skips what is
    finished and goes on exactly with the rest.

    Args:
        data: A file, a folder or a pattern such as "day1/*.csv"; with --resume it is left out.
        states: Upper bounds on the number of states, such as 10,20,40.
        latent_dim: Dimensions of the continuous latent, such as 4,8.
        target_duration: Mean durations of a state, such as 200ms,400ms.
        out: The folder of the sweep; runs/NAME-OF-DATA-sweep unless given.
        model: The latent model, one of those that `svae models` lists; slds unless given.
        fps: Frames per second of the data, where they do not say it themselves.
        dataset: Which array of a container, or which columns of a table, to take.
        steps: Steps of each fit after the warm-up.
        restarts: Fits from different starts in one program, of which the best is kept.
        seed: Seed of everything random, the same for all fits.
        config: A TOML file of options, such as the config.toml of another run.
        settings: name=value of any option of the configuration, such as --set hidden=[64,64]; may be repeated.
        max_time: End each fit after this time, such as 30min or 2h, and write its answers.
        resume: Go on with the sweep in --out.
    """
    from svae.sweep import Plan, read_plan, write_plan

    axes = _axes({"states": states, "latent_dim": latent_dim, "target_duration": target_duration})
    named = {"model": model, "steps": steps, "restarts": restarts, "seed": seed}
    options = options_of({name: value for name, value in named.items() if value is not None}, config, settings)
    if resume:
        given = {"DATA": data, "--fps": fps, "--dataset": dataset, "--max-time": max_time, **axes, **options}
        out = _resumable(out, given)
        plan = read_plan(out)
        recordings = opened(plan.source, plan.options) if _left(out, plan) else None
    else:
        _require(data, axes, options)
        source = {"path": os.path.abspath(os.path.expanduser(data)), "fps": fps, "dataset": dataset}
        plan = Plan(axes, options, source, None if max_time is None else limit_of(max_time))
        recordings = opened(source, {**options, **{axis: values[0] for axis, values in axes.items()}})
        out = out or new_folder(Path("runs", f"{stem(data)}-sweep"))
        write_plan(out, plan)
    say(() if recordings is None else recordings.notes)
    _fit_all(out, plan, recordings, json)


def _axes(given: dict[str, str | None]) -> dict[str, list[Any]]:
    """The values of each axis, from small to large, each once."""
    return {axis: _values(axis, text) for axis, text in given.items() if text is not None}


def _values(axis, text):
    option = f"--{axis.replace('_', '-')}"
    parts = list(dict.fromkeys("".join(part.split()) for part in text.split(",") if part.strip()))
    if not parts:
        raise ConfigError(f"{option} needs values such as {'200ms,400ms' if axis == 'target_duration' else '10,20'}")
    if axis == "target_duration":
        found = {part: duration(part, option) for part in parts}
        if len({d.in_frames for d in found.values()}) > 1:
            raise ConfigError(f"{option} mixes frames and seconds; give all in one of them, not {text!r}")
        return sorted(found, key=lambda part: found[part].value)
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ConfigError(f"{option} needs whole numbers such as 10,20,40, not {text!r}")
    return sorted({CHECKS[axis](axis, int(part)) for part in parts})


def _require(data, axes, options):
    example = "svae sweep walk.npy --states 10,20,40 --out runs/sweep"
    if data is None:
        raise ConfigError(f"sweep needs the data: a file, a folder or a pattern, as in  {example}")
    if not axes:
        raise ConfigError(f"sweep needs values of --states, --latent-dim or --target-duration, as in  {example}")
    twice = [axis for axis in axes if axis in options]
    if twice:
        raise ConfigError(f"{twice[0]} is swept over and set at once; leave one of them out")


def _resumable(out, given):
    if out is None:
        raise ConfigError("--resume needs the folder of the sweep: svae sweep --resume --out SWEEP")
    more = [name for name, value in given.items() if value is not None]
    if more:
        raise ConfigError(f"--resume goes on with the sweep as it was planned in {out}; leave out {more[0]}")
    return out


def _fit_all(out, plan, recordings, json):
    """One fit after the other; the leaderboard is written after each, so that it holds whatever happens."""
    from svae.fitting.prepare import FitError

    left = _left(out, plan)
    for number, (name, point) in enumerate(left.items()):
        print(f"svae: fit {number + 1} of {len(left)}: {name}", file=sys.stderr)
        try:
            _fit_one(out / name, plan, point, recordings, json, f"svae sweep --resume --out {out}")
        except FitError as error:
            warnings.warn(f"the fit {name} failed, the others go on: {error}", stacklevel=2)
        _rank(out, plan)
    _end(out, plan, json)


def _left(out, plan) -> dict[str, dict[str, Any]]:
    """The fits that are not finished."""
    from svae.sweep import grid, is_done

    return {name: point for name, point in grid(plan).items() if not is_done(out / name)}


def _fit_one(folder, plan, point, recordings, json, again):
    from svae.runs import Run, is_run, watching

    use_compilation_cache()
    before = is_run(folder)
    with watching(plan.max_time) as watch:
        options = {**plan.options, **point}
        run = Run(folder) if before else waited(lambda: begun(folder, recordings, plan.source, options), watch)
        train(run, recordings, watch, before, json, again)


def _rank(out, plan):
    from svae.sweep import leaderboard, write_leaderboard

    rows = leaderboard(out, plan)
    write_leaderboard(out, rows)
    return rows


def _end(out, plan, json):
    from svae.sweep import draw

    rows = _rank(out, plan)
    try:
        draw(out, plan, rows)
    except ConfigError as error:  # the leaderboard is worth having without its figure
        warnings.warn(str(error), stacklevel=2)
    if json:
        best = None if rows[0]["held_out"] is None else str(out / rows[0]["run"])
        print_json({"out": str(out), "best": best, "leaderboard": rows})
    else:
        print_table(f"{out}, best first", list(rows[0]), [list(row.values()) for row in rows])
