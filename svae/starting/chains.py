"""Messages of Markov chains that pay for every switch: many runs side by side, frame by frame in numpy."""

from typing import NamedTuple

import numpy as np


class Chains(NamedTuple):
    """What R runs say of the same sequences."""

    weights: np.ndarray  # (B, T, R, K) E z; 0 at padding
    switches: np.ndarray  # (R,) expected number
    log_z: np.ndarray  # (R,)


def forward_backward(node: np.ndarray, real: np.ndarray, cost: np.ndarray) -> Chains:
    """Chains with node potentials (B, T, R, K) that pay `cost` (R,) nats for a switch; `real` (B, T) marks frames.

    Transition weights are 1 to stay and `switch` to go anywhere else. Padding is at the end of a sequence, where frames
    that say nothing change nothing. The loops over frames have few operations: each costs more than its numbers.
    """
    K, frames = node.shape[-1], real.T[:, :, None]
    switch = (np.exp(-cost) / max(K - 1, 1))[:, None]
    stay = 1 - switch
    node = np.moveaxis(node, 1, 0)  # frames first
    top = node.max(-1)
    evidence = np.ascontiguousarray(np.where(frames[..., None], np.exp(node - top[..., None]), 1.0))
    forward, sums = np.empty_like(evidence), np.empty((*top.shape, 1))
    before = np.full(evidence.shape[1:], 1 / K)
    for now, said, total in zip(forward, evidence, sums, strict=True):
        np.multiply(before, said, out=now)
        np.add.reduce(now, -1, keepdims=True, out=total)
        now /= total
        before = now * stay
        before += switch
    evidence /= sums
    log_z = np.where(frames, top + np.log(sums[..., 0]), 0).sum((0, 1))
    backward, later = np.ones(evidence.shape[1:]), evidence[1:]  # `later` becomes evidence times backward message
    for said, total in zip(later[::-1], sums[:0:-1], strict=True):
        said *= backward
        np.add.reduce(said, -1, keepdims=True, out=total)
        np.multiply(said, stay, out=backward)
        backward += switch * total
    total, here = sums[1:], forward[:-1]
    leave = (switch * (total - np.sum(here * later, -1, keepdims=True)))[..., 0]
    here *= later * stay + switch * total
    forward *= frames[..., None]
    return Chains(np.moveaxis(forward, 0, 1), np.where(frames[1:], leave, 0).sum((0, 1)), log_z)
