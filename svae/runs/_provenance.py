"""Where a run came from: command, versions, data, device. What differs when it goes on is told."""

import hashlib
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from svae._sealed import own_version
from svae.data import Recordings
from svae.data.views import blocks
from svae.runs._folder import RunError

PACKAGES = ("jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "safetensors")
CHUNK = 2**20  # bytes of a file that are read at once


def versions() -> dict[str, str | None]:
    """The versions of Python, svae and the packages on which the arithmetic of a fit depends."""
    return {"python": platform.python_version(), "svae": own_version()} | {name: _version(name) for name in PACKAGES}


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def machine() -> dict[str, Any]:
    """The device, the threads that its arithmetic is shared out over, and the precision."""
    import jax

    device = jax.devices()[0]
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "device": f"{device.platform} ({device.device_kind})",
        "devices": len(jax.devices()),
        "threads": threads(),
        "x64": bool(jax.config.jax_enable_x64),
    }


def threads() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def peak_memory() -> int | None:
    """Bytes that this process has held at most; None where the system does not say."""
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """`name a -> b` for each entry that is not what it was."""
    return [f"{name} {before.get(name)} -> {now[name]}" for name in now if before.get(name) != now[name]]


# --- data ---------------------------------------------------------------------------------------------------------


def describe(recordings: Recordings) -> list[dict[str, Any]]:
    """Name, shape and SHA-256 of each recording: of its file where it has one, else of its values.

    What it carries beside y has a SHA-256 of its own.
    """
    known: dict[Path, str] = {}
    found = []
    for i, (name, y) in enumerate(zip(recordings.names, recordings.sequences, strict=True)):
        file = file_of(y)
        if file is not None and file not in known:
            known[file] = hash_file(file)
        content = {"sha256": hash_values(y)} if file is None else {"file": file.name, "sha256": known[file]}
        carried = {"beside": _hash_beside(recordings, i)} if recordings.beside else {}
        found.append({"name": name, "frames": len(y), "shape": list(y.shape[1:])} | content | carried)
    return found


def _hash_beside(recordings: Recordings, i: int) -> str:
    digest = hashlib.sha256(repr((recordings.called, recordings.beside[i].group)).encode())
    for array in (recordings.beside[i].inputs, recordings.beside[i].labels):
        digest.update(b"" if array is None else hash_values(array).encode())
    return digest.hexdigest()


def file_of(sequence: Any) -> Path | None:
    """The file that a view reads from, through other views."""
    while sequence is not None:
        path = getattr(sequence, "path", None)
        if isinstance(path, str | os.PathLike) and os.path.isfile(path):
            return Path(path)
        sequence = getattr(sequence, "source", None)
    return None


def hash_file(file: Path) -> str:
    """SHA-256 of a file's bytes, read in chunks."""
    digest = hashlib.sha256()
    try:
        with open(file, "rb") as stream:
            while chunk := stream.read(CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise RunError(f"{file} could not be read: {error.strerror or error}") from None
    return digest.hexdigest()


def hash_values(sequence: Any) -> str:
    """SHA-256 of dtype, shape and values, block by block."""
    digest = hashlib.sha256(f"{np.dtype(sequence.dtype).str}{tuple(sequence.shape)}".encode())
    for _, frames in blocks(sequence):
        digest.update(np.ascontiguousarray(frames).tobytes())
    return digest.hexdigest()


def require_same(before: list[dict[str, Any]], recordings: Recordings, run: Path) -> None:
    """Raise RunError unless these are the recordings that the run was started with."""
    now = describe(recordings)
    if len(before) != len(now):
        raise RunError(f"{run} was started with {len(before)} recordings, not {len(now)}; give it the same data")
    for old, new in zip(before, now, strict=True):
        if (old.get("sha256"), old.get("frames"), old.get("name")) != (new["sha256"], new["frames"], new["name"]):
            raise RunError(
                f"{run} was started with other data than {new['name']}; give it the same data, or start a new run"
            )
        if old.get("beside") != new.get("beside"):
            raise RunError(
                f"{run} was started with other labels or inputs of {new['name']}; give the same, or start a new run"
            )
