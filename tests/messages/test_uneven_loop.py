"""A loop of many rows gives every row what it has alone, and leaves out the rows that are done."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from svae.messages import fixed_point
from svae.messages.algebra.uneven_loop import loop

PACE = jnp.concatenate([jnp.full(24, 0.1), jnp.linspace(0.5, 0.9, 8)])  # most rows are done early


def near(pace, goal):
    """x = pace x + goal, and how it was found."""
    return fixed_point(
        lambda x, args: args[0] * x + args[1], jnp.zeros((2, 3)), (pace, goal), tolerance=1e-5, max_iterations=99
    )


@pytest.mark.parametrize("rows", [3, 16, 32])
def test_rows_of_a_batch_are_those_of_a_loop_of_their_own(rows, x64):
    """In double precision, so that rounding does not decide which sweep is the last."""
    pace, goal = PACE[-rows:].astype(float), jnp.ones((2, 3))
    together, one = jax.jit(jax.vmap(near, (0, None)))(pace, goal), jax.jit(near)
    for i in range(0, rows, 3):
        for got, want in zip(together, one(pace[i], goal), strict=True):
            np.testing.assert_allclose(got[i], want, rtol=1e-6, atol=1e-9)


def test_batches_of_batches_and_derivatives():
    goal = jnp.arange(12.0).reshape(2, 2, 3) + 1
    total = lambda pace, goal: jnp.sum(near(pace, goal).value ** 2)  # noqa: E731
    both = jax.vmap(jax.vmap(jax.value_and_grad(total, (0, 1)), (0, None)), (None, 0))
    value, (d_pace, d_goal) = jax.jit(both)(PACE, goal)
    rest = (1 / (1 - PACE))[None, :]
    squares = jnp.sum(goal**2, (1, 2))[:, None]
    np.testing.assert_allclose(value, squares * rest**2, rtol=1e-3)
    np.testing.assert_allclose(d_pace, 2 * squares * rest**3, rtol=5e-3)
    np.testing.assert_allclose(d_goal, 2 * goal[:, None] * rest[..., None, None] ** 2, rtol=5e-3)


def test_a_row_that_is_done_is_computed_no_more():
    seen = []

    def step(i, last):
        jax.debug.callback(lambda i: seen.append(int(i)), i)
        return i + 1, last

    last = jnp.where(jnp.arange(16) < 12, 2, 20)
    counted = jax.vmap(lambda last: loop(lambda s: s[0] < s[1], lambda s, _: step(*s), (jnp.zeros((), int), last), ()))
    i, _ = jax.block_until_ready(counted(last))
    jax.effects_barrier()
    np.testing.assert_array_equal(i, last)
    assert len(seen) == 16 * 2 + 4 * 18
