"""Latent models of principal scores, with their parameters at the mean of q(theta)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from svae.baselines._filter import log_prob as filtered
from svae.baselines._filter import smoothed, switching
from svae.baselines._frames import Stretches
from svae.expfam import NIW, Dirichlet, LinearGaussian, map_families
from svae.fitting.initialize import stickiness, with_stickiness
from svae.pgm import Dynamics, Graph, graph
from svae.starting import find_states

TOGETHER = 16  # stretches in a batch
FILLINGS = 3  # rounds in which missing entries are filled in by dynamics that are then fitted again


def fit(pgm: Graph, x: list[np.ndarray], duration: float, seed: int) -> tuple[Graph, Any]:
    """A latent model of scores, and its parameters at their mean; the same whatever network or seed is compared."""
    weights = [np.ones((len(part), 1)) for part in x]
    if pgm.chained:
        found = find_states(x, pgm.states, dynamic=pgm.dynamic, duration=duration, seed=seed, starts=1)
        pgm = with_stickiness(pgm, stickiness(found))
        weights = found.weights
    return pgm, map_families(_mean, pgm.initialize(x, weights))


def filled_in(train: Stretches) -> list[np.ndarray]:
    """Scores to fit to: those of frames with gaps are what a VAR(1) makes of all frames around them."""
    x = train.x
    pgm = graph(x=Dynamics(x[0].shape[1]))
    for _ in range(FILLINGS if train.seen else 0):
        _, theta = fit(pgm, x, 0.0, 0)
        paths = [smoothed(switching(theta), seen) for seen in train.seen]
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


def log_prob(pgm: Graph, theta: Any, held: Stretches) -> np.ndarray:
    """log p(z_t | z_1 .. z_{t-1}) of every frame (N,) in model units."""
    if held.seen:
        return np.concatenate([filtered(switching(theta), seen) for seen in held.seen])
    L, found = max(map(len, held.x)), []
    for part in (held.x[i : i + TOGETHER] for i in range(0, len(held.x), TOGETHER)):
        x, mask = _padded(part, min(TOGETHER, len(held.x)), L)
        value = np.asarray(_log_prob(pgm, theta, jnp.asarray(x, jnp.result_type(float)), jnp.asarray(mask)))
        found.append(value[mask])
    return np.concatenate(found) + np.concatenate(held.rest)


def _padded(part: list[np.ndarray], size: int, L: int) -> tuple[np.ndarray, np.ndarray]:
    """Sequences (B, L, D) and their mask (B, L); rows beyond them are padding. One shape, one program."""
    x, mask = np.zeros((size, L, part[0].shape[1])), np.zeros((size, L), bool)
    for row, real, sequence in zip(x, mask, part, strict=False):
        row[: len(sequence)], real[: len(sequence)] = sequence, True
    return x, mask


@eqx.filter_jit
def _log_prob(pgm, theta, x, mask):
    return jax.vmap(pgm.log_prob, (None, 0, 0))(theta, x, mask)
