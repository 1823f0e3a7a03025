"""The density of frames with missing entries under a latent model of their scores: a Kalman filter for every state.

A state keeps one Gaussian of the scores. Before each step the Gaussians of all states are mixed as the transitions say,
and the mixture is replaced by the Gaussian of its mean and covariance. One state, or states without dynamics, or frames
that are whole: then this is exact. Else it is an approximation of the filter, and still a density: each frame is
predicted from those before it.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from svae.baselines._gaps import LOG_2PI, Seen


class Switching(NamedTuple):
    """x_1 ~ N(mean, first), x_t ~ N(A x_{t-1} + b, Q), all given the state; states follow each other by `rows`."""

    init: Float[np.ndarray, " K"]
    rows: Float[np.ndarray, "K K"]
    mean: Float[np.ndarray, "K D"]
    first: Float[np.ndarray, "K D D"]
    A: Float[np.ndarray, "K D D"]
    b: Float[np.ndarray, "K D"]
    Q: Float[np.ndarray, "K D D"]


def switching(theta: Any) -> Switching:
    """The parameters of a plain model, whichever of states and dynamics it has."""
    parts = getattr(theta.x, "first", None), getattr(theta.x, "dynamics", None)
    (start, first), (W, Q) = (_by_state(theta.x.normal if part is None else part) for part in parts)
    K, D = start.shape[:2]
    A = W[..., :D] if W.shape[-1] > D else np.zeros((K, D, D))
    logs = (theta.z.init, theta.z.transitions) if hasattr(theta, "z") else (np.zeros(1), np.zeros((1, 1)))
    init, rows = (np.exp(np.asarray(log, float)) for log in logs)
    return Switching(init, rows, start[..., 0], first, A, W[..., -1], Q)


def _by_state(part: Any) -> tuple[np.ndarray, np.ndarray]:
    """W (K, D, U) and the covariance (K, D, D)."""
    W, root = (np.asarray(leaf, float) for leaf in part)
    W, root = (leaf[None] if leaf.ndim == 2 else leaf for leaf in (W, root))
    return W, root @ root.transpose(0, 2, 1)


def log_prob(model: Switching, seen: Seen) -> Float[np.ndarray, " T"]:
    """log p(frame | the frames before it), of frames in a row."""
    found = np.zeros(len(seen.y))
    weights, m, P = model.init, model.mean, model.first
    for t in range(len(found)):
        if t:
            weights, m, P = _predicted(model, weights, m, P)
        m, P, log_p = _updated(m, P, *seen.at(t))
        joint = np.log(np.maximum(weights, 1e-300)) + log_p
        most = joint.max()
        weights = np.exp(joint - most)
        found[t] = most + np.log(weights.sum())
        weights = weights / weights.sum()
    return found + seen.rest


def predicted(model: Switching, x: Float[np.ndarray, "B T D"]) -> Float[np.ndarray, "B T"]:
    """log p(x_t | x_1 .. x_{t-1}) of scores that are known: sequences side by side, the states summed over."""
    node = np.stack([_log_normal(model, k, x) for k in range(len(model.init))], -1)
    top = node.max(-1)
    said = np.exp(node - top[..., None])
    weights, totals = np.broadcast_to(model.init, said[:, 0].shape), np.empty_like(top)
    for t in range(x.shape[1]):
        joint = weights * said[:, t]
        totals[:, t] = joint.sum(-1)
        weights = joint / totals[:, t, None] @ model.rows
    return top + np.log(totals)


def _log_normal(model: Switching, k: int, x: np.ndarray) -> np.ndarray:
    """log p(x_t | x_{t-1}, state k) (B, T)."""
    before = x[:, :-1] @ model.A[k].T + model.b[k]
    parts = (x[:, :1] - model.mean[k], model.first[k]), (x[:, 1:] - before, model.Q[k])
    return np.concatenate([_log_density(away, S) for away, S in parts], 1)


def _log_density(away: np.ndarray, S: np.ndarray) -> np.ndarray:
    """log N(away; 0, S) of the last axis."""
    root = np.linalg.cholesky(S)
    z = away @ np.linalg.inv(root).T
    return -(z**2).sum(-1) / 2 - np.log(np.diag(root)).sum() - len(S) * LOG_2PI / 2


def smoothed(model: Switching, seen: Seen) -> Float[np.ndarray, "T D"]:
    """E[x_t | all frames] under a model of one state."""
    m, P, now, before = model.mean, model.first, [], []
    for t in range(len(seen.y)):
        if t:
            _, m, P = _predicted(model, np.ones(1), m, P)
        before.append((m[0], P[0]))
        m, P, _ = _updated(m, P, *seen.at(t))
        now.append((m[0], P[0]))
    x = [now[-1][0]]
    for (mean, P), (ahead, spread) in zip(now[-2::-1], before[:0:-1], strict=True):
        x.append(mean + P @ model.A[0].T @ np.linalg.solve(spread, x[-1] - ahead))
    return np.stack(x[::-1])


def _predicted(model: Switching, weights, m, P):
    """Weights, means and covariances of the next frame, one Gaussian for each state."""
    joint = weights[:, None] * model.rows  # (from, to)
    following = joint.sum(0)
    share = joint / np.maximum(following, 1e-300)
    mean = share.T @ m
    away = m[:, None] - mean[None]
    spread = np.tensordot(share.T, P, 1) + np.einsum("jk,jka,jkb->kab", share, away, away)
    A = model.A
    return following, np.einsum("kij,kj->ki", A, mean) + model.b, A @ spread @ A.transpose(0, 2, 1) + model.Q


def _updated(m, P, y, H, C):
    """Means and covariances after y = H x + noise has been seen, and log p(y) under each state."""
    PH = P @ H.T
    S = H @ PH + C
    gain = np.linalg.solve(S, PH.transpose(0, 2, 1)).transpose(0, 2, 1)
    away = y - m @ H.T
    weighed = np.linalg.solve(S, away[..., None])[..., 0]
    log_p = -(np.sum(away * weighed, -1) + np.linalg.slogdet(S)[1] + len(y) * LOG_2PI) / 2
    kept = P - gain @ PH.transpose(0, 2, 1)
    return m + np.einsum("kij,kj->ki", gain, away), (kept + kept.transpose(0, 2, 1)) / 2, log_p
