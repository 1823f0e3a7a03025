"""The third form of a linear-Gaussian conditional: each parent adds an offset of its own.

x | v, z1, z2, ... ~ N(A v + B1[:, z1] + B2[:, z2] + ... + b, Sigma), v the last x and known inputs: one regression on
(v, one-hot of each parent, 1), conjugate, and identifiable where a table over all combinations of states is not. A
one-hot vector e with mean p has covariance diag p - p p', so its average adds to the penalty what that spread costs,
and nothing is approximated.
"""

import itertools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from svae._linalg import inv_tril, logdet_tril, mm, mT, mv
from svae.expfam import MNIW, ConditionalMoments, LinearGaussian
from svae.messages import GaussianSmoothed
from svae.pgm._block import Said, Sizes
from svae.pgm._conditional import Expected, steps_penalty
from svae.pgm._priors import OFFSET_STRENGTH, mniw_prior, tile


class AdditiveTables(NamedTuple):
    """Expected statistics, with R'R the precision."""

    M: Float[Array, "D U"]
    L: Float[Array, "D D"]
    R: Float[Array, "D D"]
    E: Float[Array, "U U"]
    logdet: Float[Array, ""]


class Additive:
    """Offsets that add."""

    def prior(self, D: int, sizes: Sizes, *, chained: bool, inputs: int = 0) -> MNIW:
        like, nu = mniw_prior(D), D + 2.0
        v, S = D + inputs if chained else 0, sum(sizes)
        M = np.concatenate([0.95 * np.eye(D, v), np.zeros((D, S + 1))], 1)
        strength = np.diag(np.r_[np.ones(v), np.full(S, OFFSET_STRENGTH), 1.0 if chained else OFFSET_STRENGTH])
        return MNIW(tile(M, ()), like.S if chained else tile(nu * np.eye(D), ()), tile(strength, ()), tile(nu, ()))

    def fit(self, prior: MNIW, u: np.ndarray, x: np.ndarray, said: Said) -> MNIW:
        """The conjugate update, a soft state by the mean and covariance of its one-hot vector."""
        v = u.shape[1] - 1
        e = np.concatenate([np.asarray(weights, float) for weights in said], 1)
        rows = np.concatenate([u[:, :v], e, u[:, v:]], 1)
        spread = np.zeros((rows.shape[1],) * 2)
        for weights, part in zip(said, _parts(v, tuple(w.shape[1] for w in said)), strict=True):
            spread[part, part] = np.diag(weights.sum(0)) - weights.T @ weights
        M0, S0, K0, nu0 = (np.asarray(a, float) for a in (prior.M, prior.S, prior.K, prior.nu))
        K = K0 + rows.T @ rows + spread
        M = np.linalg.solve(K, K0 @ M0.T + rows.T @ x).T
        left, shift = x - rows @ M.T, M - M0
        S = S0 + left.T @ left + M @ spread @ M.T + shift @ K0 @ shift.T
        return MNIW(*(jnp.asarray(a, prior.M.dtype) for a in (M, S, K, nu0 + len(x))))

    def frames(self, prior: MNIW, q: MNIW, sizes: Sizes, i: int) -> Float[Array, " K"]:
        """Frames that q has seen in each state of parent i: the sum of the squares of its one-hot vector."""
        part = _parts(q.M.shape[-1] - 1 - sum(sizes), sizes)[i]
        return jnp.diagonal(q.K - prior.K)[part]

    def tables(self, moments: ConditionalMoments) -> AdditiveTables:
        return AdditiveTables(moments.M, moments.L, inv_tril(moments.L), moments.E, moments.logdet)

    def forward(self, tables: AdditiveTables, said: Said, steps: int) -> Expected:
        e = jnp.concatenate(said, -1)
        n, S = _width(tables, said), e.shape[-1]
        M, E = tables.M, tables.E
        offset = mm(e, mT(M[:, n : n + S])) + M[None, :, -1]
        A = jnp.broadcast_to(M[None, :, :n], (len(e), *M[:, :n].shape))
        Ee = mm(e, E[n : n + S])  # (N, U)
        cross = Ee[:, :n] + E[None, -1, :n]
        corner = jnp.sum(Ee[:, n : n + S] * e, -1) + 2 * Ee[:, -1] + E[-1, -1]
        square = jnp.broadcast_to(E[None, :n, :n], (len(e), n, n))
        top = jnp.concatenate([square, cross[..., None]], -1)
        bottom = jnp.concatenate([cross, corner[:, None]], -1)[:, None]
        constant = (tables.logdet - 2 * logdet_tril(tables.L) + _spread(tables, said)) / 2
        sqrt = jnp.broadcast_to(tables.L, (len(e), *tables.L.shape))
        return Expected(jnp.concatenate([A, offset[..., None]], -1), sqrt, jnp.concatenate([top, bottom], -2), constant)

    def back(self, tables: AdditiveTables, q: GaussianSmoothed, said: Said, i: int) -> Float[Array, "T K"]:
        """E log p of independent steps for each state of parent i, less its maximum."""
        return _log_prob(tables, q.mean, jnp.zeros((len(q.mean), 0), q.mean.dtype), said, i)

    def back_of_steps(
        self,
        tables: AdditiveTables,
        q: GaussianSmoothed,
        said: Said,
        i: int,
        inputs: Float[Array, "N n"] | None = None,
        bend: Float[Array, "N D D+1"] | None = None,
    ) -> Float[Array, "N K"]:
        """E log p of every step of a chain after the first, for each state of parent i, less its maximum.

        With `bend`, it is that of x_t less bend (x_t-1, 1).
        """
        before = q.mean[:-1] if inputs is None else jnp.concatenate([q.mean[:-1], inputs], -1)
        x = q.mean[1:] if bend is None else q.mean[1:] - mv(bend[..., :-1], q.mean[:-1]) - bend[..., -1]
        return _log_prob(tables, x, before, said, i)

    def penalty(self, tables: AdditiveTables, expected: Expected, q: GaussianSmoothed) -> Float[Array, " N"]:
        return steps_penalty(expected, q)

    def at(self, theta: LinearGaussian, sizes: Sizes, states: Said) -> LinearGaussian:
        n = theta.W.shape[1] - 1 - sum(sizes)
        offset = theta.W[:, -1]
        for part, state in zip(_parts(n, sizes), states, strict=True):
            offset = offset + theta.W[:, part][:, state]
        return LinearGaussian(jnp.concatenate([theta.W[:, :n], offset[:, None]], 1), theta.sqrt)

    def by_state(self, theta: LinearGaussian, sizes: Sizes) -> LinearGaussian:
        """The conditional of each combination of states, along a first axis."""
        each = [self.at(theta, sizes, states) for states in np.ndindex(*sizes)]
        return LinearGaussian(jnp.stack([c.W for c in each]), jnp.stack([c.sqrt for c in each]))


def _parts(first: int, sizes: Sizes) -> list[slice]:
    """The columns of each parent's one-hot vector."""
    edges = first + np.cumsum([0, *sizes])
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(edges)]


def _width(tables: AdditiveTables, said: Said) -> int:
    return tables.M.shape[1] - 1 - sum(weights.shape[-1] for weights in said)


def _spread(tables: AdditiveTables, said: Said) -> Float[Array, " N"]:
    """tr of (B'PB + E) with the covariance of each one-hot vector, from offsets about their mean."""
    total = jnp.zeros(len(said[0]), tables.M.dtype)
    for p, part in zip(said, _parts(_width(tables, said), tuple(w.shape[-1] for w in said)), strict=True):
        B, E = mT(tables.M[:, part]), tables.E[part, part]
        away = mm((B[None] - mm(p, B)[:, None]).reshape(-1, B.shape[1]), mT(tables.R)).reshape(*p.shape, len(tables.R))
        total = total + jnp.sum(p * jnp.sum(away**2, -1), -1)
        total = total + mm(p, jnp.diagonal(E)[:, None])[:, 0] - jnp.sum(p * mm(p, E), -1)
    return total


def _log_prob(tables: AdditiveTables, x: Array, v: Array, said: Said, i: int) -> Float[Array, "N K"]:
    """E log p for each state of parent i, less its maximum: what depends on the state sees means alone."""
    parts = _parts(_width(tables, said), tuple(w.shape[-1] for w in said))
    others = [p if j != i else jnp.zeros_like(p) for j, p in enumerate(said)]
    u = jnp.concatenate([v, *others, jnp.ones((len(x), 1), x.dtype)], -1)
    B = mT(tables.M[:, parts[i]])  # (K, D)
    centre = jnp.mean(B, 0)
    RB = mm(B - centre[None], mT(tables.R))
    Rr = mm(x - mm(u, mT(tables.M)) - centre[None], mT(tables.R))
    linear = mm(Rr, mT(RB)) - mm(u, tables.E[:, parts[i]])
    square = jnp.sum(RB**2, -1) + jnp.diagonal(tables.E)[parts[i]]
    score = linear - square[None] / 2
    return score - jnp.max(score, -1, keepdims=True)
