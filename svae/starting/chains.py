"""Messages of Markov chains that pay for every switch: many runs side by side, frame by frame in numpy."""

from typing import NamedTuple

import numpy as np


class Chains(NamedTuple):
    """What R runs say of the same sequences."""

    weights: np.ndarray  # (B, T, R, K) E z; 0 at padding
    switches: np.ndarray  # (R,) expected number
    log_z: np.ndarray  # (R,)


def forward_backward(node: np.ndarray, real: np.ndarray, cost: np.ndarray) -> Chains:
    """Chains with node potentials (B, T, R, K) that pay `cost` (R,) nats for a switch; `real` (B, T) marks frames."""
    B, T, R, K = node.shape
    switch = (np.exp(-cost) / max(K - 1, 1))[:, None]
    forward, total = np.empty_like(node), np.zeros(R)
    for t in range(T):
        before = np.full((B, R, K), 1 / K) if t == 0 else _mixed(forward[:, t - 1], switch)
        log_scores = np.log(before + 1e-300) + node[:, t]
        top = log_scores.max(-1, keepdims=True)
        scores = np.exp(log_scores - top)
        sums, here = scores.sum(-1, keepdims=True), real[:, t, None, None]
        forward[:, t] = np.where(here, scores / sums, before)
        total += np.where(here, top + np.log(sums), 0).sum((0, 2))
    weights, switches = forward.copy(), np.zeros(R)
    for t in range(T - 2, -1, -1):
        here = real[:, t + 1, None, None]
        ratio = weights[:, t + 1] / (_mixed(forward[:, t], switch) + 1e-300)
        leave = forward[:, t] * switch * (ratio.sum(-1, keepdims=True) - ratio)
        weights[:, t] = np.where(here, forward[:, t] * ratio + leave, forward[:, t])
        switches += np.where(here, leave, 0).sum((0, 2))
    return Chains(weights * real[:, :, None, None], switches, total)


def _mixed(p: np.ndarray, switch: np.ndarray) -> np.ndarray:
    """p (B, R, K) times the transition weights: 1 to stay, `switch` (R, 1) to go anywhere else."""
    return p + switch * (p.sum(-1, keepdims=True) - p)
