"""A model on disk: a folder with `manifest.json` and one safetensors file that the manifest names by its content.

The arrays are written first, the manifest last, each by an atomic rename; so at every moment the folder holds the
whole old model or the whole new one. No array format notices damage by itself: the manifest carries a SHA-256 of
itself, of the file and of every array. Nothing in a folder is executed: `make(shape, config)` rebuilds the model.
"""

import contextlib
import hashlib
import json
import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from svae.config import Config, ConfigError

FORMAT = 1
MANIFEST = "manifest.json"
LARGEST_MANIFEST = 2**26  # bytes; read no more than this on the word of a file


class StoreError(ValueError):
    """A model that cannot be saved or loaded, and why, in one sentence."""


def save(model: eqx.Module, path: str | os.PathLike, *, extra: dict | None = None) -> None:
    """Write a model made by `make`, and any JSON values beside it, into the folder `path`."""
    arrays = {name: np.asarray(leaf, order="C") for name, leaf in _leaves(model).items()}
    _compare(_signature(arrays), _build(model.shape, model.config), "the model")
    data = safetensors.numpy.save(arrays)
    file = f"model-{_sha256(data)[:16]}.safetensors"
    manifest = _encode(_manifest(model, arrays, file, data, {} if extra is None else extra))
    folder = Path(path)
    try:
        os.makedirs(folder, exist_ok=True)
        _sync_folder(folder.parent)
        _write_atomically(folder / file, data)
        _write_atomically(folder / MANIFEST, manifest)
        _remove_others(folder, file)
    except OSError as error:
        raise StoreError(f"the model could not be written to {folder}: {error.strerror or error}") from error


def load_model(path: str | os.PathLike) -> eqx.Module:
    """The model that `save` wrote, bit for bit; anything missing, damaged or changed raises StoreError."""
    folder = Path(path)
    manifest = _read_manifest(folder)
    try:
        skeleton = _build(tuple(manifest["shape"]), Config.make(manifest["config"]))
    except ConfigError as error:
        raise StoreError(f"{folder} has a configuration that this version of svae does not know: {error}") from None
    _compare({name: f"{a['dtype']}{a['shape']}" for name, a in manifest["arrays"].items()}, skeleton, folder)
    arrays = _read_arrays(folder, manifest)
    dynamic, static = eqx.partition(skeleton, _is_array)
    filled = jax.tree_util.tree_map_with_path(lambda path, _: jax.numpy.asarray(arrays[_name(path)]), dynamic)
    return eqx.combine(filled, static)


def load_extra(path: str | os.PathLike) -> dict:
    """The JSON values that were saved beside the model."""
    return _read_manifest(Path(path))["extra"]


def _build(shape, config):
    """The model's structure with shapes in place of arrays; nothing is computed."""
    from svae._model import make

    return eqx.filter_eval_shape(lambda: make(shape, config))


def _name(path):
    return jax.tree_util.keystr(path, simple=True, separator=".")


def _is_array(leaf):
    return eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)


def _leaves(model):
    """Every array of a model, or of its skeleton, by its name."""
    return {_name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(model) if _is_array(leaf)}


def _signature(arrays):
    return {name: f"{a.dtype}{list(a.shape)}" for name, a in arrays.items()}


def _compare(found, skeleton, where):
    """Raise unless names, dtypes and shapes are those of the skeleton."""
    wanted = _signature(_leaves(skeleton))
    for name in sorted(found.keys() | wanted.keys()):
        here, asked = found.get(name, "nothing"), wanted.get(name, "nothing")
        if here != asked:
            hint = "; was it saved with another jax_enable_x64?" if "float64" in here + asked else ""
            raise StoreError(f"{where} holds {here} as {name}, but its configuration asks for {asked}{hint}")


def _sha256(data):
    return hashlib.sha256(data).hexdigest()


def _version():
    try:
        return version("svae")
    except PackageNotFoundError:
        return "a source tree that is not installed"


def _manifest(model, arrays, file, data, extra):
    return {
        "format": FORMAT,
        "versions": {"svae": _version(), "jax": jax.__version__},
        "config": model.config.to_dict(),
        "shape": list(model.shape),
        "file": {"name": file, "bytes": len(data), "sha256": _sha256(data)},
        "arrays": {name: _entry(array) for name, array in arrays.items()},
        "extra": extra,
    }


def _entry(array):
    return {"dtype": str(array.dtype), "shape": list(array.shape), "sha256": _sha256(array.tobytes())}


def _encode(body):
    """The only spelling of a manifest that we accept; its last entry is the SHA-256 of the text without it."""
    try:
        seal = _sha256(json.dumps(body).encode())
        return json.dumps(body | {"sha256": seal}, indent=1, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise StoreError(f"extra must hold JSON values only: {error}") from None


def _read_manifest(folder):
    data = _read(folder / MANIFEST, LARGEST_MANIFEST)
    try:
        body = json.loads(data)
        del body["sha256"]
        intact = _encode(body) == data
    except (ValueError, TypeError, KeyError, RecursionError):
        intact = False
    if not intact:
        raise StoreError(f"{folder / MANIFEST} is damaged or was changed by hand; restore it from a copy")
    if body.get("format") != FORMAT:
        raise StoreError(f"{folder} has format {body.get('format')!r}; this version of svae reads format {FORMAT}")
    return body


def _read(file, most):
    try:
        with open(file, "rb") as stream:
            data = stream.read(most + 1)
    except OSError as error:
        raise StoreError(f"{file} could not be read: {error.strerror or error}") from None
    if len(data) > most:
        raise StoreError(f"{file} is larger than it can rightly be ({most} bytes)")
    return data


def _read_arrays(folder, manifest):
    file = folder / Path(manifest["file"]["name"]).name  # never outside the folder
    data = _read(file, manifest["file"]["bytes"])
    if _sha256(data) != manifest["file"]["sha256"]:
        raise StoreError(f"{file} is damaged: its SHA-256 is not the one in the manifest; restore it from a copy")
    try:
        arrays = safetensors.numpy.load(data)
    except SafetensorError as error:
        raise StoreError(f"{file} is not a safetensors file: {error}") from None
    for name, entry in manifest["arrays"].items():
        if name not in arrays or _entry(arrays[name]) != entry:
            raise StoreError(f"{file} does not hold the array {name} that was saved")
    return arrays


def _write_atomically(file, data):
    """Temporary file in the same folder, write, fsync, rename, fsync the folder."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, file)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(file.parent)


def _sync_folder(folder):
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_others(folder, keep):
    """Remove what earlier saves, finished or killed, have left; the manifest no longer names any of it."""
    for old in [*folder.glob("model-*.safetensors"), *folder.glob(f".{MANIFEST}.*.tmp"), *folder.glob(".model-*.tmp")]:
        if old.name != keep:
            with contextlib.suppress(OSError):
                os.unlink(old)
