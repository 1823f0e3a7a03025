"""Verbs that look: doctor, show, watch."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from svae.cli._app import Json, _version, verb
from svae.cli._errors import USAGE
from svae.cli._machine import examine, use_compilation_cache
from svae.cli._print import print_json, print_table, report, say
from svae.cli._runs import IN_USE, frame_rate, report_run, summary

REFRESH = 1.0  # seconds
BLOCKS = "▁▂▃▄▅▆▇█"
CURVE = 60  # characters


@verb
def doctor(*, json: Json = False):
    """Check this machine: Python, jax, its device, memory, the cache, the extras, and which form serves which chain."""
    use_compilation_cache()
    findings = examine(_version())
    report(findings, "this machine", json)
    if not json:
        rows = findings["chains"]
        print_table("chains, the first row that fits", list(rows[0]), [list(row.values()) for row in rows])
    return 0 if findings["device_works"] else USAGE


@verb
def models(name: str | None = None, /, *, json: Json = False):
    """List the latent models that have a name, each drawn, or show one of them as a TOML file to start from.

    An arrow means "depends on"; a block with a circle depends on the frame before, too. Save what `svae models slds`
    prints, change it, and fit it with --graph FILE.

    Args:
        name: The model to show; all unless given.
    """
    from svae.config import CHECKS, OWN, Config
    from svae.named import find, names
    from svae.pgm import drawn, to_tables

    chosen = names() if name is None else [CHECKS["model"]("NAME", name)]
    graphs = _graphs(chosen, alone=name is not None)
    rows = [{"name": n, "words": find(n).words, "blocks": drawn(g), "tables": to_tables(g)} for n, g in graphs.items()]
    if json:
        print_json({"models": rows})
        return
    for row in rows:
        print(f"{row['name']}: {row['words']}", *(f"    {line}" for line in row["blocks"]), sep="\n", end="\n\n")
    if name is not None and rows[0]["tables"] is not None:
        print(Config(latent=rows[0]["tables"], model=OWN).to_toml().partition("\n\n")[2], end="")


def _graphs(chosen: Sequence[str], *, alone: bool) -> dict[str, Any]:
    """The graph of each name; one of a broken package is left out with a sentence, unless it is all that was asked."""
    from svae.config import Config, ConfigError
    from svae.model import pgm_of
    from svae.pgm import GraphError

    found = {}
    for known in chosen:
        try:
            found[known] = pgm_of(Config(model=known))
        except (ConfigError, GraphError) as error:
            if alone:
                raise
            say([f"{error}."])
    return found


@verb
def show(path: str, /, *, fps: float | None = None, dataset: str | None = None, json: Json = False):
    """Show what is in a data file, a run folder or a saved model.

    Args:
        path: A file or a folder of data, a run folder, or a folder with a model.
        fps: Frames per second of data that do not say it themselves.
        dataset: Which array of a container, or which columns of a table, to take.
    """
    from svae.runs import Run, is_run

    if is_run(path):
        _show_run(Run(path), path, json)
    elif (Path(path) / "manifest.json").exists():
        report(_model(Path(path)), path, json)
    else:
        _show_data(path, fps, dataset, json)


def _show_run(run, path, json):
    """How it stands, and its states one by one, where it has any; of several blocks those of each."""
    from svae.runs._null import as_dict, in_words

    parts = [(part, *states(part)) for part in run.each()]
    faults = [*(fault for _, _, found in parts for fault in found), *run.warnings()]
    rows = [({"block": part.block} if part.block else {}) | row for part, found, _ in parts for row in found]
    null, again = run.null(), _of_stability(*parts[0][:2])
    if json:
        trust = {"found_again": again, "null": as_dict(null), "null_in_words": in_words(null)}
        print_json(summary(run) | {"states_one_by_one": rows} | trust | {"warnings": faults})
        return
    report_run(summary(run), False)
    for part, found, _ in parts:
        _print_states(f"states of {part.block}" if part.block else "states", found)
    for sentence in [*again, *in_words(null), *faults]:
        print(sentence)


def _print_states(title: str, rows: list[dict[str, Any]]) -> None:
    """A table with a row for each state."""
    if rows:
        shown = [{name: value for name, value in row.items() if name != "tracker_fault"} for row in rows]
        print_table(title, list(shown[0]), [list(row.values()) for row in shown])


def _of_stability(run, rows) -> list[str]:
    """What the column found_again means, and which states are hardly found again; or why nobody knows."""
    from svae.runs._stability import Unknown, in_words, weak

    if not rows:
        return []
    again, used = run.stability(), [row["state"] for row in rows if row["frames_%"] >= 100 * IN_USE]
    if isinstance(again, Unknown):
        return [f"found_again is not known: {again.why}."]
    return [f"found_again: {in_words(again)}", *filter(None, [weak(again, used, run.names)])]


def states(run: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """A row for each state that has frames, the commonest first, and a warning for each possible tracking fault."""
    from svae.runs._quality import suspects, warning
    from svae.runs._stability import number

    found, again = run.quality(), run.stability()
    if found is None or len(found.frames) < 2:
        return [], []
    of = f" of {run.block}" if run.block else ""
    name, faulty = (lambda k: run.names.get(k, f"state {k}") + of), suspects(found)
    order = [int(k) for k in (-found.frames).argsort(kind="stable") if found.frames[k]]
    rows = [
        {
            "state": k,
            "name": run.names.get(k, ""),
            "frames_%": 100 * found.frames[k] / found.frames.sum(),
            "frames_with_missing_%": 100 * found.share_incomplete[k],
            "missing_%": 100 * found.share_missing[k],
            "confidence": float(found.mean_confidence[k]) if found.rated[k] else None,
            "found_again": number(again, k),
            "tracker_fault": k in faulty,
        }
        for k in order
    ]
    return rows, [warning(found, k, name(k)) for k in order if k in faulty]


def _model(path) -> dict[str, Any]:
    """Shape, preprocessing and configuration, as the manifest has them."""
    from svae._sealed import read_manifest

    found = read_manifest(path)
    arrays = {name: entry["shape"] for name, entry in found["arrays"].items()}
    numbers = sum(_product(shape) for shape in arrays.values())
    preprocess = found.get("preprocess", {}).get("kind")
    known = {
        "svae": found.get("svae"),
        "frame": str(found.get("shape")),
        "preprocess": preprocess,
        "parameters": numbers,
    }
    return known | {"config": found.get("config"), "arrays": [{"name": n, "shape": s} for n, s in arrays.items()]}


def _product(shape):
    total = 1
    for n in shape:
        total *= n
    return total


def _show_data(path, fps, dataset, json):
    from svae.data import load, seconds

    found = load(path, fps=fps, dataset=dataset)
    rate = frame_rate(found)
    rows = [
        {
            "recording": name,
            "frames": len(y),
            "frame": list(y.shape[1:]),
            "type": str(y.dtype),
            "frames_per_second": rate,
        }
        | {"ends_s": float(seconds(found, i)[-1]) if rate and len(y) else None}
        for i, (name, y) in enumerate(zip(found.names, found.sequences, strict=True))
    ]
    say(found.notes)
    if json:
        print_json({"recordings": rows, "frames": found.frames, "notes": found.notes})
    else:
        print_table(path, list(rows[0]), [list(row.values()) for row in rows])


@verb
def watch(run: Path, /, *, once: bool = False, json: Json = False):
    """Watch a run that another process is fitting: its bound, held-out bound, states and speed.

    Args:
        run: The run folder.
        once: Show how it stands now, and end.
    """
    from svae.runs import Run

    watched = Run(run)
    if json:
        print_json(summary(watched) | {"running": watched.running})
    elif once:
        report(_view(watched), str(run), False)
    else:
        _live(watched)


def _live(run):
    """Redraw once a second until no process writes the run any more."""
    from rich.console import Console
    from rich.live import Live

    with Live(_drawn(run), console=Console(), refresh_per_second=4) as live:
        while run.running:
            time.sleep(REFRESH)
            live.update(_drawn(run))


def _drawn(run):
    from rich.table import Table

    table = Table("name", "value", title=str(run.path), title_justify="left")
    for name, value in _view(run).items():
        table.add_row(name, "–" if value is None else f"{value:.5g}" if isinstance(value, float) else str(value))
    return table


def _view(run) -> dict[str, Any]:
    lines = run.metrics()
    last = lines[-1] if lines else {}
    notes = [line["note"] for line in lines if line.get("note")]
    found = summary(run)
    return {
        "status": f"{found['status']}{', being written now' if run.running else ''}",
        "phase": last.get("phase"),
        "step": f"{found['steps']} of {run.config.warmup_steps + run.config.steps}",
        "bound": found["bound"],
        "bound over steps": _curve([line.get("bound") for line in lines]),
        "held out": found["held_out"],
        "held out over steps": _curve([line.get("held_out") for line in lines]),
        "states in use": found["states_in_use"],
        "frames per second": last.get("frames_per_second"),
        "seconds": found["seconds"],
        "last note": notes[-1] if notes else None,
    }


def _curve(values) -> str | None:
    """A line of blocks, from the lowest to the highest of the later nine tenths: the first steps are far below."""
    known = [v for v in values if v is not None]
    known = known[len(known) // 10 :]
    if len(known) < 2:
        return None
    shown = known[:: -(-len(known) // CURVE)]
    low, high = min(shown), max(shown)
    return "".join(BLOCKS[int((v - low) / ((high - low) or 1.0) * (len(BLOCKS) - 1))] for v in shown)
