"""Where a fit begins: networks at PCA, then q(theta) from states found on warm latents. It decides whether an SLDS works."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from svae import expfam
from svae._model import SVAE
from svae.expfam import Gaussian
from svae.nets import with_linear_map, with_precision

SWEEPS = 25  # of mean field on the warm latents
PINNED = 1e4  # precision that holds x at a warm latent
FEATURE_WINDOW = 7  # frames, about a quarter of a second of video


class PCA(NamedTuple):
    W: np.ndarray  # (P, D): y = W x + b with x of unit variance
    b: np.ndarray  # (P,)
    noise_sd: np.ndarray  # (P,) of what W x + b leaves


def pca(frames: np.ndarray, D: int) -> PCA:
    """Principal components of frames (N, P), missing entries at their mean; columns beyond the rank are zero."""
    b = np.nanmean(frames, 0)
    centred = np.where(np.isfinite(frames), frames - b, 0)
    _, s, Vt = np.linalg.svd(centred, full_matrices=False)
    rank = min(D, len(s))
    W = np.zeros((frames.shape[1], D))
    W[:, :rank] = Vt[:rank].T * s[:rank] / np.sqrt(len(frames))
    left = centred - (centred @ Vt[:rank].T) @ Vt[:rank]
    return PCA(W, b, np.sqrt(np.mean(left**2, 0)))


def at_pca(model: SVAE, frames: np.ndarray) -> SVAE:
    """The networks with their linear maps set to PCA of frames (N, *event); others are left as they are."""
    if model.recognize.linear is None or model.config.likelihood in ("bernoulli", "poisson"):
        return model
    found = pca(frames.reshape(len(frames), -1), model.config.latent_dim)
    W, b = (jnp.asarray(a, jnp.result_type(float)) for a in (found.W, found.b))
    sd = np.sqrt(np.mean(found.noise_sd**2) + 1e-4)
    recognize = with_precision(with_linear_map(model.recognize, W, b), W.T @ W / sd**2)
    return eqx.tree_at(lambda m: (m.recognize, m.observe), model, (recognize, with_linear_map(model.observe, W, b)))


def warm_q(model: SVAE, latents: list[np.ndarray], *, seed: int) -> Any:
    """q(theta) for warm latents (T_i, D): states by k-means, then mean field with x held at the latents."""
    K = _number_of_states(model)
    rng = np.random.default_rng(seed)
    states = one_hot(initial_labels(latents, K, rng), K, latents)
    q = model.pgm.initialize(latents, states)
    if K == 1:
        return q
    sweep = eqx.filter_jit(lambda q, x, mask: _pinned_states(model.pgm, q, x, mask))
    x, mask = padded(latents)
    for _ in range(SWEEPS):
        found = np.asarray(sweep(q, x, mask))
        q = model.pgm.initialize(latents, [w[: len(z)] for w, z in zip(found, latents, strict=True)])
    return q


def _number_of_states(model: SVAE) -> int:
    dirichlets = [f for f in jax.tree.leaves(model.pgm.prior, is_leaf=_is_dirichlet) if _is_dirichlet(f)]
    return dirichlets[0].counts.shape[-1] if dirichlets else 1


def _is_dirichlet(node: Any) -> bool:
    return isinstance(node, expfam.Dirichlet)


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


def initial_labels(latents: list[np.ndarray], K: int, rng: np.random.Generator) -> np.ndarray:
    """k-means on how the latents move in a short window; of independent points, on the points themselves."""
    features = np.concatenate([motion_features(np.asarray(x, float)) for x in latents])
    features = features / (features.std(0) + 1e-9)
    centred = features - features.mean(0)
    if centred.shape[1] > 12:
        _, _, Vt = np.linalg.svd(centred[:: max(1, len(centred) // 5000)], full_matrices=False)
        centred = centred @ Vt[:12].T
    return kmeans(centred, K, rng)


def motion_features(x: np.ndarray) -> np.ndarray:
    """Position, speed and turning of a sequence (T, D), averaged over a window: an action, whatever its phase."""
    if len(x) < 3:
        return np.c_[x, np.zeros((len(x), x.shape[1] * x.shape[1]))]
    v = np.gradient(x, axis=0)
    i, j = np.triu_indices(x.shape[1], 1)
    turning = x[:, i] * v[:, j] - x[:, j] * v[:, i]
    return np.c_[smooth(x), smooth(np.log(smooth(v**2) + 1e-3)), smooth(turning)]


def smooth(x: np.ndarray) -> np.ndarray:
    """Moving average over FEATURE_WINDOW frames, shorter at the ends."""
    kernel = np.hanning(FEATURE_WINDOW + 2)[1:-1]
    weight = np.convolve(np.ones(len(x)), kernel, "same")
    return np.stack([np.convolve(column, kernel, "same") for column in x.T], 1)[: len(x)] / weight[: len(x), None]


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
