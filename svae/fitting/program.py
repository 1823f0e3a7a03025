"""One step as a compiled program, of one model or of all restarts at once, over the devices of a mesh."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from svae._compiling import compiled, options
from svae.data import Batch
from svae.devices import everywhere, others_alive, over, replicated, spread
from svae.fitting import updates
from svae.model import SVAE


class Finite(eqx.Module):
    """Which parts of the bound and leaves of the gradient were finite, and their names."""

    each: Bool[Array, "... parts"]
    names: tuple[str, ...] = eqx.field(static=True)


class Taken(NamedTuple):
    """What a step gave."""

    model: SVAE
    state: Any
    bound: Any
    good: Array
    finite: Finite
    shown: SVAE | None = None  # of many restarts the one that is shown; taken out by the program, leaf by leaf is slow
    done: Array | None = None  # steps taken by now


def _take(model, state, piece, key, num_data, frames, how: updates.How) -> Taken:
    rows = {"counted": piece.counted} | ({"beside": piece.beside} if jax.tree.leaves(piece.beside) else {})
    bound, gradient = how.estimator(model, piece.y, piece.mask, num_data=num_data, key=key, **rows)
    update = updates.update(model, gradient, state, how.of(model.config), 1.0 / frames)
    return Taken(update.model, update.state, bound, update.good, _finite(gradient, bound.bound, update.good))


def _finite(gradient: Any, bound: Array, good: Bool[Array, ""]) -> Finite:
    """Whether the bound is finite, and each leaf of the gradient, named by its path (q.dynamics.uxT).

    Leaves are looked at after a bad step only.
    """
    paths, leaves = zip(*jax.tree_util.tree_leaves_with_path(eqx.filter(gradient, eqx.is_inexact_array)), strict=True)
    look = lambda: jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves])  # noqa: E731
    each = jax.lax.cond(good, lambda: jnp.ones(len(leaves), bool), look)
    name = functools.partial(jax.tree_util.keystr, simple=True, separator=".")
    return Finite(jnp.append(each, jnp.isfinite(bound)), (*map(name, paths), "bound"))


@compiled
def take_one(model, state, piece, key, num_data, frames, how: updates.How) -> Taken:
    """Compiled once for a config and a shape, however many fits use it."""
    return everywhere(_take(model, state, piece, key, num_data, frames, how))


def take_all(models, states, piece, key, restart, num_data, frames, how: updates.How) -> Taken:
    """All restarts in one program: the leading axis of the models and their states; `restart` is shown."""
    arrays, rest = _arrays_and_rest(models)
    taken = _all(rest, how)(arrays, states, piece, key, restart, num_data, frames)
    return taken._replace(model=_whole(taken.model, rest), shown=_whole(taken.shown, rest))


@functools.lru_cache(maxsize=64)
def _all(rest, how: updates.How) -> Callable:
    """The program of `take_all`. It is plain `jit`: `filter_jit` waits until what it has started is done."""

    def program(arrays, states, piece, key, restart, num_data, frames):
        def one(arrays, state, key):
            taken = _take(_whole(arrays, rest), state, piece, key, num_data, frames, how)
            return taken._replace(model=eqx.filter(taken.model, eqx.is_array))

        every = jax.vmap if len(states.step) > 1 else _alone  # an axis of one in every product costs a fifth of a step
        keys = jax.random.split(keys_of_step(key, states.step[0])[0], len(states.step))
        taken = every(one)(arrays, states, keys)
        # What no step changes is handed back as it came: the compiler would copy it.
        pgm = dataclasses.replace(arrays.pgm, ordinary=taken.model.pgm.ordinary)
        models = dataclasses.replace(taken.model, pgm=pgm, scaling=arrays.scaling)
        done = taken.state.step[0].astype(jnp.int32)
        return everywhere(taken._replace(model=models, shown=pick(models, restart), done=done))

    return jax.jit(program, compiler_options=options(1))


def _arrays_and_rest(model) -> tuple:
    """The arrays of a model, and whatever else its leaves are, to be compared by value; None where they are arrays."""
    if all(eqx.is_array(leaf) for leaf in jax.tree.leaves(model)):
        return model, None
    arrays, rest = eqx.partition(model, eqx.is_array)
    leaves, form = jax.tree.flatten(rest)
    return arrays, (tuple(leaves), form)


def _whole(arrays, rest):
    """A model of its arrays and the rest."""
    return arrays if rest is None else eqx.combine(arrays, jax.tree.unflatten(rest[1], rest[0]))


def keys_of_step(key, step):
    """For the step itself, and for what is measured after it."""
    return jax.random.split(jax.random.fold_in(key, step))


def _alone(function: Callable) -> Callable:
    """`vmap` over axes of one entry, without one."""
    add = lambda tree: jax.tree.map(lambda a: a[None], tree)  # noqa: E731
    return lambda *trees: add(function(*(pick(tree, 0) for tree in trees)))


def take(program: Callable, placed: tuple, piece: Batch, keys: tuple, totals: tuple, how: updates.How, mesh):
    """One step of `take_one` or `take_all` over a mesh, from models and states on all of its devices to the same."""
    with over(mesh), others_alive():
        taken = program(*placed, spread(piece, mesh), *replicated((*keys, *totals), mesh), how)
        return taken if jax.process_count() == 1 else jax.block_until_ready(taken)


# --- models of several restarts as one ----------------------------------------------------------------------------


def stack(models: list[SVAE]) -> SVAE:
    """Models with a leading axis in every array."""
    arrays = [eqx.filter(m, eqx.is_array) for m in models]
    stacked = jax.tree.map(_stacked, *arrays)
    return eqx.combine(stacked, eqx.filter(models[0], eqx.is_array, inverse=True))


def pick(tree: Any, index: int | Int[Array, ""]) -> Any:
    """One of them."""
    return jax.tree.map(lambda leaf: _picked(leaf, index) if eqx.is_array(leaf) else leaf, tree)


# Outside of a program numpy does it: jax would compile a program of its own for every shape.


def _stacked(*leaves: Array) -> Array:
    return jnp.stack(leaves) if _in_a_program(leaves) else jnp.asarray(np.stack([np.asarray(leaf) for leaf in leaves]))


def _picked(leaf: Array, index: int | Int[Array, ""]) -> Array:
    return leaf[index] if _in_a_program((leaf, index)) else jnp.asarray(np.asarray(leaf)[index])


def _in_a_program(values: tuple) -> bool:
    return any(isinstance(value, jax.core.Tracer) for value in values)
