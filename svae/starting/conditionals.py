"""Conditional Gaussians of states, fitted to weighted frames.

Frames are rows v = (u, x), the regressors first and a constant last among them. All that a state needs are its weighted
second moments of v, and those of two states that become one are their sum.
"""

from collections.abc import Iterator

import numpy as np

BLOCK = 1024  # frames
FLOOR = 0.01  # variance, in latents of unit variance, that a state keeps for sure


def moments(v: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Sum of w v v' (K, V, V) over frames (N, V) of weights (N, K)."""
    total = sum(weights[at].T @ squares for at, squares in _squares(v))
    return total.reshape(-1, v.shape[1], v.shape[1])


def log_prob(v: np.ndarray, weights: np.ndarray, D: int) -> np.ndarray:
    """log N(x; M_k u, S_k) (N, K), up to a constant, of conditionals fitted with the weights (N, K)."""
    M, S = fitted(moments(v, weights), D)
    B = np.concatenate([-M, np.broadcast_to(np.eye(D), S.shape)], 1)  # B'v = x - M'u
    quadratic = (B @ np.linalg.solve(S, np.swapaxes(B, 1, 2))).reshape(len(M), -1)
    away = np.concatenate([squares @ quadratic.T for _, squares in _squares(v)])
    return -(away + np.linalg.slogdet(S)[1]) / 2


def _squares(v: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """v v' (n, V V) of some frames at a time, and which: one product then serves all states."""
    for first in range(0, len(v), BLOCK):
        part = v[first : first + BLOCK]
        yield slice(first, first + BLOCK), (part[:, :, None] * part[:, None, :]).reshape(len(part), -1)


def fitted(G: np.ndarray, D: int) -> tuple[np.ndarray, np.ndarray]:
    """M (..., U, D) and S (..., D, D) of moments (..., V, V), shrunk to a random walk, or to zero."""
    U = G.shape[-1] - D
    toward = np.eye(U, D) if U > 1 else np.zeros((1, D))
    uu, ux = G[..., :U, :U] + np.eye(U), G[..., :U, U:] + toward
    M = np.linalg.solve(uu, ux)
    scatter = G[..., U:, U:] + toward.T @ toward - np.swapaxes(ux, -1, -2) @ M
    frames = G[..., U - 1, U - 1, None, None] + D + 2
    return M, (scatter + FLOOR * (D + 2) * np.eye(D)) / frames


def losses(G: np.ndarray, D: int) -> np.ndarray:
    """The log likelihood (K, K) that states with moments G (K, V, V) lose as one; infinite but for pairs i < j."""
    alone, K = explained(G, D), len(G)
    lost = np.full((K, K), np.inf)
    for i in range(K - 1):
        lost[i, i + 1 :] = alone[i] + alone[i + 1 :] - explained(G[i] + G[i + 1 :], D)
    return lost


def cheapest(lost: np.ndarray, number: int) -> list[tuple[int, int]]:
    """The pairs of states that lose least as one, no state in two of them."""
    found, left = [], set(range(len(lost)))
    i, j = np.triu_indices(len(lost), 1)
    for n in np.argsort(lost[i, j]):
        pair = int(i[n]), int(j[n])
        if len(found) < number and left.issuperset(pair):
            found.append(pair)
            left.difference_update(pair)
    return found


def explained(G: np.ndarray, D: int) -> np.ndarray:
    """The log likelihood (...) of frames with moments G under their own conditionals, up to a sum over all frames."""
    frames = G[..., -D - 1, -D - 1] + D + 2
    return -frames / 2 * np.linalg.slogdet(fitted(G, D)[1])[1]
