"""Is the synthetic mouse a fair exam? One frame must not give the action away; the true poses with dynamics must.

Run `python -m benchmarks.mouse_exam [seed ...]`: prints the adjusted Rand index (ARI) of four segmentations, all given
the true K: k-means on single-frame PCA, Gaussian HMM on PCA, AR-HMM on PCA, AR-HMM on true poses. None sees a label.
"""

import json
import sys
from typing import NamedTuple

import numpy as np
from scipy.ndimage import uniform_filter1d
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from svae.data import mouse

COMPONENTS = 10
STICKY = 20.0  # pseudo-count of staying, against 1 of any other move


class ARHMM(NamedTuple):
    """x_{t+1} ~ N(W_k [x_t, 1], Q_k) with k = z_{t+1}: log_init (K,), log_trans (K, K), W (K, D, D+1), Q (K, D, D)."""

    log_init: np.ndarray
    log_trans: np.ndarray
    W: np.ndarray
    Q: np.ndarray


class Fit(NamedTuple):
    """The bound reached and the segmentation (B, T) by largest marginal."""

    log_likelihood: float
    labels: np.ndarray


def pca(y: np.ndarray, components: int = COMPONENTS) -> np.ndarray:
    """Frames (B, T, H, W) to scores (B, T, components)."""
    rows = y.reshape(y.shape[0] * y.shape[1], -1)
    return PCA(components, random_state=0).fit_transform(rows).reshape(*y.shape[:2], -1)


def kmeans(x: np.ndarray, K: int, seed: int = 0) -> np.ndarray:
    """Labels (B, T) of rows of x (B, T, D)."""
    return KMeans(K, n_init=10, random_state=seed).fit_predict(x.reshape(-1, x.shape[-1])).reshape(x.shape[:2])


def gaussian_hmm(x: np.ndarray, K: int, seed: int = 0) -> np.ndarray:
    """hmmlearn's Gaussian HMM with full covariances, best of 3 starts: labels (B, T)."""
    from hmmlearn.hmm import GaussianHMM

    rows, lengths = x.reshape(-1, x.shape[-1]), [x.shape[1]] * x.shape[0]
    models = [GaussianHMM(K, "full", n_iter=60, random_state=seed + start).fit(rows, lengths) for start in range(3)]
    best = max(models, key=lambda model: model.score(rows, lengths))
    return best.predict(rows, lengths).reshape(x.shape[:2])


def ar_hmm(x: np.ndarray, K: int, seed: int = 0, starts: int = 6, iterations: int = 60) -> np.ndarray:
    """Sticky AR(1)-HMM by EM, the likeliest of k-means starts on windows of several widths: labels (B, T)."""
    x = (x - x.mean((0, 1))) / x.std((0, 1))
    widths = (9, 15)
    first = [kmeans(_motion(x, widths[s % 2]), K, seed + s) for s in range(starts)]
    fits = [_em(x, labels, K, iterations) for labels in first]
    return max(fits, key=lambda fit: fit.log_likelihood).labels


def _motion(x, width):
    """How x moves near t, not its phase: log speed of columns and turning rate of pairs: (B, T, D + D (D - 1) / 2)."""
    move = np.diff(x, axis=1, prepend=2 * x[:, :1] - x[:, 1:2])
    middle = x - move / 2
    size = _smooth(middle**2, width).sum(-1, keepdims=True)
    i, j = np.triu_indices(x.shape[-1], 1)
    turn = _smooth(move[..., i] * middle[..., j] - move[..., j] * middle[..., i], width) / (size + 0.3 * size.mean())
    speed = np.log(_smooth(move**2, width) + 1e-4)
    speed = speed / (speed.std((0, 1)).mean() * np.sqrt(x.shape[-1]))
    return np.concatenate([speed, 1.5 * turn / np.sqrt((turn**2).sum(-1).mean())], -1)


def _smooth(x, width):
    """Moving average along time."""
    return uniform_filter1d(x, width, axis=1, mode="nearest")


def _em(x, labels, K, iterations):
    """EM from hard labels; M-step by ridge regression, E-step by forward-backward over all sequences at once."""
    states = np.eye(K)[labels]
    pairs = STICKY * np.eye(K) + 1
    for _ in range(iterations):
        model = _m_step(x, states, pairs)
        states, pairs, log_likelihood = _e_step(model, x)
    return Fit(log_likelihood, states.argmax(-1))


def _m_step(x, states, pairs):
    """Weighted least squares of x_{t+1} on [x_t, 1] for every state."""
    D = x.shape[-1]
    past = np.concatenate([x[:, :-1], np.ones((*x[:, :-1].shape[:2], 1))], -1).reshape(-1, D + 1)
    future, weight = x[:, 1:].reshape(-1, D), states[:, 1:].reshape(-1, states.shape[-1])
    W, Q = [], []
    for w in weight.T[..., None]:
        W.append(np.linalg.solve(past.T @ (w * past) + 1e-2 * np.eye(D + 1), past.T @ (w * future)).T)
        error = future - past @ W[-1].T
        Q.append((error.T @ (w * error) + 1e-3 * np.eye(D)) / (w.sum() + 1))
    trans = pairs + 1 + STICKY * np.eye(len(pairs))
    log_trans = np.log(trans / trans.sum(1, keepdims=True))
    return ARHMM(np.log(states[:, 0].mean(0) + 1e-3), log_trans, np.array(W), np.array(Q))


def _e_step(model, x):
    """Marginals (B, T, K), summed pair counts (K, K), log likelihood."""
    node = np.exp((logs := _log_emissions(model, x)) - logs.max(-1, keepdims=True))
    trans, (B, T) = np.exp(model.log_trans), node.shape[:2]
    alpha, scale = np.empty_like(node), np.empty((B, T))
    message = np.exp(model.log_init)[None] / np.exp(model.log_init).sum()
    for t in range(T):
        alpha[:, t] = message * node[:, t] + 1e-300
        scale[:, t] = alpha[:, t].sum(-1)
        alpha[:, t] /= scale[:, t, None]
        message = alpha[:, t] @ trans
    beta = np.ones_like(node)
    for t in range(T - 2, -1, -1):
        beta[:, t] = (node[:, t + 1] * beta[:, t + 1]) @ trans.T / scale[:, t + 1, None]
    pairs = trans * np.einsum("bti,btj->ij", alpha[:, :-1], node[:, 1:] * beta[:, 1:] / scale[:, 1:, None])
    states = alpha * beta
    return states / states.sum(-1, keepdims=True), pairs, float((np.log(scale) + logs.max(-1)).sum())


def _log_emissions(model, x):
    """log N(x_{t+1}; W_k [x_t, 1], Q_k), 0 at the first frame: (B, T, K)."""
    past = np.concatenate([x[:, :-1], np.ones((*x[:, :-1].shape[:2], 1))], -1)
    out = np.zeros((*x.shape[:2], len(model.W)))
    for k, (W, Q) in enumerate(zip(model.W, model.Q, strict=True)):
        L = np.linalg.cholesky(Q)
        white = (x[:, 1:] - past @ W.T) @ np.linalg.inv(L).T
        out[:, 1:, k] = -0.5 * (white**2).sum(-1) - np.log(np.diag(L)).sum()
    return out - 0.5 * x.shape[-1] * np.log(2 * np.pi) * (np.arange(x.shape[1]) > 0)[None, :, None]


def exam(seed: int) -> dict[str, float]:
    """The four scores of one drawn mouse."""
    data = mouse(seed=seed)
    K, scores = len(data.action_names), pca(data.y)
    segmentations = {
        "pca_kmeans": kmeans(scores, K),
        "pca_gaussian_hmm": gaussian_hmm(scores, K),
        "pca_ar_hmm": ar_hmm(scores, K),
        "pose_ar_hmm": ar_hmm(data.poses.astype(np.float64), K),
    }
    return {name: round(adjusted_rand_score(data.labels.ravel(), z.ravel()), 3) for name, z in segmentations.items()}


if __name__ == "__main__":
    for seed in map(int, sys.argv[1:] or ["0", "1", "2"]):
        print(json.dumps({"seed": seed} | exam(seed)), flush=True)
