"""A folder of arrays under seal: `manifest.json` and one safetensors file that the manifest names by its content.

The arrays are written first, the manifest last, each by an atomic rename; so at every moment the folder holds all of
the old arrays or all of the new ones. No array format notices damage by itself: the manifest carries a SHA-256 of
itself, of the file and of every array. Nothing in a folder is executed.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

FORMAT = 2  # 1: latent models without blocks, which did not know the names, unit and frame rate of their data
READABLE = (1, 2)
MANIFEST = "manifest.json"
LARGEST_MANIFEST = 2**26  # bytes; read no more than this on the word of a file


class StoreError(ValueError):
    """A model that cannot be saved or loaded, and why, in one sentence."""


# --- writing ------------------------------------------------------------------------------------------------------


def write(folder: Path, arrays: dict[str, np.ndarray], body: dict) -> None:
    """Write arrays, and a body of JSON values beside them, into a folder; what it held before is replaced at once."""
    data = safetensors.numpy.save(arrays)
    file = f"arrays-{sha256(data)[:16]}.safetensors"
    entries = {name: _entry(array) for name, array in arrays.items()}
    head = {"format": FORMAT, "svae": own_version(), "file": {"name": file, "bytes": len(data), "sha256": sha256(data)}}
    manifest = encode(head | body | {"arrays": entries})
    try:
        os.makedirs(folder, exist_ok=True)
        sync_folder(folder.parent)
        write_atomically(folder / file, data)
        write_atomically(folder / MANIFEST, manifest)
        _remove_others(folder, file)
    except OSError as error:
        raise StoreError(f"{folder} could not be written: {error.strerror or error}") from error


def write_atomically(file: Path, data: bytes) -> None:
    """The whole file or, whatever happens, what was there before."""
    replace_by(file, lambda temporary: temporary.write_bytes(data))


def replace_by(file: Path, write: Callable[[Path], Any]) -> None:
    """`write` a temporary file in the same folder, fsync, rename, fsync the folder."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        _sync(temporary)
        os.replace(temporary, file)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(file.parent)


def sync_folder(folder: Path) -> None:
    """The names in a folder are on the disk when this returns."""
    if os.name == "posix":  # elsewhere a folder cannot be opened
        _sync(folder)


def _sync(path):
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_others(folder, keep):
    """Remove what earlier saves, finished or killed, have left; the manifest no longer names any of it."""
    for old in [*folder.glob("*.safetensors"), *folder.glob(".*.tmp")]:
        if old.name != keep:
            with contextlib.suppress(OSError):
                os.unlink(old)


# --- the seal -----------------------------------------------------------------------------------------------------


def sha256(data: bytes) -> str:
    """The SHA-256 of bytes, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def encode(body: dict) -> bytes:
    """The only spelling of a manifest that we accept; its last entry is the SHA-256 of the text without it."""
    try:
        seal = sha256(json.dumps(body).encode())
        return json.dumps(body | {"sha256": seal}, indent=1, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise StoreError(f"extra must hold JSON values only: {error}") from None


def own_version() -> str:
    """The version of svae, as it is installed."""
    try:
        return version("svae")
    except PackageNotFoundError:
        return "a source tree that is not installed"


def _entry(array):
    return {"dtype": str(array.dtype), "shape": list(array.shape), "sha256": sha256(array.tobytes())}


# --- reading ------------------------------------------------------------------------------------------------------


def read(folder: Path) -> tuple[dict[str, np.ndarray], dict]:
    """The arrays and the manifest; anything missing, damaged or changed raises StoreError."""
    manifest = read_manifest(folder)
    return read_arrays(folder, manifest), manifest


def read_manifest(folder: Path) -> dict:
    """The manifest, its seal whole and its own entries of the right kind."""
    data = _read(folder / MANIFEST, LARGEST_MANIFEST)
    try:
        body = json.loads(data)
        del body["sha256"]
        intact = encode(body) == data
    except (ValueError, TypeError, KeyError, RecursionError):
        intact = False
    if not intact:
        raise StoreError(f"{folder / MANIFEST} is damaged or was changed by hand; restore it from a copy")
    if body.get("format") not in READABLE:
        raise StoreError(
            f"{folder} has format {body.get('format')!r}; this version of svae reads formats up to {FORMAT}"
        )
    require(folder, body, {"file": dict, "arrays": dict})
    require(folder, body["file"], {"name": str, "bytes": int, "sha256": str})
    for entry in body["arrays"].values():
        require(folder, entry, {"dtype": str, "shape": list, "sha256": str})
    return body


def require(folder: Path, entries: object, kinds: dict[str, type]) -> None:
    """Raise unless `entries` is a dict with a value of the right kind under each name."""
    for name, kind in kinds.items():
        if not isinstance(entries, dict) or not isinstance(entries.get(name), kind):
            raise StoreError(f"{folder / MANIFEST} has no entry {name!r} of the right kind; restore it from a copy")


def read_arrays(folder: Path, manifest: dict) -> dict[str, np.ndarray]:
    """The arrays that the manifest names, bit for bit."""
    file = folder / Path(manifest["file"]["name"]).name  # never outside the folder
    data = _read(file, manifest["file"]["bytes"])
    if sha256(data) != manifest["file"]["sha256"]:
        raise StoreError(f"{file} is damaged: its SHA-256 is not the one in the manifest; restore it from a copy")
    try:
        arrays = safetensors.numpy.load(data)
    except (SafetensorError, KeyError, ValueError) as error:
        raise StoreError(f"{file} is not a safetensors file of ours: {error}") from None
    for name, entry in manifest["arrays"].items():
        if name not in arrays or _entry(arrays[name]) != entry:
            raise StoreError(f"{file} does not hold the array {name} that was saved")
    return arrays


def _read(file, most):
    try:
        with open(file, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            data = b"" if size > most else stream.read()
    except OSError as error:
        raise StoreError(f"{file} could not be read: {error.strerror or error}") from None
    if size > most:
        raise StoreError(f"{file} is larger than it can rightly be ({most} bytes)")
    return data
