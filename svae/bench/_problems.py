"""What training steps are raced on: frames of a switching system, and a model that knows it well."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from svae.config import Config
from svae.data import Batch, batch, recordings, windows
from svae.model import make
from svae.nets import with_linear_map

STAY = 0.95


class Problem(NamedTuple):
    model: Any
    piece: Batch
    num_data: float
    frames: float


class Shape(NamedTuple):
    model: str
    batch: int
    T: int
    event: tuple[int, ...]
    D: int
    K: int
    network: str
    hidden: tuple[int, ...]


SHAPES = {
    "lds": Shape("lds", 32, 200, (30, 30), 10, 30, "residual", (64, 64)),
    "slds": Shape("slds", 32, 200, (30, 30), 10, 30, "residual", (64, 64)),
    # bouncing dots of 20 pixels and one hidden layer of 50, as in the code published with the paper
    "lds, 2016": Shape("lds", 1, 200, (20,), 10, 1, "mlp", (50,)),
    "lds, small": Shape("lds", 4, 40, (6, 6), 3, 1, "residual", (16,)),
    "slds, small": Shape("slds", 4, 40, (6, 6), 3, 5, "residual", (16,)),
}


def trajectories(B: int, T: int, D: int, K: int, rng: np.random.Generator):
    """x (B, T, D) of K slow rotations, and the states z (B, T)."""
    A = np.stack([0.98 * np.linalg.qr(np.eye(D) + 0.3 * rng.normal(size=(D, D)))[0] for _ in range(K)])
    A *= np.sign(np.einsum("kii->k", A))[:, None, None]
    b = 0.3 * rng.normal(size=(K, D))
    x, z = np.zeros((B, T, D)), np.zeros((B, T), int)
    x[:, 0], z[:, 0] = rng.normal(size=(B, D)), rng.integers(K, size=B)
    for t in range(1, T):
        z[:, t] = np.where(rng.random(B) < STAY, z[:, t - 1], rng.integers(K, size=B))
        noise = 0.2 * rng.normal(size=(B, D))
        x[:, t] = np.einsum("bij,bj->bi", A[z[:, t]], x[:, t - 1]) + b[z[:, t]] + noise
    return x, z


def problem(name: str, seed: int = 0) -> Problem:
    """A batch, and a model whose linear maps and q(theta) are those of its system."""
    shape, rng = SHAPES[name], np.random.default_rng(seed)
    x, z = trajectories(shape.batch, shape.T, shape.D, shape.K, rng)
    P = int(np.prod(shape.event))
    W = np.linalg.qr(rng.normal(size=(max(P, shape.D), shape.D)))[0][:P] * np.sqrt(P / shape.D)
    y = (x @ W.T + 0.3 * rng.normal(size=(*z.shape, P))).reshape(*z.shape, *shape.event)
    options = {
        "model": shape.model,
        "states": shape.K,
        "latent_dim": shape.D,
        "batch_size": shape.batch,
        "network": shape.network,
        "hidden": shape.hidden,
    }
    model = make(shape.event, Config.make(options))
    if shape.network == "residual":
        maps = (
            with_linear_map(model.recognize, jnp.asarray(W), jnp.zeros(P)),
            with_linear_map(model.observe, W, np.zeros(P)),
        )
        model = eqx.tree_at(lambda m: (m.recognize, m.observe), model, maps)
    q = model.pgm.initialize(list(x), list(np.eye(shape.K)[z]))
    model = eqx.tree_at(lambda m: m.q, model, jax.tree.map(lambda a, like: jnp.asarray(a, like.dtype), q, model.q))
    records = recordings(list(y.astype(np.float32)))
    piece = batch(records, windows(records, shape.T, 0), np.arange(shape.batch))
    return Problem(model, piece, float(shape.batch), float(z.size))
