"""Latent models of principal scores, with their parameters at the mean of q(theta)."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from svae.baselines._filter import log_prob as filtered
from svae.baselines._filter import predicted, smoothed, switching
from svae.baselines._frames import Stretches
from svae.expfam import NIW, Dirichlet, LinearGaussian, map_families
from svae.fitting.initialize import stickiness, with_stickiness
from svae.pgm import Dynamics, Graph, graph
from svae.starting import find_states

TOGETHER = 16  # stretches in a batch
FILLINGS = 3  # rounds in which missing entries are filled in by dynamics that are then fitted again


def fit(pgm: Graph, x: list[np.ndarray], duration: float, seed: int) -> Any:
    """The mean parameters of a latent model of scores; the same whatever network or seed is compared."""
    weights = [np.ones((len(part), 1)) for part in x]
    if pgm.chained:
        found = find_states(x, pgm.states, dynamic=pgm.dynamic, duration=duration, seed=seed, starts=1)
        pgm = with_stickiness(pgm, stickiness(found))
        weights = found.weights
    return map_families(_mean, pgm.initialize(x, weights))


def filled_in(train: Stretches) -> list[np.ndarray]:
    """Scores to fit to: those of frames with gaps are what a VAR(1) makes of all frames around them."""
    x = train.x
    pgm = graph(x=Dynamics(x[0].shape[1]))
    for _ in range(FILLINGS if train.seen else 0):
        model = switching(fit(pgm, x, 0.0, 0))
        paths = [smoothed(model, seen) for seen in train.seen]
        x = [paths[i][a:b] for i, a, b in train.kept]
    return x


def _mean(q: Any) -> Any:
    """E pi, E W and the covariance whose inverse is E Sigma^-1, as `log_prob` takes them."""
    if isinstance(q, Dirichlet):
        counts = np.asarray(q.counts, float)
        return jnp.asarray(np.log(counts / counts.sum(-1, keepdims=True)), q.counts.dtype)
    W = q.m[..., None] if isinstance(q, NIW) else q.M
    root = np.linalg.cholesky(np.asarray(q.S, float) / np.asarray(q.nu, float)[..., None, None])
    return LinearGaussian(W, jnp.asarray(root, W.dtype))


def log_prob(theta: Any, held: Stretches) -> np.ndarray:
    """log p(z_t | z_1 .. z_{t-1}) of every frame (N,) in model units."""
    model = switching(theta)
    if held.seen:
        return np.concatenate([filtered(model, seen) for seen in held.seen])
    L, found = max(map(len, held.x)), []
    for first in range(0, len(held.x), TOGETHER):
        x, mask = _padded(held.x[first : first + TOGETHER], L)
        found.append(predicted(model, x)[mask])
    return np.concatenate(found) + np.concatenate(held.rest)


def _padded(part: list[np.ndarray], L: int) -> tuple[np.ndarray, np.ndarray]:
    """Sequences (B, L, D) and their mask (B, L)."""
    x, mask = np.zeros((len(part), L, part[0].shape[1])), np.zeros((len(part), L), bool)
    for row, real, sequence in zip(x, mask, part, strict=True):
        row[: len(sequence)], real[: len(sequence)] = sequence, True
    return x, mask
