"""A model on disk: a sealed folder of its arrays, its configuration, its shape and its preprocessing.

`make` rebuilds the model and the arrays fill it; nothing in a folder is executed.
"""

import os
from pathlib import Path

import equinox as eqx
import jax
import numpy as np

from svae import _sealed
from svae._sealed import StoreError
from svae.config import Config, ConfigError
from svae.data import Preprocess

__all__ = ["StoreError", "load_extra", "load_model", "save"]
UNBUILDABLE = (TypeError, ValueError, OverflowError, MemoryError, ArithmeticError)


def save(model: eqx.Module, path: str | os.PathLike, *, extra: dict | None = None) -> None:
    """Write a model made by `make`, and any JSON values beside it, into the folder `path`."""
    arrays = arrays_of(model)
    compare(signature(arrays), _build(model.shape, model.config, model.preprocess), "the model")
    _sealed.write(Path(path), arrays, _body(model, {} if extra is None else extra))


def load_model(path: str | os.PathLike) -> eqx.Module:
    """The model that `save` wrote, bit for bit; anything missing, damaged or changed raises StoreError."""
    folder = Path(path)
    manifest = _read_manifest(folder)
    skeleton = _skeleton(folder, manifest)
    compare({name: f"{a['dtype']}{a['shape']}" for name, a in manifest["arrays"].items()}, skeleton, str(folder))
    return filled(skeleton, _sealed.read_arrays(folder, manifest))


def load_extra(path: str | os.PathLike) -> dict:
    """The JSON values that were saved beside the model."""
    return _read_manifest(Path(path))["extra"]


def _body(model, extra):
    """What is written beside the arrays: all that `_skeleton` needs."""
    static = {"config": model.config.to_dict(), "shape": list(model.shape), "preprocess": model.preprocess.to_dict()}
    return static | {"extra": extra}


def _read_manifest(folder):
    manifest = _sealed.read_manifest(folder)
    _sealed.require(folder, manifest, {"config": dict, "shape": list, "preprocess": dict, "extra": dict})
    return manifest


def _skeleton(folder, manifest):
    try:
        config = Config.make(manifest["config"])
    except ConfigError as error:
        raise StoreError(f"{folder} has a configuration that this version of svae does not know: {error}") from None
    try:
        return _build(tuple(manifest["shape"]), config, Preprocess.from_dict(manifest["preprocess"]))
    except UNBUILDABLE:
        raise StoreError(f"{folder} asks for a model that cannot be built; restore it from a copy") from None


def _build(shape, config, preprocess):
    """The model's structure with shapes in place of arrays; nothing is computed."""
    from svae._model import make

    return eqx.filter_eval_shape(lambda: make(shape, config, preprocess=preprocess))


# --- any tree as named arrays, and back ---------------------------------------------------------------------------


def arrays_of(tree: object) -> dict[str, np.ndarray]:
    """Every array of a tree by its name: q.dynamics.M."""
    return {name: np.asarray(leaf, order="C") for name, leaf in _leaves(tree).items()}


def filled(skeleton: object, arrays: dict[str, np.ndarray]) -> object:
    """The skeleton with arrays in place of its shapes."""
    dynamic, static = eqx.partition(skeleton, _is_array)
    leaf_of = lambda path, _: jax.numpy.asarray(arrays[_name(path)])  # noqa: E731
    return eqx.combine(jax.tree_util.tree_map_with_path(leaf_of, dynamic), static)


def signature(arrays: dict) -> dict[str, str]:
    """dtype and shape of each array as text: float32[3, 3]."""
    return {name: f"{a.dtype}{list(a.shape)}" for name, a in arrays.items()}


def compare(found: dict[str, str], skeleton: object, where: str) -> None:
    """Raise unless names, dtypes and shapes are those of the skeleton."""
    wanted = signature(_leaves(skeleton))
    for name in sorted(found.keys() | wanted.keys()):
        here, asked = found.get(name, "nothing"), wanted.get(name, "nothing")
        if here != asked:
            raise StoreError(
                f"{where} holds {here} as {name}, but its configuration asks for {asked}{_hint(here, asked)}"
            )


def _hint(here: str, asked: str) -> str:
    if "float64" in here + asked:
        return "; was it saved with another jax_enable_x64?"
    if "nothing" in (here, asked):
        return "; another version of svae saved it: go on with that one, or begin again in another folder"
    return ""


def _name(path):
    return jax.tree_util.keystr(path, simple=True, separator=".")


def _is_array(leaf):
    return eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)


def _leaves(tree):
    return {_name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree) if _is_array(leaf)}
