"""Roots of covariances in lanes: eliminated, joined, made triangular and divided by, with columns written out."""

import jax.numpy as jnp

from svae.messages.lanes import apart, dot, eye, mm_tn, outer, total


def _over(x, y):
    """x / y with y broadcast, as a quotient that XLA neither turns into a product nor computes more than once."""
    y = y[..., None, :]
    return x / (y + 0 * x)


def precision(V, L):
    """I + L'V."""
    return _plus_one(mm_tn(L, V))


@apart
def _plus_one(X):
    return eye(X) + X


@apart
def eliminate(S, X):
    """(X R^-1, diag R) for the lower R with R'R = S."""
    D, R, F, pivots = S.shape[-2], {}, {}, {}
    for n in reversed(range(D)):
        later = range(n + 1, D)
        pivots[n] = jnp.sqrt(total([S[..., n, n, :], *(-R[k][..., n, :] * R[k][..., n, :] for k in later)]))
        heads = {k: R[k][..., n, None, :] for k in later}
        R[n] = _over(total([S[..., n, :n, :], *(-R[k][..., :n, :] * heads[k] for k in later)]), pivots[n])
        F[n] = _over(total([X[..., :, n, :], *(-F[k] * heads[k] for k in later)]), pivots[n])
    return jnp.stack([F[n] for n in range(D)], -2), jnp.stack([pivots[n] for n in range(D)], -2)


@apart
def cholesky(P):
    """The lower L with L L' = P."""
    L = {}
    for n in range(P.shape[-2]):
        heads = {k: L[k][..., n - k, None, :] for k in range(n)}
        pivot = jnp.sqrt(total([P[..., n, n, :], *(-x[..., 0, :] * x[..., 0, :] for x in heads.values())]))
        L[n] = _over(total([P[..., n:, n, :], *(-L[k][..., n - k :, :] * heads[k] for k in range(n))]), pivot)
    return _lower(list(L.values()))


def _lower(columns):
    """The lower matrix of these columns from the diagonal on."""
    zero = jnp.zeros_like(columns[0])
    return jnp.stack([jnp.concatenate([zero[..., :j, :], x], -2) for j, x in enumerate(columns)], -2)


_lower_apart = apart(_lower)


def _norm(t, head):
    return jnp.sqrt(head * head + dot(t, t) + jnp.finfo(t.dtype).tiny)


def _along(M, t):
    """Products of the rows of M below the first with t; M is (columns, rows, lanes)."""
    return total([M[..., k, 1:, :] * t[..., k, None, :] for k in range(t.shape[-2])])


@apart
def _reflect(M, q, heads):
    """The reflection of (q, first row of M) onto its length, done to the rows below, whose heads are `heads`.

    M is (columns, rows, lanes). Gives the length, the new heads of these rows, and what is left of them.
    """
    t = M[..., :, 0, :]
    q = jnp.broadcast_to(q, t[..., 0, :].shape)
    heads = jnp.broadcast_to(heads, M[..., 0, 1:, :].shape)
    length = _norm(t, q)
    new = _over(q[..., None, :] * heads + _along(M, t), length)
    return length[..., None, :], new, M[..., :, 1:, :] - outer(t, (heads + new) / (q + length)[..., None, :])


@apart
def _reflections(Mt, Q):
    """The first columns of [Q, M] turned, and what is left of M; few, for XLA runs short sequences one by one."""
    columns = []
    for j in range(min(4, Q.shape[-2])):
        length, new, Mt = _reflect(Mt, Q[..., j, j, :], Q[..., j + 1 :, j, :])
        columns.append(jnp.concatenate([length, new], -2))
    return Mt, columns


def join(Mt, Q):
    """The lower L with L L' = M M' + Q Q', from M'; Q lower, diagonal >= 0."""
    columns = []
    for j in range(0, Q.shape[-2], 4):
        Mt, found = _reflections(Mt, Q[..., j:, j:, :])
        columns += found
    return _lower_apart(columns)


@apart
def _project(M):
    """One step of modified Gram-Schmidt on rows: the length of the first, and the rows below along it and less it."""
    t = M[..., :, 0, :]
    length = _norm(t, jnp.zeros_like(t[..., 0, :]))
    new = _over(_along(M, t), length)
    return length[..., None, :], new, M[..., :, 1:, :] - outer(t, new / length[..., None, :])


def tria(Mt):
    """The lower L with L L' = M M', diagonal > 0, from M'."""
    columns = []
    for _ in range(Mt.shape[-2]):
        length, new, Mt = _project(Mt)
        columns.append(jnp.concatenate([length, new], -2))
    return _lower_apart(columns)


@apart
def solve(L, X):
    """L^-1 X for a lower L."""
    rows = []
    for n in range(L.shape[-2]):
        later = [-L[..., n, k, None, :] * rows[k] for k in range(n)]
        rows.append(_over(total([X[..., n, :, :], *later]), L[..., n, n, :]))
    return jnp.stack(rows, -3)


@apart
def divide(X, L):
    """X L^-1 for a lower L."""
    columns = {}
    for n in reversed(range(L.shape[-2])):
        later = [-columns[k] * L[..., k, n, None, :] for k in range(n + 1, L.shape[-2])]
        columns[n] = _over(total([X[..., :, n, :], *later]), L[..., n, n, :])
    return jnp.stack([columns[n] for n in range(L.shape[-2])], -2)


def inverse(L):
    """L^-1 of a lower L."""
    return solve(L, eye(L))
