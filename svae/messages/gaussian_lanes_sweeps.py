"""Filter and smoother of many Gaussian chains in lanes: what has to go step by step, and the rest in blocks of steps.

Steps beyond the last are padding: J = 0, L = I. They and the last step have gain 0 and are their own backward root.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from svae import _linalg
from svae.messages.gaussian_chain import GaussianChain
from svae.messages.lanes import apart, applied, dot, eye, inner, mm, mm_nt, mm_tt, mT, mv, mv_t, total
from svae.messages.lanes_layout import (
    Layout,
    Same,
    at,
    block,
    blocks,
    dynamics,
    joined,
    put,
    room,
    steps,
    store,
    stored,
    transitions,
)
from svae.messages.lanes_roots import cholesky, divide, eliminate, join, precision, solve, tria


class Node(NamedTuple):
    """A step as its potential meets it: predicted mean and root, and filtered - predicted mean."""

    m: Float[Array, "blocks M D lanes"]
    L: Float[Array, "blocks M D D lanes"]
    step: Float[Array, "blocks M D lanes"]


class Smoothed(NamedTuple):
    """What smoothing gives, and what its derivative reads: shift = smoothed - predicted mean, step and L of nodes."""

    mean: Float[Array, "B T D"]
    shift: Float[Array, "B T D"]
    sqrt: Float[Array, "B T D D"]
    gain: Float[Array, "B T D D"]
    back: Float[Array, "B T D D"]
    log_z: Float[Array, "B T"]
    kl: Float[Array, "B T"]
    step: Float[Array, "B T D"]
    L: Float[Array, "B T D D"]


def prepared(chain: GaussianChain, to: Layout) -> GaussianChain:
    """The chain in whole blocks, its prior with the batch last and its noise in lower roots."""
    I = jnp.eye(chain.h.shape[-1], dtype=chain.h.dtype)
    first = (jnp.broadcast_to(x, (to.B, *x.shape[1:])) for x in (chain.mean0, _linalg.tria(chain.sqrt0)))
    A, b, Q = dynamics(chain.A, to), dynamics(chain.b, to), dynamics(_lower(chain.Q_sqrt), to, I)
    return GaussianChain(*(jnp.moveaxis(x, 0, -1) for x in first), A, b, Q, blocks(chain.J, to), blocks(chain.h, to))


def _lower(Q):
    """Q, or the lower root of the same covariance with a diagonal that is not negative."""
    fits = jnp.all(jnp.triu(Q, 1) == 0) & jnp.all(jnp.diagonal(Q, axis1=-2, axis2=-1) >= 0)
    return lax.cond(fits, lambda Q: Q, _linalg.tria, Q)


@apart
def residual(J, h, m):
    """g = h - J m."""
    return h - applied(J, m)


@apart
def _moved(A, b, m, d):
    return applied(A, m + d) + b


@apart
def _updated(m, L, J, h):
    F, _ = eliminate(precision(mm(J, L), L), L)
    return F, mv(F, mv_t(F, residual(J, h, m)))


def nodes(chain: GaussianChain, to: Layout) -> Node:
    """The filter: F = L R^-1 with R'R = I + L'JL, step = F F'(h - J m), and L of the next step from [A F, Q]."""

    def one(carry, i):
        parts = [x if isinstance(x, Same) else steps(block(x, i, to), to) for x in chain[2:]]
        empty = Node(jnp.zeros_like(parts[4]), eye(joined(parts[3])).reshape(parts[3].shape), jnp.zeros_like(parts[4]))

        def step(t, carry):
            m, L, every = carry
            A, b, Q, J, h = (at(x, t) for x in parts)
            F, d = _updated(m, L, J, h)
            every = jax.tree.map(lambda x, value: put(x, t, value), every, Node(m, L, d))
            return _moved(A, b, m, d), join(mm_tt(F, A), Q), every

        *carry, every = lax.fori_loop(0, jnp.minimum(to.K, to.T - i * to.K), step, (*carry, empty))
        return tuple(carry), jax.tree.map(joined, every)

    return lax.scan(one, (chain.mean0, chain.sqrt0), jnp.arange(to.blocks))[1]


@apart
def taken(every, i):
    """Entry i of each array, in one place, as `read` has it."""
    return jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, i, keepdims=False), every)


def following(x, after, to: Layout):
    """Step t + 1 of each step of a block; `after` is the first of the block after it."""
    x = steps(x, to)
    firsts = jnp.concatenate([x[1:, ..., :1, :], after[None, ..., None, :]])
    return joined(jnp.concatenate([x[..., 1:, :], firsts], -2))


@apart
def masked(X, on):
    """X, or 0 where there is no transition."""
    return X * on[..., None, None, :]


@apart
def _beside(F, AF_gain, Q_gain):
    return jnp.concatenate([mT(F) - AF_gain, Q_gain], -3)


def conditional(F, L_next, A, Q, on):
    """Gain and root of q(x_t | x_t+1): gain = P A' P-^-1, back = tria[(I - gain A) F, gain Q]."""
    AF = masked(mm(A, F), on)
    gain = divide(mm_nt(F, solve(L_next, AF)), L_next)
    return gain, tria(_beside(F, mm_tt(AF, gain), mm_tt(Q, gain)))


@apart
def _increments(m, h, g, pull, logdet):
    """log of the integral of N(x; m, L L') psi(x) = psi(m) + |F'g|^2 / 2 - log |R|."""
    return dot(m, h + g) / 2 + dot(pull, pull) / 2 - logdet


@apart
def _logdet(pivots):
    return total([jnp.log(pivots[..., k, :]) for k in range(pivots.shape[-2])])


@apart
def _divergence(whitened, e, Je, trace, logdet):
    """(step / 2 + e)' P-^-1 step - e'Je / 2 - tr(J P) / 2 + log |R|: nothing cancels, as far as potentials may lie."""
    w, v = whitened[..., :, 0, :], whitened[..., :, 1, :]
    return dot(w, w / 2 + v) - dot(e, Je) / 2 - trace / 2 + logdet


def _recursion(gain, C, step, after, to: Layout):
    """shift_t = step + gain shift_t+1 and P_t = gain P_t+1 gain' + C, back through a block."""

    def one(i, carry):
        shift, P, shifts, covariances = carry
        t = to.G * to.M - 1 - i
        G = at(gain, t)
        shift, P = at(step, t) + mv(G, shift), mm_nt(mm(G, P), G) + at(C, t)
        return shift, P, put(shifts, t, shift), put(covariances, t, P)

    gain, C, step = (steps(x, to) for x in (gain, C, step))
    *end, shifts, P = lax.fori_loop(0, to.G * to.M, one, (*after, jnp.zeros_like(step), jnp.zeros_like(C)))
    return *end, joined(shifts), joined(P)


def smooth(chain: GaussianChain, node: Node, to: Layout) -> Smoothed:
    """Smoothing, block by block back in time."""

    def one(carry, i):
        (L_after, *moments), every = carry
        m, L, step = taken(node, i)
        A, _, Q, J, h = (block(x, i, to) for x in chain[2:])
        F, pivots = eliminate(precision(mm(J, L), L), L)
        gain, back = conditional(F, following(L, L_after, to), A, Q, transitions(i, to, L.dtype))
        *moments, shift, P = _recursion(gain, mm_nt(back, back), step, moments, to)
        e, g, logdet = shift - step, residual(J, h, m), _logdet(pivots)
        log_z = _increments(m, h, g, mv_t(F, g), logdet)
        kl = _divergence(solve(L, jnp.stack([step, e], -2)), e, mv(J, e), inner(J, P), logdet)
        found = Smoothed(m + shift, shift, cholesky(P), gain, back, log_z, kl, step, L)
        every = Smoothed(*(store(x, i, value, to) for x, value in zip(every, found, strict=True)))
        return ((at(steps(L, to), 0), *moments), every), None

    numbers, D = (to.B, to.T), len(chain.mean0)
    vectors, matrices, between = (*numbers, D), (*numbers, D, D), (to.B, to.T - 1, D, D)
    shapes = Smoothed(vectors, vectors, matrices, between, between, numbers, numbers, vectors, matrices)
    empty = Smoothed(*(room(shape, chain.mean0.dtype, to) for shape in shapes))
    start = (eye(chain.sqrt0), jnp.zeros_like(chain.mean0), jnp.zeros_like(chain.sqrt0)), empty
    found = lax.scan(one, start, jnp.arange(to.blocks), reverse=True)[0][1]
    return Smoothed(*(stored(x, shape, to) for x, shape in zip(found, shapes, strict=True)))
