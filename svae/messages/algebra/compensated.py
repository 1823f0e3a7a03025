"""Sums that do not drift: float32 terms added with their rounding errors carried along."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float


def two_sum(a, b):
    """s = fl(a + b) and its exact rounding error (Knuth)."""
    s = a + b
    bb = s - a
    return s, (a - (s - bb)) + (b - bb)


def _add(left, right):
    s, error = two_sum(left[0], right[0])
    return s, left[1] + right[1] + error


def _halve(pair):
    """Adds the second half of each array onto the first (an odd one out is kept by a zero)."""
    n = pair[0].shape[0]
    pair = [jnp.pad(x, [(0, n % 2)] + [(0, 0)] * (x.ndim - 1)) for x in pair]
    half = (n + 1) // 2
    return _add([x[:half] for x in pair], [x[half:] for x in pair])


@jax.custom_jvp
def _sum(x):
    pair = (x, jnp.zeros_like(x))
    while pair[0].shape[0] > 1:
        pair = _halve(pair)
    return pair[0][0] + pair[1][0]


@_sum.defjvp
def _(primals, tangents):
    return _sum(*primals), jnp.sum(tangents[0], 0)


def compensated_sum(x: Float[Array, "..."], axis: int = 0) -> Float[Array, "..."]:
    """Sum over one axis by a pairwise tree whose rounding errors are summed beside it; the gradient is ones.

    Args:
        x: An array.
        axis: The axis to sum over.

    Returns:
        The sum.
    """
    x = jnp.moveaxis(jnp.asarray(x), axis, 0)
    return _sum(lax.optimization_barrier(x)) if x.shape[0] else jnp.zeros(x.shape[1:], x.dtype)
