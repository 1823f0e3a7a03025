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


def _associative(apply, F, c):
    """The same recursion in logarithmic depth: (F, c) then (F', c') is (F' F, apply(F', c) + c')."""

    def combine(first, then):
        return mm(then[0], first[0]), apply(then[0], first[1]) + then[1]

    start = jnp.zeros((1, *F.shape[1:]), F.dtype)
    return lax.associative_scan(combine, (jnp.concatenate([start, F]), c))[1]


def _differentiable(solve, apply, drive):
    """The recursion with its derivative: tangents are solved as values are, driven by what `drive` says."""

    @jax.custom_jvp
    def recursion(F, c):
        return solve(apply, F, c)

    @recursion.defjvp
    def _(primals, tangents):
        x = recursion(*primals)
        return x, solve(apply, primals[0], drive(primals[0], tangents[0], x, tangents[1]))

    return recursion


_vectors, _parallel_vectors = (_differentiable(solve, mv, vectors_tangent) for solve in (scan, _associative))
_matrices, _parallel_matrices = (_differentiable(solve, sandwich, matrices_tangent) for solve in (scan, _associative))


def vectors(F: Float[Array, "S D D"], c: Float[Array, "T D"]) -> Float[Array, "T D"]:
    """x_t = F_t-1 x_t-1 + c_t, one step after another."""
    return _vectors(F, c)


def parallel_vectors(F: Float[Array, "S D D"], c: Float[Array, "T D"]) -> Float[Array, "T D"]:
    """x_t = F_t-1 x_t-1 + c_t, by an associative scan."""
    return _parallel_vectors(F, c)


def matrices(F: Float[Array, "S D D"], C: Float[Array, "T D D"]) -> Float[Array, "T D D"]:
    """X_t = F_t-1 X_t-1 F_t-1' + C_t for symmetric C, one step after another."""
    return _matrices(F, C)


def parallel_matrices(F: Float[Array, "S D D"], C: Float[Array, "T D D"]) -> Float[Array, "T D D"]:
    """X_t = F_t-1 X_t-1 F_t-1' + C_t for symmetric C, by an associative scan."""
    return _parallel_matrices(F, C)
