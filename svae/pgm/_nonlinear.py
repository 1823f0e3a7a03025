"""Dynamics with a network: x_t = W_k (x_t-1, u_t, 1) + g(x_t-1, u_t) + noise, with one g for all states.

g has no conjugate prior. To q it is its expansion about l, the mean of x in the last sweep: g(l) + G (x - l) with
G = dg/dx. Transitions are then A_k + G_t, and all else is as it was: what g adds is the same in every state. A sweep
is a Gauss-Newton step towards the likeliest path (the iterated Kalman smoother, Bell 1994). A whole one may overshoot,
so l goes as far as the slopes of the path's score at both ends say; where l stays, so does the fixed point.

`Surrogate.gap` is what the true conditional has over the expanded one at a draw; it is 0 wherever g is linear.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from svae._linalg import cholesky_and_inverse, inv_tril, mm, mT, mv, tria
from svae.expfam import Gaussian
from svae.messages import GaussianChain
from svae.pgm._conditional import Expected

SHORTEST = 0.05  # step to a new mean, of the whole way


class Network(NamedTuple):
    """g: layers of tanh, and a map to x without an offset, which the dynamics have. Ordinary parameters."""

    weights: tuple[Float[Array, "H U"], ...]
    offsets: tuple[Float[Array, " H"], ...]
    out: Float[Array, "D H"]


class Expansion(NamedTuple):
    """g about l, at every step after the first."""

    about: Float[Array, "N D"]
    level: Float[Array, "N D"]  # g(l)
    slope: Float[Array, "N D D"]  # dg/dx there

    @property
    def map(self) -> Float[Array, "N D D+1"]:
        """On (x_t-1, 1)."""
        offset = self.level - mv(self.slope, self.about)
        return jnp.concatenate([self.slope, offset[..., None]], -1)


def network(D: int, n: int, hidden: tuple[int, ...]) -> Network:
    """The start: g = 0, with features that are spread over latents of unit variance."""
    rng, widths = np.random.default_rng(0), (D + n, *hidden)
    pairs = list(zip(widths[1:], widths[:-1], strict=True))
    weights = tuple(jnp.asarray(rng.normal(size=pair) / pair[1] ** 0.5, jnp.result_type(float)) for pair in pairs)
    offsets = tuple(jnp.asarray(rng.uniform(-1, 1, size=H), jnp.result_type(float)) for H in hidden)
    return Network(weights, offsets, jnp.zeros((D, hidden[-1])))


def value(g: Network, x: Float[Array, "N D"], inputs: Float[Array, "N n"] | None) -> Float[Array, "N D"]:
    """g(x, u)."""
    h = x if inputs is None else jnp.concatenate([x, inputs], -1)
    for W, b in zip(g.weights, g.offsets, strict=True):
        h = jnp.tanh(mm(h, mT(W)) + b[None])
    return mm(h, mT(g.out))


def expansion(g: Network, x: Float[Array, "N D"], inputs: Float[Array, "N n"] | None) -> Expansion:
    """g about x."""
    N, D = x.shape
    h = x if inputs is None else jnp.concatenate([x, inputs], -1)
    slope = jnp.broadcast_to(jnp.eye(D, h.shape[1], dtype=h.dtype), (N, D, h.shape[1]))  # of every feature in x
    onto = lambda rows, W: mm(rows.reshape(N * D, -1), mT(W)).reshape(N, D, -1)  # noqa: E731
    for W, b in zip(g.weights, g.offsets, strict=True):
        h = jnp.tanh(mm(h, mT(W)) + b[None])
        slope = onto(slope, W) * (1 - h**2)[:, None]
    return Expansion(x, mm(h, mT(g.out)), mT(onto(slope, g.out)))


def bent(dynamics: Expected, g: Expansion) -> Expected:
    """The conditional of every step on (x_t-1, 1), with what g adds."""
    return dynamics._replace(M=dynamics.M + g.map)


def begun(psi: Gaussian) -> Float[Array, "T D"]:
    """Where l begins: the mean that the potentials give to N(0, I), frame by frame."""
    root = jax.vmap(lambda J: cholesky_and_inverse(jnp.eye(len(J), dtype=J.dtype) + J)[1])(psi.J)
    return mv(mT(root), mv(root, psi.h))


class Bend(NamedTuple):
    """The network in one sweep: its expansion, and the chain that q(x) was made from."""

    g: Network
    inputs: Float[Array, "N n"] | None
    expansion: Expansion
    chain: GaussianChain
    mask: Bool[Array, " T"]

    def beyond(self, before: Float[Array, "N D"]) -> Float[Array, "N D"]:
        """g(x) less its expansion."""
        about, level, slope = self.expansion
        return value(self.g, before, self.inputs) - level - mv(slope, before - about)

    @property
    def root(self) -> Float[Array, "N D D"]:
        """root'root is the precision of a step; 0 where it leads into padding."""
        return jnp.where(self.mask[1:, None, None], jax.vmap(_inverse)(self.chain.Q_sqrt), 0)


def _inverse(sqrt: Float[Array, "D D"]) -> Float[Array, "D D"]:
    return inv_tril(tria(sqrt))


def moved(bend: Bend, about: Float[Array, "T D"], mean: Float[Array, "T D"]) -> Float[Array, "T D"]:
    """l of the next sweep: on the way to the new mean, where the slope of the path's score is 0 by its two ends."""
    way = jnp.where(bend.mask[:, None], lax.stop_gradient(mean - about), 0)
    still, about_still = lax.stop_gradient((bend, about))
    root = still.root
    slope = lambda x: jax.jvp(lambda x: _score(still, root, x), (x,), (way,))[1]  # noqa: E731
    first, last = slope(about_still), slope(about_still + way)
    over = last < 0
    step = jnp.where(over, jnp.clip(first / jnp.where(over, first - last, 1), SHORTEST, 1), 1)
    return about + lax.stop_gradient(step) * (mean - about)


def _score(bend: Bend, root: Float[Array, "N D D"], x: Float[Array, "T D"]) -> Float[Array, ""]:
    """log of the true chain at a path, but for a constant."""
    chain = bend.chain
    first = mv(_inverse(chain.sqrt0), x[0] - chain.mean0)
    later = mv(root, x[1:] - mv(chain.A, x[:-1]) - chain.b - bend.beyond(x[:-1]))
    return jnp.sum(x * (chain.h - mv(chain.J, x) / 2)) - (jnp.sum(first**2) + jnp.sum(later**2)) / 2


class Surrogate(eqx.Module):
    """The conditional that q was made from, and the true one, as functions of x."""

    bend: Bend
    root: Float[Array, "*B N D D"]
    columns: tuple[int, int] = eqx.field(static=True)  # of x, among all latents

    def gap(self, x: Float[Array, "T D"]) -> Float[Array, " T"]:
        """E_q(z) of the true score less the surrogate's at x, at the frame that each step leads into."""
        x = x[:, slice(*self.columns)]
        left = mv(self.root, x[1:] - mv(self.bend.chain.A, x[:-1]) - self.bend.chain.b)
        beyond = mv(self.root, self.bend.beyond(x[:-1]))
        return jnp.pad(jnp.sum(beyond * (left - beyond / 2), -1), (1, 0))
