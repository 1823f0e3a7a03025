"""What every writer of a run folder does: lock it, replace files whole, append lines, and say why it cannot."""

import contextlib
import json
import math
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from svae._sealed import StoreError, write_atomically

CONFIG, PROVENANCE, METRICS, LOG, LOCK = "config.toml", "provenance.json", "metrics.jsonl", "log.txt", "lock"
MODEL, POSTERIOR, BOUTS, NAMES = "model", "posterior", "bouts.csv", "names.json"
STATES = "states.csv"
RESTARTS, BASELINES = "restarts.json", "baselines.json"
STARTS, NULL, SCREE = "starts.json", "null.json", "scree.json"
LARGEST_TEXT = 2**30  # bytes of a text file that we read


class RunError(ValueError):
    """A run folder that cannot be read or written, and why, in one sentence."""


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turns what the disk says into one sentence."""
    try:
        yield
    except StoreError as error:
        raise RunError(f"{error}; what was saved before is intact") from error
    except OSError as error:
        why = error.strerror or error
        raise RunError(f"{folder} could not be written: {why}; what was saved before is intact") from error


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder against other writers; the system lets go when the process ends, however it ends."""
    with writing(folder):
        stream = open(folder / LOCK, "a+")  # noqa: SIM115
    with stream:
        if not _taken(stream):
            stream.seek(0)
            raise RunError(f"{folder} is being written by process {stream.read().strip()}; wait for it or stop it")
        with writing(folder):
            stream.truncate(0)
            stream.write(f"{os.getpid()} on {socket.gethostname()}\n")
            stream.flush()
        yield


def _taken(stream):
    try:
        import fcntl
    except ImportError:  # a system without locks of this kind
        return True
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held(folder: Path) -> bool:
    """Whether some process is writing the folder now."""
    try:
        with open(folder / LOCK) as stream:
            return not _taken(stream)
    except OSError:
        return False


def write_json(file: Path, value: object) -> None:
    """Replace a JSON file whole."""
    write_atomically(file, (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())


def read_text(file: Path) -> str:
    """The text of a file of the folder."""
    try:
        with open(file, "rb") as stream:
            return stream.read(LARGEST_TEXT).decode()
    except OSError as error:
        raise RunError(f"{file} could not be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise RunError(f"{file} is damaged: it is not text; restore it from a copy") from None


def read_json(file: Path) -> dict:
    """The dict that `write_json` wrote."""
    try:
        value = json.loads(read_text(file))
    except (ValueError, RecursionError) as error:
        if isinstance(error, RunError):
            raise
        value = None
    if not isinstance(value, dict):
        raise RunError(f"{file} is damaged: it is not the JSON that was written; restore it from a copy")
    return value


def log(folder: Path, text: str) -> None:
    """One more line of log.txt, with the time."""
    with writing(folder), open(folder / LOG, "ab") as stream:
        stream.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {' '.join(text.split())}\n".encode())


# --- metrics ------------------------------------------------------------------------------------------------------


def append_metrics(folder: Path, line: dict) -> None:
    """One more step; a number that is not finite is null."""
    known = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in line.items()}
    with writing(folder), open(folder / METRICS, "ab", buffering=0) as stream:
        stream.write(json.dumps(known, allow_nan=False).encode() + b"\n")


def sync_metrics(folder: Path) -> None:
    """All lines so far are on the disk when this returns."""
    with writing(folder), open(folder / METRICS, "ab") as stream:
        os.fsync(stream.fileno())


def read_metrics(folder: Path) -> list[dict]:
    """One dict a step; a last line that is being written, or was cut off, is left out."""
    if not (folder / METRICS).exists():
        return []
    found = []
    for line in read_text(folder / METRICS).splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(line)
            found += [value] if isinstance(value, dict) and isinstance(value.get("step"), int) else []
    return found


def cut_metrics(folder: Path, step: int) -> None:
    """Keep the lines up to a step: a resumed fit writes the later ones again, and has not ended."""
    kept = [line for line in read_metrics(folder) if line["step"] <= step and line.get("phase") != "end"]
    with writing(folder):
        write_atomically(folder / METRICS, "".join(json.dumps(line) + "\n" for line in kept).encode())
