"""A loop whose rows are done at different times: of a batch, the last few go on by themselves."""

import jax
import jax.numpy as jnp
from jax import lax

SMALLEST_BATCH = 16  # batch whose last quarter goes on by itself


def loop(more, step, state, args):
    """`while more(state): state = step(state, args)`, of one row.

    A batch of rows under `vmap` steps all of them until a quarter is left, then only that quarter: a row that is done
    is computed no more, where a plain `while_loop` computes it as long as the slowest. `step` takes all that it depends
    on through its arguments; it is compiled for both sizes.
    """

    @jax.custom_batching.custom_vmap
    def one(state, args):
        return lax.while_loop(more, lambda state: step(state, args), state)

    @one.def_vmap
    def many(size, batched, state, args):
        state = jax.tree.map(lambda a, own: a if own else jnp.broadcast_to(a, (size, *a.shape)), state, batched[0])
        axes = jax.tree.map(lambda own: 0 if own else None, batched[1])
        few = size // 4 if size >= SMALLEST_BATCH else 0
        state = _until(few, more, step, state, args, axes)
        if few:
            state = _last(few, more, step, state, args, axes)
        return state, jax.tree.map(lambda _: True, state)

    return one(state, args)


def _until(few: int, more, step, state, args, axes):
    """Steps of all rows until at most `few` go on; those that do not stay as they are."""
    going = lambda state: jax.vmap(more)(state)  # noqa: E731

    def advance(state):
        return jax.tree.map(_where(going(state)), jax.vmap(step, (0, axes))(state, args), state)

    return lax.while_loop(lambda state: jnp.sum(going(state)) > few, advance, state)


def _where(rows):
    """Chooses rows of one of two arrays."""
    return lambda new, old: jnp.where(rows.reshape(-1, *[1] * (new.ndim - 1)), new, old)


def _last(few: int, more, step, state, args, axes):
    """The rows that go on, and some that do not, by themselves."""
    _, rows = lax.top_k(jax.vmap(more)(state).astype(jnp.int32), few)
    own = jax.tree.map(lambda axis, a: a if axis is None else a[rows], axes, args, is_leaf=lambda axis: axis is None)
    found = _until(0, more, step, jax.tree.map(lambda a: a[rows], state), own, axes)
    return jax.tree.map(lambda all_rows, a: all_rows.at[rows].set(a), state, found)
