"""Chains as one writes them plainly: an information-form Kalman smoother, forward-backward in logarithms, mean field.

lax.scan and jnp.linalg, one sequence at a time, to be differentiated through. No mask and no missing entries.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.linalg import cho_solve
from jax.scipy.special import logsumexp

LOG_2PI = math.log(2 * math.pi)


class Pair(NamedTuple):
    """log p(x' | x) in expectation: -(x'J11 x + 2 x'J12 x' + x''J22 x') / 2 + h1'x + h2'x' + c, for each step."""

    J11: Any
    J12: Any
    J22: Any
    h1: Any
    h2: Any
    c: Any


def pair(t):
    """From E t(theta) of the regression on u = (x, 1)."""
    D = t["xxT"].shape[-1]
    WPW, WP = -2 * t["uuT"], t["uxT"]
    c = -WPW[..., D, D] / 2 + t["nu"] - D / 2 * LOG_2PI
    return Pair(WPW[..., :D, :D], -WP[..., :D, :], -2 * t["xxT"], -WPW[..., :D, D], WP[..., D, :], c)


def first_potential(t):
    """J, h, c of the first step, from E t(theta) of the regression on u = 1."""
    return -2 * t["xxT"], t["uxT"][..., 0, :], t["uuT"][..., 0, 0] + t["nu"] - t["xxT"].shape[-1] / 2 * LOG_2PI


def smooth(first, pairs, J, h, noise):
    """log Z, smoothed means and covariances, E x_t x_t+1', and a sample with the given noise."""
    J0, h0, c0 = first

    def forward(carry, inputs):
        (Jp, hp, log_z), (p, Jn, hn) = carry, inputs
        L = jnp.linalg.cholesky(Jp + Jn + p.J11)
        v = cho_solve((L, True), hp + hn + p.h1)
        G = cho_solve((L, True), p.J12)
        increment = jnp.dot(hp + hn + p.h1, v) / 2 - jnp.sum(jnp.log(jnp.diag(L))) + len(v) / 2 * LOG_2PI + p.c
        return (p.J22 - p.J12.T @ G, p.h2 - p.J12.T @ v, log_z + increment), (L, v, G)

    (Jp, hp, log_z), (L, v, G) = lax.scan(forward, (J0, h0, c0), (pairs, J[:-1], h[:-1]))
    last, last_noise = jnp.linalg.cholesky(Jp + J[-1]), noise[-1]
    P = cho_solve((last, True), jnp.eye(h.shape[-1]))
    m = P @ (hp + h[-1])
    log_z = log_z + jnp.dot(hp + h[-1], m) / 2 - jnp.sum(jnp.log(jnp.diag(last))) + len(m) / 2 * LOG_2PI
    x = m + jnp.linalg.cholesky(P) @ last_noise

    def backward(carry, inputs):
        (m, P, x), (L, v, G, n) = carry, inputs
        C = cho_solve((L, True), jnp.eye(len(m)))
        cross = -G @ P
        m_new, P_new = v - G @ m, C - cross @ G.T
        x_new = v - G @ x + jnp.linalg.cholesky(C) @ n
        return (m_new, P_new, x_new), (m_new, P_new, cross + jnp.outer(m_new, m), x_new)

    _, (ms, Ps, xx, xs) = lax.scan(backward, (m, P, x), (L, v, G, noise[:-1]), reverse=True)
    add = lambda a, b: jnp.concatenate([a, b[None]])  # noqa: E731
    return log_z, add(ms, m), add(Ps, P), xx, add(xs, x)


def expected_potentials(J, h, m, P):
    return jnp.sum(h * m) - jnp.sum(J * (P + m[:, :, None] * m[:, None, :])) / 2


def lds(t, J, h, noise):
    """KL(q(x) || p(x)) of one sequence, and a sample."""
    pairs = jax.tree.map(lambda a: jnp.broadcast_to(a, (len(h) - 1, *a.shape)), pair(t["dynamics"]))
    log_z, m, P, _, x = smooth(first_potential(t["first"]), pairs, J, h, noise)
    return expected_potentials(J, h, m, P) - log_z, x


# --- the hidden Markov chain and mean field -----------------------------------------------------------------------


def forward_backward(log_init, log_trans, node):
    """log Z and marginals, in logarithms."""

    def forward(alpha, n):
        new = logsumexp(alpha[:, None] + log_trans, 0) + n
        return new, new

    def backward(beta, n):
        new = logsumexp(log_trans + (n + beta)[None], 1)
        return new, new

    start = log_init + node[0]
    last, alphas = lax.scan(forward, start, node[1:])
    _, betas = lax.scan(backward, jnp.zeros_like(start), node[1:], reverse=True)
    alphas = jnp.concatenate([start[None], alphas])
    betas = jnp.concatenate([betas, jnp.zeros_like(start)[None]])
    return logsumexp(last), jax.nn.softmax(alphas + betas, -1)


def mixed(potentials, w):
    """Potentials averaged over states: sum_k w_tk (...)_k."""
    return jax.tree.map(lambda a: jnp.tensordot(w, a, 1), potentials)


def by_state(first, pairs, m, P, xx):
    """E_q(x) log p(x_t | x_t-1, z_t = k): (T, K)."""
    second = P + m[:, :, None] * m[:, None, :]
    J0, h0, c0 = first
    start = c0 + h0 @ m[0] - jnp.einsum("kij,ij->k", J0, second[0]) / 2
    quadratic = jnp.einsum("kij,tij->tk", pairs.J11, second[:-1]) + jnp.einsum("kij,tij->tk", pairs.J22, second[1:])
    cross = jnp.einsum("kij,tij->tk", pairs.J12, xx)
    later = pairs.c[None] + m[:-1] @ pairs.h1.T + m[1:] @ pairs.h2.T - quadratic / 2 - cross
    node = jnp.concatenate([start[None], later])
    return node - jnp.max(node, -1, keepdims=True)


def slds(t, J, h, noise, sweeps):
    """KL(q(z) q(x) || p(z, x)) of one sequence after so many sweeps, and a sample."""
    first, pairs = first_potential(t["first"]), pair(t["dynamics"])

    def factors(node):
        log_z, w = forward_backward(t["init"], t["transitions"], node)
        firsts, later = jax.tree.map(lambda a: a[0], mixed(first, w[:1])), mixed(pairs, w[1:])
        return log_z, w, smooth(firsts, later, J, h, noise)

    def sweep(node, _):
        _, _, (_, m, P, xx, _) = factors(node)
        return by_state(first, pairs, m, P, xx), None

    node, _ = lax.scan(sweep, jnp.zeros((len(h), len(t["init"]))), length=sweeps)
    log_z, w, (log_x, m, P, _, x) = factors(node)
    return jnp.sum(w * node) - log_z + expected_potentials(J, h, m, P) - log_x, x
