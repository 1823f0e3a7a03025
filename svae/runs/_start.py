"""The beginning of a run folder: its configuration and where it came from."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from svae._sealed import write_atomically
from svae.config import Config
from svae.data import Recordings, check_form, recordings
from svae.runs import _provenance
from svae.runs._folder import CONFIG, LOCK, LOG, RunError, locked, log, write_json, writing
from svae.runs._run import FORMAT, PROVENANCE, Run, is_run

BEGUN = {CONFIG, LOCK, LOG}  # what a start that was killed may have left


def start(
    path: str | os.PathLike,
    data: Recordings,
    config: Config,
    *,
    source: Mapping | str | os.PathLike | None = None,
    command: Sequence[str] = (),
) -> Run:
    """Make a run folder for these recordings; `train` fits it.

    `source` says how to read them again: a path, or the arguments of `load`, {"path": ..., "fps": ..., "dataset": ...};
    None for recordings in memory. `command` is the command line, kept as it is.
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
            write_json(folder / PROVENANCE, body)  # last: with it the folder is a run
    return Run(folder)


def _require_new(folder: Path) -> None:
    if is_run(folder):
        raise RunError(f"{folder} holds a run already; resume it, or choose another folder")
    others = [f.name for f in folder.iterdir() if f.name not in BEGUN and not f.name.endswith(".tmp")]
    if others:
        raise RunError(f"{folder} holds other files ({others[0]}); choose a new folder")


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
    """The arguments of `load`, with paths that hold from any folder."""
    if source is None:
        return None
    arguments = dict(source) if isinstance(source, Mapping) else {"path": source}
    paths = arguments["path"] if isinstance(arguments["path"], list | tuple) else [arguments["path"]]
    absolute = [os.path.abspath(os.path.expanduser(path)) for path in paths]
    return arguments | {"path": absolute if isinstance(arguments["path"], list | tuple) else absolute[0]}
