"""Small matrices with many of them in the last axis (lanes): (..., rows, columns, lanes), vectors (..., rows, lanes).

XLA's CPU compiler makes vector code of a loop over lanes whose body is a sum written out. It shares a loop between
threads, for more than the loop takes, where it counts more operations than bytes: a product is therefore two sums.
"""

import functools
import operator

import jax
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata

LARGEST = 12  # D; what is written out above would take long to compile


def apart(f):
    """f as a function of its own to XLA, which would else compute a result again for every entry that reads it."""
    compiled = jax.jit(f)

    @functools.wraps(f)
    def run(*operands):
        with set_xla_metadata(inlineable="false"):
            return compiled(*operands)

    return run


def total(terms):
    """The sum of a list."""
    return functools.reduce(operator.add, terms)


def mT(A):
    """A'."""
    return jnp.swapaxes(A, -2, -3)


def _column(A, k):
    return A[..., :, k, :]


def _row(A, k):
    return A[..., k, :, :]


def _product(left, right, size):
    """The sum of left(A, k) right(B, k)' over k < size(A), as a sum of three and others of four that go on from it."""

    def part(first, stop):
        return apart(lambda A, B, *sums: total([*sums, *(outer(left(A, k), right(B, k)) for k in range(first, stop))]))

    parts = {(first, stop): part(first, stop) for first in (0, 3, 7, 11) for stop in range(first + 1, first + 5)}

    def product(A, B):
        n = A.shape[size]
        sums = parts[0, min(3, n)](A, B)
        for first in range(3, n, 4):
            sums = parts[first, min(first + 4, n)](A, B, sums)
        return sums

    return product


mm, mm_nt = _product(_column, _row, -2), _product(_column, _column, -2)
mm_tn, mm_tt = _product(_row, _row, -3), _product(_row, _column, -3)


def applied(A, x):
    """A x, as a part of a function that is apart."""
    return total([A[..., :, k, :] * x[..., k, None, :] for k in range(x.shape[-2])])


mv = apart(applied)
mv_t = apart(lambda A, x: total([A[..., k, :, :] * x[..., k, None, :] for k in range(x.shape[-2])]))


def dot(x, y):
    """x'y."""
    return total([x[..., k, :] * y[..., k, :] for k in range(x.shape[-2])])


@apart
def _column_sums(A, B):
    return total([A[..., k, :, :] * B[..., k, :, :] for k in range(A.shape[-3])])


@apart
def _sum(x):
    return total([x[..., k, :] for k in range(x.shape[-2])])


def inner(A, B):
    """tr(A'B), written out: XLA's reductions over axes in the middle are slow."""
    return _sum(_column_sums(A, B))


def outer(x, y):
    """x y'."""
    return x[..., :, None, :] * y[..., None, :, :]


def eye(A):
    """The identity beside A."""
    return jnp.broadcast_to(jnp.eye(A.shape[-2], dtype=A.dtype)[..., None], A.shape)
