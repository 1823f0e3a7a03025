"""Batched algebra of small matrices on the last two axes, in pure lax: batched LAPACK calls can hang the CPU runtime.

One rule picks how a loop over columns is compiled. A function given one matrix of D <= 12 unrolls it with shrinking
blocks: that runs fastest, in the body of a scan and under vmap. Given a stack of matrices, or a larger D, it loops over
columns: that compiles fastest, and is meant for associative scans, which repeat their body at every level.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float


def mT(A: Float[Array, "... M N"]) -> Float[Array, "... N M"]:
    """A' on the last two axes."""
    return jnp.swapaxes(A, -1, -2)


def mm(A: Float[Array, "... M K"], B: Float[Array, "... K N"]) -> Float[Array, "... M N"]:
    """A B in full precision (no TF32)."""
    return jnp.matmul(A, B, precision=lax.Precision.HIGHEST)


def mv(A: Float[Array, "... M N"], x: Float[Array, "... N"]) -> Float[Array, "... M"]:
    """A x in full precision."""
    return mm(A, x[..., None])[..., 0]


def symmetrize(A: Float[Array, "... D D"]) -> Float[Array, "... D D"]:
    """(A + A') / 2."""
    return (A + mT(A)) / 2


def logdet_tril(L: Float[Array, "... D D"]) -> Float[Array, "..."]:
    """log |L| = sum log diag L of a triangular L, diagonal > 0."""
    return jnp.sum(jnp.log(jnp.diagonal(L, axis1=-2, axis2=-1)), -1)


def phi(X: Float[Array, "... D D"]) -> Float[Array, "... D D"]:
    """The lower triangle with its diagonal halved, so that phi(X) + phi(X)' = X for symmetric X."""
    return (jnp.tril(X) + jnp.tril(X, -1)) / 2


def eye_like(A: Float[Array, "... D D"]) -> Float[Array, "... D D"]:
    """A stack of identities of the shape of A."""
    return jnp.broadcast_to(jnp.eye(A.shape[-1], dtype=A.dtype), A.shape)


def _by_rule(unrolled, loop, M):
    if M.ndim == 2 and M.shape[0] <= 12:
        return unrolled(M)
    return jnp.vectorize(loop, signature="(d,n)->(d,k)")(M)


def _at(x, j, axis):
    return lax.dynamic_index_in_dim(x, j, axis, keepdims=False)


@jax.custom_jvp
def cholesky_and_inverse(A: Float[Array, "... D D"]) -> tuple[Float[Array, "... D D"], Float[Array, "... D D"]]:
    """The lower L with L L' = A, and L^-1: Gaussian elimination takes [A | I] to [L' | L^-1]."""
    D = A.shape[-1]
    M = _by_rule(_eliminate_unrolled, _eliminate_loop, jnp.concatenate([A, eye_like(A)], -1))
    return mT(M[..., :D]), M[..., D:]


def _eliminate_unrolled(M):
    D, rows = len(M), []
    for j in range(D):
        row = M[0] * lax.rsqrt(M[0, 0])
        rows.append(jnp.pad(row, (j, 0)))
        # By symmetry the column below the pivot is the head of its row.
        M = M[1:, 1:] - row[1 : D - j, None] * row[None, 1:]
    return jnp.stack(rows)


def _eliminate_loop(M):
    D, index = len(M), jnp.arange(M.shape[1])

    def step(j, M):
        row = _at(M, j, 0)
        row = jnp.where(index >= j, row * lax.rsqrt(_at(row, j, 0)), 0)
        below = jnp.where(index > j, row, 0)[:D]
        return jnp.where((index[:D] == j)[:, None], row[None], M - below[:, None] * row[None])

    return lax.fori_loop(0, D, step, M)


@cholesky_and_inverse.defjvp
def _(primals, tangents):
    L, L_inv = cholesky_and_inverse(*primals)
    S = phi(mm(mm(L_inv, symmetrize(tangents[0])), mT(L_inv)))
    return (L, L_inv), (mm(L, S), -mm(S, L_inv))


def cholesky(A: Float[Array, "... D D"]) -> Float[Array, "... D D"]:
    """The lower L with L L' = A; dL = L phi(L^-1 dA L^-T)."""
    return cholesky_and_inverse(A)[0]


def cholesky_semidefinite(A: Float[Array, "... D D"]) -> Float[Array, "... D D"]:
    """A lower L with L L' = A for a singular A too: a pivot lost in rounding gives a zero column (no derivative)."""
    return jnp.vectorize(_semidefinite_loop, signature="(d,d)->(d,d)")(A)


def _semidefinite_loop(A):
    D, index = len(A), jnp.arange(len(A))
    floor = 4 * D * jnp.finfo(A.dtype).eps * jnp.diagonal(A)

    def step(j, state):
        M, L = state
        column = _at(M, j, 1)
        pivot = _at(column, j, 0)
        kept = pivot > _at(floor, j, 0)
        column = jnp.where((index >= j) & kept, column * lax.rsqrt(jnp.where(kept, pivot, 1)), 0)
        return M - column[:, None] * column[None], jnp.where((index == j)[None], column[:, None], L)

    return lax.fori_loop(0, D, step, (A, jnp.zeros_like(A)))[1]


@jax.custom_jvp
def inv_tril(L: Float[Array, "... D D"]) -> Float[Array, "... D D"]:
    """L^-1 of a lower triangular L by elimination of [L | I]; d(L^-1) = -L^-1 dL L^-1."""
    return _by_rule(_invert_unrolled, _invert_loop, L)


def _invert_unrolled(L):
    X, rows = eye_like(L), []
    for j in range(len(L)):
        rows.append(X[0] / L[j, j])
        X = X[1:] - L[j + 1 :, j, None] * rows[-1][None]
    return jnp.stack(rows)


def _invert_loop(L):
    index = jnp.arange(len(L))

    def step(j, X):
        column = _at(L, j, 1)
        row = _at(X, j, 0) / _at(column, j, 0)
        below = jnp.where(index > j, column, 0)
        return jnp.where((index == j)[:, None], row[None], X - below[:, None] * row[None])

    return lax.fori_loop(0, len(L), step, eye_like(L))


@inv_tril.defjvp
def _(primals, tangents):
    X = inv_tril(*primals)
    return X, -mm(mm(X, tangents[0]), X)


@jax.custom_jvp
def tria(M: Float[Array, "... D N"]) -> Float[Array, "... D D"]:
    """The lower L with L L' = M M', N >= D and diagonal >= 0, by modified Gram-Schmidt on the rows of M.

    Its L is as backward stable as Householder's (Bjorck 1967); a row in the span of the others gives a zero column.
    """
    return _by_rule(_orthogonalize_unrolled, _orthogonalize_loop, M)


def _projections(M, row):
    """Inner products of the rows of M with row / |row|, and row / |row| (0 for a zero row)."""
    square = jnp.sum(row * row)
    inverse = jnp.where(square > 0, lax.rsqrt(jnp.where(square > 0, square, 1)), 0)
    return jnp.sum(M * row[None], -1) * inverse, row * inverse


def _orthogonalize_unrolled(M):
    columns = []
    for j in range(len(M)):
        column, unit = _projections(M, M[0])
        columns.append(jnp.pad(column, (j, 0)))
        M = M[1:] - column[1:, None] * unit[None]
    return jnp.stack(columns, -1)


def _orthogonalize_loop(M):
    D, index = len(M), jnp.arange(len(M))

    def step(j, state):
        M, L = state
        column, unit = _projections(M, _at(M, j, 0))
        column = jnp.where(index >= j, column, 0)
        return M - column[:, None] * unit[None], jnp.where((index == j)[None], column[:, None], L)

    return lax.fori_loop(0, D, step, (M, jnp.zeros_like(M[:, :D])))[1]


@tria.defjvp
def _(primals, tangents):
    """With Q' = L^-1 M and S = L^-1 dM Q: dL = L phi(S + S')."""
    (M,), (dM,) = primals, tangents
    L = tria(M)
    L_inv = inv_tril(L)
    S = mm(mm(L_inv, dM), mT(mm(L_inv, M)))
    return L, mm(L, phi(S + mT(S)))


SQUARINGS = 10  # of a matrix, for its power of 2^10


def spectral_radius(A: Float[Array, "... D D"]) -> Float[Array, "..."]:
    """The largest absolute eigenvalue, as |A^n|^(1/n) with n = 2^10: never too small, and hardly too large.

    By squaring, each power at unit norm: eigenvalues of matrices that are not symmetric are known on processors only.
    """
    size = lambda B: jnp.sqrt(jnp.sum(B**2, (-2, -1)))  # noqa: E731
    log_size = jnp.zeros(A.shape[:-2], A.dtype)
    for _ in range(SQUARINGS):
        norm = jnp.maximum(size(A), jnp.finfo(A.dtype).tiny)
        A = A / norm[..., None, None]
        A, log_size = mm(A, A), 2 * (log_size + jnp.log(norm))
    return jnp.exp((log_size + jnp.log(jnp.maximum(size(A), jnp.finfo(A.dtype).tiny))) / 2**SQUARINGS)
