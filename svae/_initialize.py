"""Where a fit begins: networks at PCA, then q(theta) from states found on warm latents. It decides if an SLDS works."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from svae import expfam
from svae._actions import kmeans
from svae._model import SVAE
from svae._states import States, find_states
from svae.expfam import Gaussian
from svae.nets import START_SD, with_linear_map, with_noise, with_precision

SWEEPS = 25  # of mean field on the warm latents
PINNED = 1e4  # precision that holds x at a warm latent


LEAST_NOISE = (0.03, 0.1)  # of the sd of the data: where nothing is left to noise, and elsewhere


class PCA(NamedTuple):
    W: np.ndarray  # (P, D): y = W x + b with x of unit variance
    b: np.ndarray  # (P,)
    sd: np.ndarray  # (P,) of what is left over
    spread: float  # root mean square sd of the columns that vary


def pca(frames: np.ndarray, D: int) -> PCA:
    """Principal components of frames (N, P), missing entries at their mean; columns beyond the rank are zero."""
    seen = np.isfinite(frames)
    b = np.where(seen, frames, 0).sum(0) / np.maximum(seen.sum(0), 1)  # 0 for a column that is never seen
    centred = np.where(seen, frames - b, 0)
    _, s, Vt = np.linalg.svd(centred, full_matrices=False)
    rank = min(D, len(s))
    W = np.zeros((frames.shape[1], D))
    W[:, :rank] = Vt[:rank].T * s[:rank] / np.sqrt(len(frames))
    left = np.where(seen, centred - centred @ Vt[:rank].T @ Vt[:rank], 0)
    return PCA(W, b, _sd(left, seen), _rms(_sd(centred, seen)) or 1.0)  # 1: nothing varies


def _sd(away: np.ndarray, seen: np.ndarray) -> np.ndarray:
    return np.sqrt((away**2).sum(0) / np.maximum(seen.sum(0), 1))


def _rms(sd: np.ndarray) -> float:
    """The root of the mean square of those that are not zero."""
    return float(np.sqrt(np.mean(sd[sd > 0] ** 2))) if np.any(sd > 0) else 0.0


def at_pca(model: SVAE, frames: np.ndarray) -> SVAE:
    """The networks with their linear maps set to PCA of frames (N, *event); others are left as they are."""
    if model.recognize.linear is None or model.config.likelihood in ("bernoulli", "poisson"):
        return model
    found = pca(frames.reshape(len(frames), -1), model.config.latent_dim)
    W, b, sd = (jnp.asarray(a, jnp.result_type(float)) for a in (found.W, found.b, _noise(model, found)))
    # as sure of x as the observation network is at its start
    recognize = with_precision(with_linear_map(model.recognize, W, b), (W / sd[:, None] ** 2).T @ W)
    observe = with_noise(with_linear_map(model.observe, W, b), sd.reshape(model.shape))
    return eqx.tree_at(lambda m: (m.recognize, m.observe), model, (recognize, observe))


def _noise(model: SVAE, found: PCA) -> np.ndarray:
    """sd (P,) of the observations at the start: for a chain of states, what PCA leaves over.

    Its states differ in how x moves, and a vague x moves as all of them at once: mean field then begins with one state.
    """
    states = model.config.model in ("hmm", "slds") and model.config.variance == "learned"
    return np.maximum(found.sd, _least_noise(found)) if states else np.full(len(found.sd), START_SD)


def _least_noise(found: PCA) -> float:
    """What is left of the entries on average, between two shares of how far they move.

    Points of a body share one unit, and move by a fifth of it: a share of the unit would hide them.
    """
    return float(np.clip(_rms(found.sd), *(share * found.spread for share in LEAST_NOISE)))


def at_latents(model: SVAE, latents: list[np.ndarray], *, seed: int) -> SVAE:
    """The model with q(theta) from warm latents (T_i, D), and with the stickiness that the target duration asks for."""
    K = _number_of_states(model)
    if model.config.model not in ("hmm", "slds") or K == 1:
        return eqx.tree_at(lambda m: m.q, model, mixture_q(model, latents, K, seed=seed), is_leaf=_is_empty)
    dynamic, duration = model.config.model == "slds", model.config.target_duration
    found = find_states(latents, K, dynamic=dynamic, duration=duration, seed=seed)
    pgm = model.pgm if duration is None else with_stickiness(model.pgm, stickiness(found, K))
    return eqx.tree_at(lambda m: (m.pgm, m.q), model, (pgm, pgm.initialize(latents, found.weights)))


def stickiness(found: States, K: int) -> float:
    """Counts on the diagonal that make a switch cost what it should: log(counts / switches out of a state) nats."""
    return float(np.exp(found.switch_cost) * max(found.switches, 1.0) / K)


def with_stickiness(pgm, counts: float):
    """The same latent model with `counts` more on the diagonal of its transition prior than a uniform row has."""
    prior = pgm.prior.transitions.counts
    K = len(prior)
    rows = expfam.Dirichlet(jnp.asarray(prior - jnp.diag(jnp.diag(prior)) + (prior[0, -1] + counts) * jnp.eye(K)))
    return eqx.tree_at(lambda m: m.prior.transitions, pgm, rows)


def mixture_q(model: SVAE, latents: list[np.ndarray], K: int, *, seed: int) -> Any:
    """q(theta) of a model whose frames are independent: k-means, then mean field with x held at the latents."""
    labels = kmeans(np.concatenate(latents).astype(float), K, np.random.default_rng(seed))
    q = model.pgm.initialize(latents, one_hot(labels, K, latents))
    if K == 1:
        return q
    x, mask = padded(latents)
    for _ in range(SWEEPS):
        found = np.asarray(_pinned_states(model.pgm, q, x, mask))
        q = model.pgm.initialize(latents, [w[: len(z)] for w, z in zip(found, latents, strict=True)])
    return q


def _is_empty(node: Any) -> bool:
    return isinstance(node, tuple) and len(node) == 0


def _number_of_states(model: SVAE) -> int:
    dirichlets = [f for f in jax.tree.leaves(model.pgm.prior, is_leaf=_is_dirichlet) if _is_dirichlet(f)]
    return dirichlets[0].counts.shape[-1] if dirichlets else 1


def _is_dirichlet(node: Any) -> bool:
    return isinstance(node, expfam.Dirichlet)


@eqx.filter_jit
def _pinned_states(pgm, q, x, mask):
    """E z of every sequence (B, T, K) with the latents all but known."""
    D = x.shape[-1]
    J = jnp.broadcast_to(PINNED * jnp.eye(D, dtype=x.dtype), (*x.shape, D)) * mask[..., None, None]
    potentials = Gaussian(J, PINNED * x * mask[..., None])
    return jax.vmap(pgm.infer, (None, 0, 0))(expfam.moments(q), potentials, mask).states


def padded(latents: list[np.ndarray]) -> tuple[Array, Array]:
    """Sequences (T_i, D) as one array (B, T, D) and its mask."""
    T = max(map(len, latents))
    x = np.zeros((len(latents), T, latents[0].shape[1]))
    for row, sequence in zip(x, latents, strict=True):
        row[: len(sequence)] = sequence
    mask = np.arange(T)[None] < np.array([len(z) for z in latents])[:, None]
    return jnp.asarray(x, jnp.result_type(float)), jnp.asarray(mask)


def one_hot(labels: np.ndarray, K: int, latents: list) -> list[np.ndarray]:
    ends = np.cumsum([len(x) for x in latents])[:-1]
    return np.split(np.eye(K)[labels], ends)
