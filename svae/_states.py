"""States of warm latents: a hidden Markov model of conditional Gaussians, by EM in numpy, with a target duration.

Likelihood alone splits a fast action by its phase, because no latent space makes every action exactly linear. What
people know is how long an action lasts. So the cost of a switch, in nats, is solved for while EM runs: it settles where
bouts last as long as they should. A sticky Dirichlet then carries that cost into the latent model.
"""

from typing import NamedTuple

import numpy as np

SWEEPS = 40
STARTS = 4
FEATURE_WINDOW = 9  # frames, where no duration is asked for
WINDOW_SHARE = 0.45  # of the duration of a bout: long enough to span a phase, short enough to meet one action
FEATURES = 12
UNUSED = 0.1  # of the largest sd: a latent that varies less is empty, and at unit variance it would be noise
FARTHEST = 3.0  # sd from the mean at which what lies beyond is seen: a glitch must not get a state of its own
GAIN = 2.0  # nats of switch cost for an e-fold of duration, at each sweep
MOST_COST = 60.0
LONGEST = 500  # frames of a piece
FLOOR = 0.01  # variance, in latents of unit variance, that a state keeps for sure


class States(NamedTuple):
    weights: list[np.ndarray]  # E z of each sequence (T_i, K)
    log_likelihood: float
    switch_cost: float  # nats
    switches: float  # expected number


class _Frames(NamedTuple):
    x: np.ndarray  # (B, T, D), padded
    u: np.ndarray  # (B, T, U) regressors
    real: np.ndarray  # (B, T) frames
    counted: np.ndarray  # (B, T) frames whose regressors exist


def find_states(
    latents: list[np.ndarray], K: int, *, dynamic: bool, duration: float | None, seed: int, starts: int = STARTS
) -> States:
    """The likeliest of several starts; `dynamic` regresses each frame on the one before, else on nothing."""
    rng, ends = np.random.default_rng(seed), np.cumsum([len(x) for x in latents])[:-1]
    bounded = np.split(_bounded(_used(np.concatenate(latents))), ends)
    frames = _frames([piece for x in bounded for piece in _pieces(x)], dynamic)
    features = action_features(bounded, _window(duration)) if dynamic else np.concatenate(bounded)
    found = [_expectation_maximisation(frames, kmeans(features, K, rng), K, duration) for _ in range(starts)]
    best = max(found, key=lambda states: states.log_likelihood)
    weights = np.concatenate(best.weights)[frames.real.reshape(-1)]
    return best._replace(weights=np.split(weights, ends))


def _used(x: np.ndarray) -> np.ndarray:
    """The columns of latents (N, D) that hold something: of fewer channels than D, PCA leaves the rest empty."""
    sd = x.std(0)
    return x[:, sd >= UNUSED * sd.max()]


def _window(duration: float | None) -> int:
    """An odd number of frames."""
    return FEATURE_WINDOW if duration is None else max(3, int(WINDOW_SHARE * duration) // 2 * 2 + 1)


def _pieces(x: np.ndarray) -> list[np.ndarray]:
    """A sequence in pieces that run side by side: messages go from frame to frame in Python."""
    return [x[first : first + LONGEST] for first in range(0, len(x), LONGEST)]


def _frames(latents, dynamic) -> _Frames:
    T, D = max(map(len, latents)), latents[0].shape[1]
    x, real = np.zeros((len(latents), T, D)), np.zeros((len(latents), T), bool)
    for row, mask, sequence in zip(x, real, latents, strict=True):
        row[: len(sequence)], mask[: len(sequence)] = sequence, True
    ones = np.ones((*x.shape[:2], 1))
    if not dynamic:
        return _Frames(x, ones, real, real)
    previous = np.concatenate([np.zeros_like(x[:, :1]), x[:, :-1]], 1)
    return _Frames(x, np.concatenate([previous, ones], -1), real, real & (np.arange(T) > 0)[None])


def _expectation_maximisation(frames: _Frames, labels: np.ndarray, K: int, duration: float | None) -> States:
    weights = np.zeros((*frames.real.shape, K))
    weights[frames.real] = np.eye(K)[labels]
    cost = 5.0
    for _ in range(SWEEPS):
        node = np.zeros_like(weights)
        node[frames.counted] = _log_prob(frames.u[frames.counted], frames.x[frames.counted], weights[frames.counted])
        weights, switches, log_likelihood = _forward_backward(node, frames.real, cost)
        if duration is not None:
            lasted = frames.real.sum() / (switches + len(frames.x))
            cost = float(np.clip(cost + GAIN * np.log(duration / lasted), 0.0, MOST_COST))
    return States(list(weights), log_likelihood, cost, switches)


def _log_prob(u: np.ndarray, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """log N(x; M_k u, S_k) (N, K) of conditionals fitted with the weights (N, K), shrunk to a random walk."""
    D, U = x.shape[1], u.shape[1]
    toward = np.eye(U, D) if U > 1 else np.zeros((1, D))
    scores = np.empty(weights.shape)
    for k, w in enumerate(weights.T):
        uw = u.T * w
        r = x - u @ np.linalg.solve(uw @ u + np.eye(U), uw @ x + toward)
        S = (FLOOR * (D + 2) * np.eye(D) + (r.T * w) @ r) / (w.sum() + D + 2)
        L = np.linalg.cholesky(S)
        scores[:, k] = -(np.linalg.solve(L, r.T) ** 2).sum(0) / 2 - np.log(np.diag(L)).sum()
    return scores


def _forward_backward(node: np.ndarray, real: np.ndarray, cost: float) -> tuple[np.ndarray, float, float]:
    """Marginals (B, T, K), expected switches and log Z of chains that pay `cost` nats for a switch."""
    B, T, K = node.shape
    switch = np.exp(-cost) / max(K - 1, 1)
    forward, total = np.empty_like(node), np.zeros(B)
    for t in range(T):
        before = np.full((B, K), 1 / K) if t == 0 else _mixed(forward[:, t - 1], switch)
        log_scores = np.log(before + 1e-300) + node[:, t]
        top = log_scores.max(-1, keepdims=True)
        scores = np.exp(log_scores - top)
        forward[:, t] = np.where(real[:, t, None], scores / scores.sum(-1, keepdims=True), before)
        total += np.where(real[:, t], top[:, 0] + np.log(scores.sum(-1)), 0)
    weights, switches = forward.copy(), 0.0
    for t in range(T - 2, -1, -1):
        ratio = weights[:, t + 1] / (_mixed(forward[:, t], switch) + 1e-300)
        stay = forward[:, t] * ratio
        leave = forward[:, t] * switch * (ratio.sum(-1, keepdims=True) - ratio)
        weights[:, t] = np.where(real[:, t + 1, None], stay + leave, forward[:, t])
        switches += float(np.sum(leave[real[:, t + 1]]))
    return weights * real[..., None], switches, float(total.sum())


def _mixed(p: np.ndarray, switch: float) -> np.ndarray:
    """p times the transition weights: 1 to stay, `switch` to go anywhere else."""
    return p + switch * (p.sum(-1, keepdims=True) - p)


def action_features(latents: list[np.ndarray], window: int = FEATURE_WINDOW) -> np.ndarray:
    """Position, log speed and turning of all sequences, averaged over a window: an action, whatever its phase.

    Each of the three weighs the same, however many columns it has: of D dimensions there are D² / 2 turnings.
    """
    moved = [_motion(np.asarray(x, float), window) for x in latents]
    centred = np.concatenate([_weighed(np.concatenate(kind)) for kind in zip(*moved, strict=True)], 1)
    if centred.shape[1] <= FEATURES:
        return centred
    _, _, Vt = np.linalg.svd(centred[:: max(1, len(centred) // 5000)], full_matrices=False)
    return centred @ Vt[:FEATURES].T


def _weighed(columns: np.ndarray) -> np.ndarray:
    """Columns (N, n) of about unit variance together."""
    return _bounded(columns) / np.sqrt(max(1, columns.shape[1]))


def _bounded(columns: np.ndarray) -> np.ndarray:
    """Columns (N, n) at mean 0 and unit variance, then bounded."""
    return np.clip((columns - columns.mean(0)) / (columns.std(0) + 1e-9), -FARTHEST, FARTHEST)


def _motion(x: np.ndarray, window: int) -> tuple[np.ndarray, ...]:
    v = np.gradient(x, axis=0) if len(x) > 1 else np.zeros_like(x)
    i, j = np.triu_indices(x.shape[1], 1)
    turning = x[:, i] * v[:, j] - x[:, j] * v[:, i]
    return smooth(x, window), np.log(smooth(v**2, window) + 1e-3), smooth(turning, window)


def smooth(x: np.ndarray, window: int = FEATURE_WINDOW) -> np.ndarray:
    """Moving average of (T, N) over an odd number of frames, shorter at the ends."""
    kernel = np.hanning(window + 2)[1:-1]
    padded = np.pad(np.c_[np.ones(len(x)), x], ((window // 2, window // 2), (0, 0)))
    sums = sum(w * padded[i : i + len(x)] for i, w in enumerate(kernel))
    return sums[:, 1:] / sums[:, :1]


def kmeans(x: np.ndarray, K: int, rng: np.random.Generator, *, sweeps: int = 30) -> np.ndarray:
    """Labels (N,) by Lloyd's algorithm from a k-means++ start."""
    centres = x[rng.integers(len(x))][None]
    for _ in range(min(K, len(x)) - 1):
        nearest = np.min(_distances(x, centres), 1)
        total = nearest.sum()
        chosen = rng.choice(len(x), p=nearest / total) if total > 0 else rng.integers(len(x))
        centres = np.concatenate([centres, x[chosen][None]])
    for _ in range(sweeps):
        labels = np.argmin(_distances(x, centres), 1)
        centres = np.stack([x[labels == k].mean(0) if np.any(labels == k) else c for k, c in enumerate(centres)])
    return labels


def _distances(x: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return np.maximum((x**2).sum(1)[:, None] - 2 * x @ centres.T + (centres**2).sum(1)[None], 0)
