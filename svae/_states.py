"""States of warm latents: a hidden Markov model of conditional Gaussians, by EM in numpy, with a target duration.

Likelihood alone splits a fast action by its phase, because no latent space makes every action exactly linear. What
people know is how long an action lasts. So the cost of a switch, in nats, is solved for while EM runs: it settles where
bouts last as long as they should. A sticky Dirichlet then carries that cost into the latent model.
"""

from typing import NamedTuple

import numpy as np

from svae import _conditionals
from svae._actions import action_features, bounded, kmeans, window_frames

STARTS = 4
MORE = 2  # times as many states as asked for at a start; those that move most alike are merged
MERGERS = 16  # rounds of them at most, about: one pair in each where few states are asked for
FIRST, EACH, LAST = 8, 2, 20  # sweeps of EM with all of them, after each round, and in the end
UNUSED = 0.1  # of the largest sd: a latent that varies less is empty, and at unit variance it would be noise
GAIN = 2.0  # nats of switch cost for an e-fold of duration, at each sweep
MOST_COST = 60.0
LOW_COST = 5.0  # nats at a start that may switch often, and where no duration is asked for
HALVINGS = 6  # of the range of costs, for the first sweep
LONGEST = 500  # frames of a piece


class States(NamedTuple):
    weights: list[np.ndarray]  # E z of each sequence (T_i, K)
    log_likelihood: float
    switch_cost: float  # nats
    switches: float  # expected number


class _Swept(NamedTuple):
    """As States, while EM runs."""

    weights: np.ndarray  # (B, T, K)
    log_likelihood: float
    switch_cost: float
    switches: float


class _Frames(NamedTuple):
    pairs: np.ndarray  # (B, T, U + D) regressors and x, padded
    real: np.ndarray  # (B, T) frames
    counted: np.ndarray  # (B, T) frames whose regressors exist
    D: int


def find_states(
    latents: list[np.ndarray], K: int, *, dynamic: bool, duration: float | None, seed: int, starts: int = STARTS
) -> States:
    """The likeliest of several starts; `dynamic` regresses each frame on the one before, else on nothing.

    Every other start pays from its first sweep for a switch what the duration asks for. Where actions have phases the
    rest part them by phase; where bouts differ much in length these lose the short ones.
    """
    rng, ends = np.random.default_rng(seed), np.cumsum([len(x) for x in latents])[:-1]
    seen = np.split(bounded(_used(np.concatenate(latents))), ends)
    frames = _frames(seen, dynamic)
    features = action_features(seen, window_frames(duration)) if dynamic else np.concatenate(seen)
    found = [_from_start(frames, kmeans(features, MORE * K, rng), K, duration, i % 2 == 0) for i in range(starts)]
    best = max(found, key=lambda swept: swept.log_likelihood)
    return States(np.split(best.weights[frames.real], ends), *best[1:])


def _used(x: np.ndarray) -> np.ndarray:
    """The columns of latents (N, D) that hold something: of fewer channels than D, PCA leaves the rest empty."""
    sd = x.std(0)
    return x[:, sd >= UNUSED * sd.max()]


def _pieces(x: np.ndarray) -> list[np.ndarray]:
    """A sequence in pieces that run side by side: messages go from frame to frame in Python."""
    return [x[first : first + LONGEST] for first in range(0, len(x), LONGEST)]


def _frames(latents: list[np.ndarray], dynamic: bool) -> _Frames:
    pieces = [piece for x in latents for piece in _pieces(x)]
    T, D = max(map(len, pieces)), pieces[0].shape[1]
    x, real = np.zeros((len(pieces), T, D)), np.zeros((len(pieces), T), bool)
    for row, mask, piece in zip(x, real, pieces, strict=True):
        row[: len(piece)], mask[: len(piece)] = piece, True
    ones = np.ones((*x.shape[:2], 1))
    if not dynamic:
        return _Frames(np.concatenate([ones, x], -1), real, real, D)
    before = np.concatenate([np.zeros_like(x[:, :1]), x[:, :-1]], 1)
    counted = real & (np.arange(T) > 0)[None]
    return _Frames(np.concatenate([before, ones, x], -1), real, counted, D)


def _from_start(frames: _Frames, labels: np.ndarray, K: int, duration: float | None, free: bool) -> _Swept:
    """EM from labels of more than K states, which are merged until K are left; `free` begins with a low cost."""
    many = np.zeros((*frames.real.shape, MORE * K))
    many[frames.real] = np.eye(MORE * K)[labels]
    cost = LOW_COST if free or duration is None else _first_cost(frames, many, duration)
    found = _sweeps(frames, many, cost, duration, FIRST)
    while found.weights.shape[-1] > K:
        found = _sweeps(frames, _merged(frames, found.weights, K), found.switch_cost, duration, EACH)
    return _sweeps(frames, found.weights, found.switch_cost, duration, LAST)


def _merged(frames: _Frames, weights: np.ndarray, K: int) -> np.ndarray:
    """Weights (B, T, fewer): some pairs of states, those that lose least likelihood by it, become one each."""
    here, number = frames.counted, min(weights.shape[-1] - K, -(-K // MERGERS))
    pairs = _conditionals.most_alike(frames.pairs[here], weights[here], frames.D, number)
    i, j = np.array(pairs).T
    return np.concatenate([np.delete(weights, [*i, *j], -1), weights[..., i] + weights[..., j]], -1)


def _sweeps(frames: _Frames, weights: np.ndarray, cost: float, duration: float | None, number: int) -> _Swept:
    """EM, and after each sweep the cost moves towards what the duration asks for."""
    for _ in range(number):
        weights, switches, log_likelihood = _forward_backward(_node(frames, weights), frames.real, cost)
        if duration is not None:
            away = np.log(duration / _lasted(frames, switches))
            cost = float(np.clip(cost + GAIN * away, 0.0, MOST_COST))
    return _Swept(weights, log_likelihood, cost, switches)


def _node(frames: _Frames, weights: np.ndarray) -> np.ndarray:
    """log p (B, T, K) of every frame under the states that were fitted with these weights."""
    node, here = np.zeros_like(weights), frames.counted
    node[here] = _conditionals.log_prob(frames.pairs[here], weights[here], frames.D)
    return node


def _lasted(frames: _Frames, switches: float) -> float:
    """Mean frames of a bout."""
    return frames.real.sum() / (switches + len(frames.real))


def _first_cost(frames: _Frames, weights: np.ndarray, duration: float) -> float:
    """The cost that the first sweep needs: while bouts are too short, states part by phase."""
    node, low, high = _node(frames, weights), 0.0, MOST_COST
    for _ in range(HALVINGS):
        cost = (low + high) / 2
        short = _lasted(frames, _forward_backward(node, frames.real, cost)[1]) < duration
        low, high = (cost, high) if short else (low, cost)
    return (low + high) / 2


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
