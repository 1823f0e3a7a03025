"""The chains that message passing is raced on: every sequence with potentials and dynamics of its own, in float32."""

import jax
import jax.numpy as jnp
import numpy as np

from svae.messages import GaussianChain, HMMChain


def gaussian_chains(B: int, T: int, D: int, seed: int = 0) -> GaussianChain:
    """B chains of T steps; what differs from step to step is a few drawn matrices in turn, so that T can be long."""
    rng = np.random.default_rng(seed)
    turns = min(T, 200)

    def spd(n):
        X = rng.normal(size=(n, D, D))
        return X @ np.swapaxes(X, -1, -2) / D + 0.1 * np.eye(D)

    def steps(drawn, n):  # a different beginning for every sequence
        return np.stack([np.take(drawn, np.arange(b, b + n) % turns, axis=0) for b in range(B)])

    chain = GaussianChain(
        rng.normal(size=(B, D)),
        np.linalg.cholesky(spd(B)),
        steps(0.9 * rng.normal(size=(turns, D, D)) / np.sqrt(D), T - 1),
        steps(rng.normal(size=(turns, D)), T - 1),
        steps(np.linalg.cholesky(spd(turns)), T - 1),
        steps(spd(turns), T),
        steps(rng.normal(size=(turns, D)), T),
    )
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), chain)


def observations(chain: GaussianChain):
    """The same chains for peers: F and y = F^-1 h, observed through F' with unit noise, J = F F'."""
    F = np.linalg.cholesky(np.asarray(chain.J, np.float64))
    y = np.linalg.solve(F, np.asarray(chain.h, np.float64)[..., None])[..., 0]
    return F.astype(np.float32), y.astype(np.float32)


def hidden_chains(B: int, T: int, K: int, seed: int = 0) -> HMMChain:
    """B sequences of nodes under one transition matrix."""
    rng = np.random.default_rng(seed)
    log_trans = np.log(rng.dirichlet(np.ones(K), size=K))
    arrays = np.full(K, -np.log(K)), log_trans, 3 * rng.normal(size=(B, T, K))
    return HMMChain(*(jnp.asarray(x, jnp.float32) for x in arrays), jnp.ones(T, bool))
