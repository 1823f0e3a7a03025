"""The Gaussian chain: its types, and the algebra that both forms share, done for all steps at once."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from svae._linalg import cholesky, cholesky_and_inverse, eye_like, inv_tril, logdet_tril, mm, mT, mv, phi, tria


class GaussianChain(NamedTuple):
    """N(x_1; mean0, sqrt0 sqrt0') prod N(x_t+1; A x_t + b, Q_sqrt Q_sqrt') prod exp(-x_t' J x_t / 2 + h' x_t).

    A, b and Q_sqrt have T-1 entries each, or one: the same at every step.
    """

    mean0: Float[Array, "D"]
    sqrt0: Float[Array, "D D"]
    A: Float[Array, "steps D D"]
    b: Float[Array, "steps D"]
    Q_sqrt: Float[Array, "steps D D"]
    J: Float[Array, "T D D"]  # positive semidefinite; 0 is a missing step
    h: Float[Array, "T D"]


class GaussianFiltered(NamedTuple):
    """q(x_t | potentials to t) = N(mean_t, sqrt_t sqrt_t'); log_z_t = log of the integral of p(x_t | past) psi_t."""

    mean: Float[Array, "T D"]
    sqrt: Float[Array, "T D D"]
    log_z: Float[Array, "T"]


class GaussianSmoothed(NamedTuple):
    """q(x_t) = N(mean_t, sqrt sqrt') and q(x_t | x_t+1) = N(mean_t + gain (x_t+1 - mean_t+1), back_sqrt back_sqrt').

    log_z are the increments of log Z; kl_t = E psi_t - log_z_t sums to KL(q || the chain without potentials).
    """

    mean: Float[Array, "T D"]
    sqrt: Float[Array, "T D D"]
    gain: Float[Array, "T-1 D D"]
    back_sqrt: Float[Array, "T-1 D D"]
    log_z: Float[Array, "T"]
    kl: Float[Array, "T"]


class Moments(NamedTuple):
    """N(mean_t, sqrt_t sqrt_t'), sqrt lower triangular."""

    mean: Float[Array, "T D"]
    sqrt: Float[Array, "T D D"]


class Updated(NamedTuple):
    """Predicted moments after their potentials; residual g = h - J m-, logdet = log |G| with G G' = I + L-' J L-."""

    mean: Float[Array, "T D"]
    sqrt: Float[Array, "T D D"]  # L- G^-T, not triangular
    step: Float[Array, "T D"]  # filtered - predicted mean, before it is rounded away in their sum
    residual: Float[Array, "T D"]
    whitened: Float[Array, "T D"]  # L-^-1 step
    logdet: Float[Array, "T"]


def every_step(chain: GaussianChain) -> GaussianChain:
    """The chain with dynamics of its own at every step."""
    each_step = (jnp.broadcast_to(x, (len(chain.h) - 1, *x.shape[1:])) for x in chain[2:5])
    return GaussianChain(*chain[:2], *each_step, *chain[5:])


each = jax.vmap  # over time: one matrix at a time is what _linalg runs fastest


def gram(L):
    """L L'."""
    return mm(L, mT(L))


def update(predicted: Moments, J, h) -> Updated:
    """Multiplies N(m-, L- L-') by psi: G = chol(I + L-' J L-), L = L- G^-T, m = m- + L L' (h - J m-)."""
    m, L = predicted
    G, G_inv = cholesky_and_inverse(eye_like(L) + mm(mT(L), mm(J, L)))
    L = mm(L, mT(G_inv))
    g = h - mv(J, m)
    pull = mv(mT(L), g)
    step = mv(L, pull)
    return Updated(m + step, L, step, g, mv(mT(G_inv), pull), logdet_tril(G))


def predict(mean, sqrt, A, b, Q_sqrt) -> Moments:
    """Moments of A x + b + noise: L- = tria[A L, Q_sqrt]."""
    return Moments(mv(A, mean) + b, tria(jnp.concatenate([mm(A, sqrt), Q_sqrt], -1)))


def log_z(predicted: Moments, updated: Updated, J, h) -> Float[Array, "T"]:
    """log of the integral of N(x; m-, P-) psi(x) = psi(m-) + g' P g / 2 - log |G|."""
    m, Lg = predicted.mean, mv(mT(updated.sqrt), updated.residual)
    return jnp.sum(m * (h + updated.residual) + Lg * Lg, -1) / 2 - updated.logdet


def kl(updated: Updated, shift, whiten, P, J) -> Float[Array, "T"]:
    """E_q psi - log_z in deviations from the filtered mean, where nothing cancels, however far the potential lies.

    With d = filtered - predicted mean, e = smoothed - filtered mean and P- = L- L-':
    kl_t = (d / 2 + e)' P-^-1 d - e' J e / 2 - tr(J P) / 2 + log |G|
    """
    e = shift - updated.step
    linear = jnp.sum(updated.whitened * (updated.whitened / 2 + mv(whiten, e)) - e * mv(J, e) / 2, -1)
    return linear - jnp.sum(J * P, (-1, -2)) / 2 + updated.logdet


def backward(filtered_sqrt, next_inverse, A, Q_sqrt):
    """Gain and square root of q(x_t | x_t+1): gain = P A' P-^-1, back = tria[(I - gain A) L, gain Q_sqrt]."""
    AL, W = mm(A, filtered_sqrt), next_inverse
    gain = mm(filtered_sqrt, mm(mT(mm(W, AL)), W))
    noise = mm(gain, Q_sqrt)
    return gain, tria(jnp.concatenate([filtered_sqrt - mm(gain, AL), noise], -1))


def transfer(chain, P):
    """F = A (I - P J), P filtered: how the predicted mean at t moves the one at t+1."""
    return mm(chain.A, eye_like(P) - mm(P, chain.J[:-1]))


def predicted_tangents(chain, tangents, predicted: Moments, vectors, matrices) -> Moments:
    """Tangents of the predicted moments, by the linear recursions that the covariances obey, from their stable values.

    With X = I - P J and F = A X:  dP-' = F dP- F' + dA P A' + A P dA' + dQ - A P dJ P A'
    dm-' = F (dm- + dP- X' g) + A P (dh - dJ m) + dA m + db
    """
    d = tangents
    updated = each(update)(predicted, chain.J, chain.h)  # of all steps, as the caller has it already
    m, L, _, g = (x[:-1] for x in updated[:4])
    P = gram(L)
    PA = mm(P, mT(chain.A))
    F = transfer(chain, P)
    C = mm(d.A, PA) + mm(d.Q_sqrt, mT(chain.Q_sqrt))
    C = C + mT(C) - mm(mT(PA), mm(d.J[:-1], PA))
    C0 = mm(d.sqrt0, mT(chain.sqrt0))
    dP = matrices(F, jnp.concatenate([(C0 + mT(C0))[None], C]))
    pull = mv(mT(PA), d.h[:-1] - mv(d.J[:-1], m)) + mv(d.A, m) + d.b
    push = mv(F, mv(dP[:-1], g - mv(chain.J[:-1], mv(P, g))))  # X' g = g - J P g
    dm = vectors(F, jnp.concatenate([d.mean0[None], pull + push]))
    W = each(inv_tril)(predicted.sqrt)
    return Moments(dm, mm(predicted.sqrt, phi(mm(mm(W, dP), mT(W)))))


def filtered(chain, predicted: Moments) -> GaussianFiltered:
    """The potentials' update of every predicted step."""
    updated = each(update)(predicted, chain.J, chain.h)
    return GaussianFiltered(updated.mean, each(tria)(updated.sqrt), log_z(predicted, updated, chain.J, chain.h))


def smoothed(chain, predicted: Moments, vectors, matrices) -> GaussianSmoothed:
    """Rauch-Tung-Striebel smoothing of the predicted steps: two linear recursions back in time.

    m_t = m_filtered + gain (m_t+1 - m-_t+1),  P_t = gain P_t+1 gain' + back back'
    """
    updated = each(update)(predicted, chain.J, chain.h)
    whiten = each(inv_tril)(predicted.sqrt)
    gain, back = each(backward)(updated.sqrt[:-1], whiten[1:], chain.A, chain.Q_sqrt)
    # The update here and the one inside the recursion differ by rounding: without their difference the two would not be
    # one chain (3 times the error on ill-conditioned noise). It has no tangent.
    defect = lax.stop_gradient(predicted.mean[1:] - mv(chain.A, updated.mean[:-1]) - chain.b)
    steps = updated.step.at[:-1].add(mv(lax.stop_gradient(gain), defect))
    ends = jnp.concatenate([gram(back), gram(updated.sqrt[-1:])])
    P = jnp.flip(matrices(jnp.flip(gain, 0), jnp.flip(ends, 0)), 0)
    shift = jnp.flip(vectors(jnp.flip(gain, 0), jnp.flip(steps, 0)), 0)
    increments = log_z(predicted, updated, chain.J, chain.h)
    divergence = kl(updated, shift, whiten, P, chain.J)
    return GaussianSmoothed(predicted.mean + shift, each(cholesky)(P), gain, back, increments, divergence)


def deviations(smoothed: GaussianSmoothed, noise, vectors) -> Float[Array, "T D"]:
    """x - mean of a draw: e_T = sqrt_T n_T, e_t = gain_t e_t+1 + back_sqrt_t n_t."""
    roots = jnp.concatenate([smoothed.back_sqrt, smoothed.sqrt[-1:]])
    return jnp.flip(vectors(jnp.flip(smoothed.gain, 0), jnp.flip(mv(roots, noise), 0)), 0)
