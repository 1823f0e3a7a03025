"""Expected statistics as the gradient of log Z, with a derivative of their own in bounded memory.

A filter gives increments c_t(potentials) of log Z; the statistics are the gradient of sum_t c_t. Their Jacobian is a
Hessian, and symmetric: a cotangent is pulled back by pushing it forward as a tangent, so nothing of the backward pass
is kept.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def _gradient(increments: Callable, potentials: Any, mask):
    found, pull = jax.vjp(lambda p: increments(p, mask), potentials)
    return pull(jnp.ones_like(found))[0], found


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def statistics(increments: Callable, potentials: Any, mask):
    """The gradient of log Z, shaped like the potentials, and increments(potentials, mask), which sum to log Z."""
    return _gradient(increments, potentials, mask)


def _forward(increments, potentials, mask):
    return _gradient(increments, potentials, mask), (potentials, mask)


def _backward(increments, kept, cotangents):
    potentials, mask = kept
    tangents, weights = cotangents
    curved = jax.jvp(lambda p: _gradient(increments, p, mask)[0], (potentials,), (tangents,))[1]
    (sloped,) = jax.vjp(lambda p: increments(p, mask), potentials)[1](weights)
    return jax.tree.map(jnp.add, curved, sloped), None


statistics.defvjp(_forward, _backward)
