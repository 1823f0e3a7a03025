"""A model on disk: a sealed folder of its arrays, configuration, shape, preprocessing and the layout of its data.

`make` rebuilds the model and the arrays fill it; nothing in a folder is executed.
"""

import dataclasses
import json
import os
from collections.abc import Container
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from svae import _sealed
from svae._sealed import StoreError
from svae.config import OWN, Config, ConfigError, with_split_seed
from svae.data import Layout, Preprocess

__all__ = ["StoreError", "load_extra", "load_model", "save"]
OWN_PARTS = {"pgm": "a graph", "recognize": "a recognition network", "observe": "an observation network"}
UNBUILDABLE = (TypeError, ValueError, OverflowError, MemoryError, ArithmeticError)


def save(model: Any, path: str | os.PathLike, *, extra: dict | None = None) -> None:
    """Write a model made by `make`, and any JSON values beside it, into the folder `path`.

    Args:
        model: A model, fitted or not.
        path: The folder to write.
        extra: JSON values to keep beside the model.

    Returns:
        Nothing; `load_model` and `load_extra` read the folder.

    Examples:
        >>> import svae, tempfile
        >>> model = svae.make((2,), model="hmm", states=3, latent_dim=2, hidden=())
        >>> folder = tempfile.mkdtemp() + "/model"
        >>> svae.save(model, folder, extra={"animal": "m12"})
        >>> svae.load_extra(folder)
        {'animal': 'm12'}
    """
    arrays, own = arrays_of(model), ["pgm"]
    if _is_whole(model.config):
        skeleton = _build(model.shape, _with_our_likelihood(model.config), model.preprocess, model.layout)
        own = _own_parts(model, skeleton)
        if not own:
            compare(signature(arrays), skeleton, "the model")
    _sealed.write(Path(path), arrays, _body(model, {} if extra is None else extra) | {"own": own})


def load_model(path: str | os.PathLike, *, like: Any = None) -> Any:
    """The model that `save` wrote, bit for bit.

    Args:
        path: A folder written by `save`, or the folder `model` of a run.
        like: A model made of the same parts, for blocks and networks of one's own, which no folder can hold.

    Returns:
        The model.

    Raises:
        StoreError: Something is missing, damaged or changed; the sentence says what.

    Examples:
        >>> import svae, tempfile
        >>> model = svae.make((2,), model="hmm", states=3, latent_dim=2, hidden=())
        >>> folder = tempfile.mkdtemp() + "/model"
        >>> svae.save(model, folder)
        >>> svae.load_model(folder).config == model.config
        True
    """
    folder = Path(path)
    manifest = _read_manifest(folder)
    own = [str(part) for part in manifest.get("own", [])]
    if own and like is None:
        parts = " and ".join(OWN_PARTS.get(part, part) for part in own)
        arguments = ", ".join(f"{part}=..." for part in own)
        raise StoreError(f"{folder} holds a model with {parts} of its own: load it with like=make(shape, {arguments})")
    skeleton = _skeleton(folder, manifest) if like is None else _alike(folder, manifest, like)
    found = {name: f"{a['dtype']}{a['shape']}" for name, a in manifest["arrays"].items()}
    written = int(manifest["format"])
    since = {} if written > 1 else since_format_1(found, skeleton)
    compare(named_now(found, written) | signature(since), skeleton, str(folder))
    return filled(skeleton, named_now(_sealed.read_arrays(folder, manifest), written) | since)


def load_extra(path: str | os.PathLike) -> dict:
    """The JSON values that were saved beside the model.

    Args:
        path: A folder written by `save`.

    Returns:
        What `save` was given as `extra`, `{}` where it was given nothing.

    Examples:
        >>> import svae, tempfile
        >>> folder = tempfile.mkdtemp() + "/model"
        >>> svae.save(svae.make((2,), model="vae", latent_dim=1, hidden=()), folder)
        >>> svae.load_extra(folder)
        {}
    """
    return _read_manifest(Path(path))["extra"]


def _body(model, extra):
    """What is written beside the arrays: all that `_skeleton` needs."""
    static = {"config": model.config.to_dict(), "shape": list(model.shape), "preprocess": model.preprocess.to_dict()}
    return static | {"layout": model.layout.to_dict(), "extra": extra}


def _read_manifest(folder) -> dict[str, Any]:
    manifest = _sealed.read_manifest(folder)
    if manifest["format"] == 1:  # models had no layout then
        manifest = {"layout": Layout().to_dict()} | manifest
    kinds = {"config": dict, "shape": list, "preprocess": dict, "layout": dict, "extra": dict}
    _sealed.require(folder, manifest, kinds)
    return manifest


def _alike(folder, manifest, like):
    """A model's structure, its values left out."""
    body = json.loads(json.dumps(_body(like, {})))
    for entry in ("config", "shape", "preprocess"):
        if manifest[entry] != body[entry]:
            raise StoreError(f"{folder} holds a model with another {entry} than the one in like=; make that one alike")
    layout = Layout.from_dict(manifest["layout"])
    return eqx.filter_eval_shape(lambda: dataclasses.replace(like, layout=layout))


def _skeleton(folder, manifest):
    try:
        config = Config.make(with_split_seed(manifest["config"]))
    except ConfigError as error:
        raise StoreError(f"{folder} has a configuration that this version of svae does not know: {error}") from None
    if not _is_whole(config) or config.likelihood == OWN:
        raise StoreError(f"{folder} holds a model with parts of its own: load it with like=make(...)")
    try:
        before, layout = Preprocess.from_dict(manifest["preprocess"]), Layout.from_dict(manifest["layout"])
        return _build(tuple(manifest["shape"]), config, before, layout)
    except UNBUILDABLE:
        raise StoreError(f"{folder} asks for a model that cannot be built; restore it from a copy") from None


def _is_whole(config: Config) -> bool:
    """Whether a configuration has its latent graph."""
    return config.model != OWN or bool(config.latent)


def _with_our_likelihood(config: Config) -> Config:
    """A configuration that can be built: an own likelihood is then found to differ."""
    return dataclasses.replace(config, likelihood=Config.likelihood) if config.likelihood == OWN else config


def _own_parts(model: Any, skeleton: Any) -> list[str]:
    """The parts of a model that `make` would not build like this from its configuration."""

    def unlike(name: str) -> bool:
        here, there = (jax.tree.flatten(getattr(tree, name, None)) for tree in (model, skeleton))
        fixed = [[leaf for leaf in leaves if not _is_array(leaf)] for leaves, _ in (here, there)]
        said = name == "observe" and model.config.likelihood == OWN
        return said or here[1] != there[1] or fixed[0] != fixed[1]

    return [name for name in OWN_PARTS if unlike(name)]


def _build(shape, config, preprocess, layout):
    """The model's structure with shapes in place of arrays; nothing is computed."""
    from svae.model import make

    return eqx.filter_eval_shape(lambda: make(shape, config, preprocess=preprocess, layout=layout))


# --- any tree as named arrays, and back ---------------------------------------------------------------------------


def named_now(found: dict, written: int) -> dict:
    """What a folder of format `written` holds, by the names that its arrays have now."""
    from svae.pgm import name_now

    return {name_now(name): value for name, value in found.items()} if written == 1 else found


def since_format_1(found: Container[str], skeleton: object) -> dict[str, np.ndarray]:
    """Arrays of the skeleton that models of format 1 did not have: places that say nothing."""
    leaves = {name: leaf for name, leaf in _leaves(skeleton).items() if "places." in name and name not in found}
    start = {"noise": np.ones, "root": lambda shape: np.broadcast_to(np.eye(shape[-1]), shape)}  # as in `no_places`
    return {
        name: start.get(name.rpartition(".")[2], np.zeros)(leaf.shape).astype(leaf.dtype)
        for name, leaf in leaves.items()
    }


def arrays_of(tree: object) -> dict[str, np.ndarray]:
    """Every array of a tree by its name: q.dynamics.M."""
    return {name: np.asarray(leaf, order="C") for name, leaf in _leaves(tree).items()}


def filled(skeleton: object, arrays: dict[str, np.ndarray]) -> Any:
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
