"""Transitions that lean on where x was and on what is known: Dirichlet rows times the exponential of a linear score.

p(z_t+1 = j | z_t = i, x_t, u_t+1) is proportional to pi_ij exp(a_j) with a = R x_t + S u_t+1, so that a prior on the
rows keeps its meaning. Its score is E log pi_ij + a_j - f_i(a) with f_i(a) = log sum_k E[pi_ik] exp(a_k): by Jensen a
lower bound, and exact where a = 0 or q(theta) is sure.

To x it is not conjugate. About a, with l the mean of R x_t in the last sweep and d = R x_t - l, f_i(a + d) is at most
f_i + p_i'd + |C d|^2 / 4, p_i = grad f_i and C d = d less its mean (Boehning 1992): a quadratic in x, under which every
update of q is an ascent of one bound.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Bool, Float

from svae._linalg import mm, mT
from svae.expfam import Gaussian
from svae.messages import GaussianSmoothed, HMMChain, HMMPairs


class Tilt(NamedTuple):
    """What makes transitions lean; None where nothing does. Ordinary parameters: they have no conjugate prior."""

    R: Float[Array, "K D"] | None  # of x at the frame before
    S: Float[Array, "K n"] | None  # of inputs


class TiltedTables(NamedTuple):
    init: Any
    transitions: Any
    tilt: Tilt
    inputs: Float[Array, "T n"] | None


class TiltedLocal(NamedTuple):
    chain: HMMChain
    smoothed: HMMPairs
    heard: Float[Array, "T K"] | None  # R x in the mean, as the sweep took it
    score: Float[Array, "S K"]  # a, at that mean
    weights: Float[Array, "S M"]  # of every table

    @property
    def states(self):
        return self.smoothed.states


def no_tilt(K: int, D: int, n: int) -> Tilt:
    """The start: transitions are the rows themselves."""
    return Tilt(jnp.zeros((K, D)) if D else None, jnp.zeros((K, n)) if n else None)


def score(tilt: Tilt, heard: Float[Array, "T K"] | None, inputs: Float[Array, "T n"] | None) -> Float[Array, "S K"]:
    """a of every step, from R x of the frame before and the inputs of the frame into which it leads."""
    terms = [] if heard is None else [heard[:-1]]
    terms += [] if tilt.S is None else [mm(inputs[1:], mT(tilt.S))]
    return sum(terms[1:], terms[0])


def heard(tilt: Tilt, x: Float[Array, "T D"]) -> Float[Array, "T K"]:
    """R x."""
    return mm(x, mT(tilt.R))


def log_sizes(tables: TiltedTables, a: Float[Array, "S K"]) -> tuple[Array, Array]:
    """f (S, M, K) and its gradients p (S, M, K, K), for every row of every table."""
    log_mean = tables.transitions.log_mean
    weighed = log_mean.reshape(1, -1, *log_mean.shape[-2:]) + a[:, None, None]
    return logsumexp(weighed, -1), jax.nn.softmax(weighed, -1)


def transitions(
    tables: TiltedTables, a: Float[Array, "S K"], rows: Float[Array, "#S K K"], weights: Float[Array, "S M"]
) -> Float[Array, "S K K"]:
    """The rows of every step, their size averaged over the tables as they are."""
    sizes = jnp.sum(weights[..., None] * log_sizes(tables, a)[0], 1)
    return rows + a[:, None] - sizes[..., None]


def leaving(local: TiltedLocal, weights: Float[Array, "S M"]) -> Float[Array, "S M K"]:
    """q of the table and of the state that is left, 0 where a step leads into padding."""
    return weights[..., None] * jnp.sum(local.smoothed.pairs, -1)[:, None]


def slope(tables: TiltedTables, local: TiltedLocal, weights: Float[Array, "S M"]) -> Float[Array, "S K"]:
    """The derivative of the expected score in a."""
    p = log_sizes(tables, local.score)[1]
    return jnp.sum(local.smoothed.pairs, 1) - jnp.sum(leaving(local, weights)[..., None] * p, (1, 2))


def to_x(tables: TiltedTables, local: TiltedLocal, mask: Bool[Array, " T"]) -> Gaussian:
    """The surrogate as potentials of x, at every frame that a real one follows."""
    R = tables.tilt.R
    CR = _centred(mT(R))  # (D, K)
    real = jnp.pad(mask[1:], (0, 1))[:, None]
    push = slope(tables, local, local.weights) + _centred(local.heard[:-1]) / 2
    h = jnp.where(real, mm(jnp.pad(push, ((0, 1), (0, 0))), R), 0)
    J = jnp.where(real[..., None], (mm(CR, mT(CR)) / 2)[None], 0)
    return Gaussian(J, h)


def remainder(tables: TiltedTables, local: TiltedLocal, x: GaussianSmoothed, weights: Float[Array, "S M"]):
    """E surrogate at q(x), less the score at the mean that the sweep took, step by step."""
    R = tables.tilt.R
    away = heard(tables.tilt, x.mean)[:-1] - local.heard[:-1]
    spread = jnp.sum(_centred(mm(mT(x.sqrt[:-1]), mT(R)[None])) ** 2, (-2, -1))
    real = jnp.sum(local.smoothed.pairs, (-2, -1))
    linear = jnp.sum(slope(tables, local, weights) * away, -1)
    return linear - real * (jnp.sum(_centred(away) ** 2, -1) + spread) / 4


class Surrogate(eqx.Module):
    """The conditional that q(x) was made from, and the true one, as functions of x."""

    tilt: Tilt
    log_mean: Float[Array, "*B M K K"]
    heard: Float[Array, "*B S K"]
    score: Float[Array, "*B S K"]
    leaving: Float[Array, "*B S M K"]
    columns: tuple[int, int] = eqx.field(static=True)  # of x, among all latents

    def gap(self, x: Float[Array, "T D"]) -> Float[Array, " T"]:
        """E_q(z) of the true score less the surrogate's at x, at the frame that each step leads into; never below 0."""
        away = heard(self.tilt, x[:-1, slice(*self.columns)]) - self.heard
        weighed = self.log_mean[None] + self.score[:, None, None]
        fall = logsumexp(weighed, -1) - logsumexp(weighed + away[:, None, None], -1)
        fall = fall + jnp.sum(jax.nn.softmax(weighed, -1) * away[:, None, None], -1)
        curved = jnp.sum(_centred(away) ** 2, -1)[:, None, None] / 4
        return jnp.pad(jnp.sum(self.leaving * (fall + curved), (1, 2)), (1, 0))


def surrogate(
    tables: TiltedTables, local: TiltedLocal, weights: Float[Array, "S M"], columns: tuple[int, int]
) -> Surrogate:
    """What the gap of a draw is taken from."""
    log_mean = tables.transitions.log_mean
    log_mean = log_mean.reshape(-1, *log_mean.shape[-2:])
    left = leaving(local, weights)
    return Surrogate(tables.tilt, log_mean, local.heard[:-1], local.score, left, columns)


def _centred(a: Float[Array, "... K"]) -> Float[Array, "... K"]:
    return a - jnp.mean(a, -1, keepdims=True)
