"""The derivative of smoothing in lanes, by two more sweeps, as the kernels take it (`kernels/gaussian_push.h`).

The cotangent of a covariance P = L L' is carried as omega = L' (dP) L, in the coordinates of its own root, where every
step of the recursion is well scaled. Of one step: w = L^-1 step, u = L^-T w, e = smoothed - filtered mean.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from svae.messages.gaussian_chain import GaussianChain, GaussianSmoothed
from svae.messages.gaussian_lanes_sweeps import following, masked, taken
from svae.messages.lanes import apart, eye, mm, mm_nt, mm_tn, mm_tt, mT, mv, mv_t, outer, total
from svae.messages.lanes_layout import (
    Blocks,
    Layout,
    Same,
    at,
    block,
    joined,
    put,
    read,
    room,
    steps,
    store,
    stored,
    transitions,
)
from svae.messages.lanes_roots import eliminate, inverse, precision, solve


class Kept(NamedTuple):
    """Of the smoothed chain what its derivative reads; padding has roots I, and gain 0."""

    mean: Blocks
    sqrt: Blocks
    gain: Blocks
    back: Blocks
    shift: Blocks  # smoothed - predicted mean
    step: Blocks  # filtered - predicted mean
    L: Blocks  # of the predicted moments


class Factors(NamedTuple):
    """R^-1 and F = L R^-1 of an update, the inverses of L and of the next L, and next L^-1 A F."""

    R_inverse: Float[Array, "M D D lanes"]
    F: Float[Array, "M D D lanes"]
    inverse: Float[Array, "M D D lanes"]
    inverse_next: Float[Array, "M D D lanes"]
    A: Float[Array, "M D D lanes"]


class Pushed(NamedTuple):
    """What the first sweep leaves to the second: cotangents of the filter's moments, and the transition's parts."""

    omega: Float[Array, "blocks M D D lanes"]
    A_part: Float[Array, "blocks M D D lanes"]
    omega_Q: Float[Array, "blocks M D D lanes"]
    sigma: Float[Array, "blocks M D lanes"]
    carried: Float[Array, "blocks M D lanes"]


def _after(x, i, to: Layout):
    """The first step after block i of an array of a batch; the last step where there is none."""
    return _step(x.every, jnp.minimum((i + 1) * to.K, to.T - 1))


@apart
def _step(every, t):
    return jnp.moveaxis(lax.dynamic_index_in_dim(every, t, 1, keepdims=False), 0, -1)


def _next(x, now, i, to: Layout):
    """The step after each step of block i, which is `now`."""
    return following(now, _after(x, i, to), to)


def factors(J, L, L_next, A, on) -> Factors:
    """Of all steps of a block."""
    R_inverse, _ = eliminate(precision(mm(J, L), L), eye(L))
    F, inverse_next = mm(L, R_inverse), inverse(L_next)
    return Factors(R_inverse, F, inverse(L), inverse_next, mm(inverse_next, masked(mm(A, F), on)))


@apart
def _from_root(X):
    """The cotangent of L L' in the coordinates of L, from L' dL of its lower root."""
    lower = X * jnp.broadcast_to(jnp.tril(jnp.ones(X.shape[-3:-1], X.dtype))[..., None], X.shape)
    return (lower + mT(lower) - eye(X) * X) / 2


@apart
def _symmetric(X):
    return (X + mT(X)) / 2


@apart
def _added(x, y):
    return x + y


def _push_steps(N, gain, drive, d_mean, k, before, to: Layout):
    """omega and sigma of the smoothed moments, forward through a block; carried = gain' (sigma + k)."""

    def one(t, carry):
        (omega, carried), every = carry
        omega, sigma, n, g = omega + at(drive, t), carried + at(d_mean, t), at(N, t), at(gain, t)
        carried = mv_t(g, sigma + at(k, t))
        every = [put(x, t, value) for x, value in zip(every, (omega, sigma, carried), strict=True)]
        return (mm_tn(n, mm(omega, n)), carried), every

    N, gain, drive, d_mean, k = (steps(x, to) for x in (N, gain, drive, d_mean, k))
    empty = [jnp.zeros_like(x) for x in (drive, k, k)]
    before, every = lax.fori_loop(0, to.K, one, (before, empty))
    return before, *(joined(x) for x in every)


def push(chain: GaussianChain, q: Kept, d: GaussianSmoothed, to: Layout) -> Pushed:
    """The adjoint of smoothing, forward in time."""

    def one(before, i):
        on = transitions(i, to, zero[0].dtype)
        A, J = block(chain.A, i, to), block(chain.J, i, to)
        S, gain, back, shift, step, L = read(q[1:], i, to)
        d_mean, d_sqrt, d_gain, d_back, kl = read([*d[:4], d.kl], i, to)
        L_next, S_next, shift_next = _next(q.L, L, i, to), _next(q.sqrt, S, i, to), _next(q.shift, shift, i, to)
        f = factors(J, L, L_next, A, on)
        K, C = mm(gain, L_next), mm(f.inverse_next, S_next)
        H, V, Z, N = solve(S, back), solve(back, K), solve(f.F, back), mm(solve(S, K), C)
        u, e = mv_t(f.inverse, mv(f.inverse, step)), mv(gain, shift_next)
        k = kl[..., None, :] * (u - mv(J, e))
        drive = _drive(_from_root(mm_tn(S, d_sqrt)), mm_tn(S, mm(J, S)), kl)
        before, omega, sigma, carried = _push_steps(N, gain, drive, d_mean, k, before, to)
        psi = 2 * mm_nt(mm_tn(H, mm(omega, N)), C)
        psi = _added(psi, mm_nt(mm_tn(back, d_gain + outer(sigma + k, shift_next)), f.inverse_next))
        omega_back = _added(_from_root(mm_tn(back, d_back)), mm_tn(H, mm(omega, H)))
        TZ = mm_nt(omega_back, Z)
        s = _added(TZ, mm(psi, f.A))
        A_part = mm_tt(psi, Z) - mm_tn(V, _added(s, TZ))
        omega_Q = _symmetric(mm_tn(V, mm(omega_back, V) - psi))
        return before, Pushed(_symmetric(mm(Z, s)), A_part, omega_Q, sigma, carried)

    zero = jnp.zeros_like(chain.sqrt0), jnp.zeros_like(chain.mean0)
    return lax.scan(one, zero, jnp.arange(to.blocks))[1]


@apart
def _drive(M, SJS, kl):
    return M - kl[..., None, None, :] / 2 * SJS


def _pull_steps(theta, c, start, to: Layout):
    """mu_t = theta' mu_t+1 + c_t, back through a block."""

    def one(i, carry):
        t = to.K - 1 - i
        mu = mv_t(at(theta, t), carry[0]) + at(c, t)
        return mu, put(carry[1], t, mu)

    theta, c = steps(theta, to), steps(c, to)
    return joined(lax.fori_loop(0, to.K, one, (start, jnp.zeros_like(c)))[1])


def _pull_matrices(theta, C, start, to: Layout):
    """omega_t = theta' omega_t+1 theta + C_t, back through a block."""

    def one(i, carry):
        t = to.K - 1 - i
        F = at(theta, t)
        omega = _added(mm_tn(F, mm(carry[0], F)), at(C, t))
        return omega, put(carry[1], t, omega)

    theta, C = steps(theta, to), steps(C, to)
    return joined(lax.fori_loop(0, to.K, one, (start, jnp.zeros_like(C)))[1])


@apart
def _potential(FoF, SS, e, r, mean, kl, log_z):
    """-F omega F' - kl (S S' + e e') / 2 - (r mean' + mean r') / 2 - log_z mean mean' / 2."""
    r = r + log_z[..., None, :] * mean / 2
    return -FoF - kl[..., None, None, :] / 2 * (SS + outer(e, e)) - (outer(r, mean) + outer(mean, r)) / 2


@apart
def _plus(X, y):
    """X + y I."""
    return X + y[..., None, None, :] * eye(X)


@apart
def _plus_both(X, y, x, w):
    """X + y I + x w' + w x'."""
    return X + y[..., None, None, :] * eye(X) + outer(x, w) + outer(w, x)


def _first(x, to: Layout):
    return at(steps(x, to), 0)


def _dynamics(f: Factors, p: Pushed, mean, mu_next, omega_next, OA, Q, on):
    """Cotangents of A, b and Q_sqrt, from those of the next step; OA = omega_next f.A."""
    db = (mv_t(f.inverse_next, mu_next) - p.carried) * on[..., None, :]
    dA = masked(mm_tn(f.inverse_next, mm_nt(p.A_part + 2 * OA, f.F)), on) + outer(db, mean)
    W = mm_tn(f.inverse_next, mm(_added(omega_next, p.omega_Q), f.inverse_next))
    return dA, db, 2 * mm(masked(W, on), Q)


def pull(chain: GaussianChain, noise, q: Kept, d: GaussianSmoothed, pushed: Pushed, to: Layout):
    """The adjoint of the filter, back in time: cotangents of the first mean and root, and of all that goes by steps."""

    def one(carry, i):
        (mu_after, omega_after), every = carry
        on = transitions(i, to, zero[0].dtype)
        A, p = block(chain.A, i, to), taken(pushed, i)
        J, S, gain, shift, step, L, log_z, kl = read([chain.J, q.sqrt, q.gain, *q[4:], d.log_z, d.kl], i, to)
        L_next, shift_next = _next(q.L, L, i, to), _next(q.shift, shift, i, to)
        f = factors(J, L, L_next, A, on)
        e, w, half = mv(gain, shift_next), mv(f.inverse, step), (kl - log_z) / 2
        mean = block(q.mean, i, to) - e
        y = mv_t(f.R_inverse, mv(f.inverse, e)) + mv_t(f.F, mv_t(f.inverse, w))
        r = mv(f.F, kl[..., None, :] * y)
        x = mv_t(f.F, p.sigma) - mv_t(f.A, mv_t(L_next, p.carried))
        c = mv(f.R_inverse, x) - mv_t(L, mv(J, r)) + log_z[..., None, :] * w
        theta = mm_nt(f.A, f.R_inverse)
        mu = _pull_steps(theta, c, mu_after, to)
        C = mm_nt(mm(f.R_inverse, _plus(p.omega, -half)), f.R_inverse)
        omega = _pull_matrices(theta, _plus_both(C, half, (mu + half[..., None, :] * w) / 2, w), omega_after, to)
        mu_next, omega_next = following(mu, mu_after, to), following(omega, omega_after, to)
        r = r + mv(f.F, x + mv_t(f.A, mu_next))
        OA = mm(omega_next, f.A)
        omega_f = _plus(_added(p.omega, mm_tn(f.A, OA)), -half)
        dJ = _potential(mm_nt(mm(f.F, omega_f), f.F), mm_nt(S, S), e, r, mean, kl, log_z)
        dynamics = _dynamics(f, p, mean, mu_next, omega_next, OA, block(noise, i, to), on)
        every, sums = _collected(every, i, (*dynamics, dJ, r + log_z[..., None, :] * mean), to)
        return ((_first(mu, to), _first(omega, to)), every), sums

    zero = jnp.zeros_like(chain.mean0), jnp.zeros_like(chain.sqrt0)
    shapes = [None if isinstance(x, Same) else (to.B, n, *x.every.shape[2:]) for x, n in _lengths(chain, to)]
    empty = [None if shape is None else room(shape, zero[0].dtype, to) for shape in shapes]
    (first, every), sums = lax.scan(one, (zero, empty), jnp.arange(to.blocks), reverse=True)
    found = [None if shape is None else stored(x, shape, to) for x, shape in zip(every, shapes, strict=True)]
    return first, found, sums


def _lengths(chain: GaussianChain, to: Layout):
    """Each leaf that goes by steps, and how many it has."""
    return zip(chain[2:], [to.T - 1] * 3 + [to.T] * 2, strict=True)


def _collected(every, i, values, to: Layout):
    """Each value in its place, or summed over the steps of the block where one entry serves all steps."""
    stored = [None if x is None else store(x, i, value, to) for x, value in zip(every, values, strict=True)]
    sums = [_over_steps(steps(value, to)) if x is None else None for x, value in zip(every, values, strict=True)]
    return stored, sums


@apart
def _over_steps(x):
    """The sum over the steps of a block, written out."""
    return total([x[m, ..., g, :] for m in range(x.shape[0]) for g in range(x.shape[-2])])
