"""Linear recursions over time, x_0 = c_0 and x_t = F_t-1 x_t-1 + c_t (vectors) or F X F' + C (matrices).

Their tangents obey the same recursion, so the derivative rules leave nothing but that recursion inside a scan.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from svae._linalg import mm, mT, mv


def scan(apply, F, c):
    """x_t = apply(F_t-1, x_t-1) + c_t, one step after another."""

    def step(x, inputs):
        F, c = inputs
        x = apply(F, x) + c
        return x, x

    return jnp.concatenate([c[:1], lax.scan(step, c[0], (F, c[1:]))[1]])


def sandwich(F, X):
    """F X F'."""
    return mm(mm(F, X), mT(F))


def vectors_tangent(F, dF, x, dc):
    """dc_t + dF_t-1 x_t-1: what drives the tangents of x."""
    return dc.at[1:].add(mv(dF, x[:-1]))


def matrices_tangent(F, dF, X, dC):
    """dC_t + dF X F' + F X dF'."""
    half = mm(mm(dF, X[:-1]), mT(F))
    return dC.at[1:].add(half + mT(half))


@jax.custom_jvp
def vectors(F: Float[Array, "S D D"], c: Float[Array, "T D"]) -> Float[Array, "T D"]:
    """x_t = F_t-1 x_t-1 + c_t, one step after another."""
    return scan(mv, F, c)


@vectors.defjvp
def _(primals, tangents):
    x = vectors(*primals)
    return x, scan(mv, primals[0], vectors_tangent(primals[0], tangents[0], x, tangents[1]))


@jax.custom_jvp
def matrices(F: Float[Array, "S D D"], C: Float[Array, "T D D"]) -> Float[Array, "T D D"]:
    """X_t = F_t-1 X_t-1 F_t-1' + C_t for symmetric C, one step after another."""
    return scan(sandwich, F, C)


@matrices.defjvp
def _(primals, tangents):
    X = matrices(*primals)
    return X, scan(sandwich, primals[0], matrices_tangent(primals[0], tangents[0], X, tangents[1]))


def _associative(apply, F, c):
    """The same recursion in logarithmic depth: (F, c) then (F', c') is (F' F, apply(F', c) + c')."""

    def combine(first, then):
        return mm(then[0], first[0]), apply(then[0], first[1]) + then[1]

    start = jnp.zeros((1, *F.shape[1:]), F.dtype)
    return lax.associative_scan(combine, (jnp.concatenate([start, F]), c))[1]


@jax.custom_jvp
def parallel_vectors(F: Float[Array, "S D D"], c: Float[Array, "T D"]) -> Float[Array, "T D"]:
    """x_t = F_t-1 x_t-1 + c_t, by an associative scan."""
    return _associative(mv, F, c)


@parallel_vectors.defjvp
def _(primals, tangents):
    x = parallel_vectors(*primals)
    return x, _associative(mv, primals[0], vectors_tangent(primals[0], tangents[0], x, tangents[1]))


@jax.custom_jvp
def parallel_matrices(F: Float[Array, "S D D"], C: Float[Array, "T D D"]) -> Float[Array, "T D D"]:
    """X_t = F_t-1 X_t-1 F_t-1' + C_t for symmetric C, by an associative scan."""
    return _associative(sandwich, F, C)


@parallel_matrices.defjvp
def _(primals, tangents):
    X = parallel_matrices(*primals)
    return X, _associative(sandwich, primals[0], matrices_tangent(primals[0], tangents[0], X, tangents[1]))
