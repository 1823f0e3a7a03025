"""The beginning of a run folder: its configuration and where it came from."""

import csv
import io
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from svae._sealed import write_atomically
from svae.config import Config
from svae.data import Recordings, check_form, recordings
from svae.data.source import absolute
from svae.runs import _provenance
from svae.runs._folder import CONFIG, LOCK, LOG, NAMES, RunError, locked, log, write_json, writing
from svae.runs._names import Labels, write_labels
from svae.runs._run import FORMAT, PROVENANCE, Run, is_run

GROUPS = "groups.csv"
BEGUN = {CONFIG, LOCK, LOG, NAMES, GROUPS}  # what a start that was killed may have left


def start(
    path: str | os.PathLike,
    data: Recordings,
    config: Config,
    *,
    source: Mapping | str | os.PathLike | None = None,
    command: Sequence[str] = (),
) -> Run:
    """Make a run folder for these recordings; `train` fits it.

    `source` says how to read them again: a path, or the arguments of `load_source`, {"path": ..., "fps": ...,
    "dataset": ..., "labels": ...}; None for recordings in memory. The names of labels are those of the first states.
    `command` is the command line, kept as it is.

    Args:
        path: The folder to make.
        data: The recordings.
        config: Every option of the model and of its fit.
        source: How to read them again.
        command: The command line.

    Returns:
        `Run`.
    """
    folder = Path(path)
    data = recordings(data)
    check_form(data)
    with writing(folder):
        os.makedirs(folder, exist_ok=True)
    with locked(folder):
        _require_new(folder)
        body = _body(data, config, source, command)
        with writing(folder):
            write_atomically(folder / CONFIG, config.to_toml().encode())
            log(folder, f"started: {' '.join(command) or 'from Python'}")
            _write_beside(folder, data)
            write_json(folder / PROVENANCE, body)  # last: with it the folder is a run
    return Run(folder)


def _require_new(folder: Path) -> None:
    if is_run(folder):
        raise RunError(f"{folder} holds a run already; resume it, or choose another folder")
    others = [f.name for f in folder.iterdir() if f.name not in BEGUN and not f.name.endswith(".tmp")]
    if others:
        raise RunError(f"{folder} holds other files ({others[0]}); choose a new folder")


def _write_beside(folder: Path, data: Recordings) -> None:
    """Names of states from those of labels, and the animal of each recording as `svae compare` reads it."""
    if data.called.labels:
        write_labels(folder, Labels(dict(enumerate(data.called.labels)), {}))
    if any(one.group for one in data.beside):
        text = io.StringIO(newline="")
        rows = csv.writer(text)
        rows.writerow(["recording", "animal"])
        rows.writerows((name, one.group) for name, one in zip(data.names, data.beside, strict=True))
        write_atomically(folder / GROUPS, text.getvalue().encode())


def _body(data, config, source, command):
    return {
        "format": FORMAT,
        "status": "started",
        "command": list(command),
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "seed": config.seed,
        "source": _source(source),
        "data": _provenance.describe(data),
        "fps": data.fps,
        "notes": list(data.notes),
        "versions": _provenance.versions(),
        "machine": None,
        "peak_memory_bytes": None,
        "wall_seconds": 0.0,
        "sessions": [],
    }


def _source(source):
    """The arguments of `load_source`, with paths that hold from any folder."""
    if source is None:
        return None
    return absolute(source if isinstance(source, Mapping) else {"path": source})
