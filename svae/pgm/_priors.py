"""Default conjugate priors in the units of standardised latents, and complete-data posteriors (numpy, float64)."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from svae.expfam import MNIW, NIW, Dirichlet

OFFSET_STRENGTH = 0.1  # observations that the prior mean of an offset, or of a first frame, is worth


def tile(array, batch: tuple[int, ...]) -> Float[Array, "..."]:
    array = jnp.asarray(array, jnp.result_type(float))
    return jnp.broadcast_to(array, (*batch, *array.shape))


def niw_prior(D: int, batch: tuple[int, ...] = (), *, scale: float = 1.0, strength: float = 0.1) -> NIW:
    """E[Sigma^-1]^-1 = scale^2 I with D + 2 degrees of freedom; the mean is worth `strength` observations."""
    nu = D + 2.0
    return NIW(tile(np.zeros(D), batch), tile(nu * scale**2 * np.eye(D), batch), tile(strength, batch), tile(nu, batch))


def mniw_prior(
    D: int, batch: tuple[int, ...] = (), *, inputs: int = 0, scale: float = 0.3, strength: float = 1.0
) -> MNIW:
    """Dynamics x' = A x + B u + b + noise near a random walk that decays slowly, with B and an offset near zero."""
    nu = D + 2.0
    M = np.concatenate([0.95 * np.eye(D), np.zeros((D, inputs + 1))], 1)
    return MNIW(
        tile(M, batch),
        tile(nu * scale**2 * np.eye(D), batch),
        tile(strength * np.eye(D + inputs + 1), batch),
        tile(nu, batch),
    )


def dirichlet_prior(K: int, *, concentration: float) -> Dirichlet:
    """Sparse when concentration < K: every state starts with concentration / K counts."""
    return Dirichlet(tile(np.full(K, concentration / K), ()))


def sticky_prior(K: int, *, concentration: float, stickiness: float) -> Dirichlet:
    """Rows of the transition matrix: sparse, with `stickiness` extra counts on the diagonal (weak-limit sticky HDP)."""
    return Dirichlet(tile(np.full((K, K), concentration / K) + stickiness * np.eye(K), ()))


def stack(prior: Dirichlet, sizes: tuple[int, ...]) -> Dirichlet:
    """The same prior for every combination of the parents' states; as it is where there are no parents."""
    return type(prior)(tile(prior.counts, (int(np.prod(sizes)),))) if sizes else prior


def fit_dirichlet(prior: Dirichlet, counts: np.ndarray) -> Dirichlet:
    return type(prior)(jnp.asarray(np.asarray(prior.counts, float) + counts, prior.counts.dtype))


def fit_niw(prior: NIW, x: np.ndarray, weights: np.ndarray) -> NIW:
    """Posterior of K Gaussians given points (N, D) and their responsibilities (N, K)."""
    post = fit_mniw(prior.as_mniw(), np.ones((len(x), 1)), x, weights)
    return NIW(post.M[..., 0], post.S, post.K[..., 0, 0], post.nu)


def fit_mniw(prior: MNIW, u: np.ndarray, x: np.ndarray, weights: np.ndarray) -> MNIW:
    """Posterior of K linear-Gaussian conditionals given regressors (N, U), targets (N, D), responsibilities (N, K)."""
    rows = [_posterior(*row, u, x, w) for row, w in zip(_rows(prior), weights.T, strict=True)]
    M, S, K, nu = (jnp.asarray(np.stack(field), prior.M.dtype) for field in zip(*rows, strict=True))
    return MNIW(M, S, K, nu)


def _rows(prior: MNIW) -> list[tuple]:
    fields = [np.asarray(field, float) for field in (prior.M, prior.S, prior.K, prior.nu)]
    return list(zip(*fields, strict=True))


def _posterior(M0, S0, K0, nu0, u, x, w):
    """Conjugate update in residual form: the scatter is a sum of squares, never a difference."""
    wu = w[:, None] * u
    K = K0 + u.T @ wu
    M = np.linalg.solve(K, K0 @ M0.T + wu.T @ x).T
    residual, shift = x - u @ M.T, M - M0
    return M, S0 + (w[:, None] * residual).T @ residual + shift @ K0 @ shift.T, K, nu0 + w.sum()


def transition_counts(states: list) -> np.ndarray:
    """Expected counts (K, K) of consecutive states (T_i, K), never across sequences."""
    return sum(w[:-1].T @ w[1:] for w in states)


def first_counts(states: list) -> np.ndarray:
    return sum(w[0] for w in states)


def regressions(latents: list, inputs: list | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Regressors u = (x_{t-1}, inputs of t, 1) and targets x_t of every transition."""
    inputs = [np.zeros((len(x), 0)) for x in latents] if inputs is None else inputs
    rows = [np.c_[x[:-1], known[1:], np.ones(len(x) - 1)] for x, known in zip(latents, inputs, strict=True)]
    return np.concatenate(rows).astype(float), np.concatenate([x[1:] for x in latents]).astype(float)
