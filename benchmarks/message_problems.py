"""The chains that message passing is raced on, in float32: every sequence has potentials of its own at every step.

The Gaussian chains of a batch are those of one LDS, or have dynamics of their own at every step too, as in an SLDS.
"""

import jax
import jax.numpy as jnp
import numpy as np

from svae.messages import GaussianChain, HMMChain


def gaussian_chains(B: int, T: int, D: int, seed: int = 0) -> GaussianChain:
    """B chains of T steps under one A, b and Q; what differs from step to step is a few drawn matrices in turn."""
    chain, rng = switching_chains(B, T, D, seed), np.random.default_rng(seed)
    A, b = 0.9 * rng.normal(size=(1, D, D)) / np.sqrt(D), rng.normal(size=(1, D))
    one = (jnp.asarray(x, jnp.float32) for x in (A, b, np.linalg.cholesky(_spd(rng, 1, D))))
    return GaussianChain(*chain[:2], *one, *chain[5:])


def axes(chain: GaussianChain) -> GaussianChain:
    """The axis of the batch in each leaf; None where all sequences share it."""
    shared = chain.A.ndim == 3
    return GaussianChain(0, 0, *[None if shared else 0] * 3, 0, 0)


def sequence(chain: GaussianChain, i: int) -> GaussianChain:
    """One of a batch."""
    return GaussianChain(*(x if axis is None else x[i] for x, axis in zip(chain, axes(chain), strict=True)))


def _spd(rng, n: int, D: int):
    X = rng.normal(size=(n, D, D))
    return X @ np.swapaxes(X, -1, -2) / D + 0.1 * np.eye(D)


def switching_chains(B: int, T: int, D: int, seed: int = 0) -> GaussianChain:
    """B chains of T steps, a few drawn matrices in turn, so that T can be long."""
    rng = np.random.default_rng(seed)
    turns = min(T, 200)

    def steps(drawn, n):  # a different beginning for every sequence
        return np.stack([np.take(drawn, np.arange(b, b + n) % turns, axis=0) for b in range(B)])

    chain = GaussianChain(
        rng.normal(size=(B, D)),
        np.linalg.cholesky(_spd(rng, B, D)),
        steps(0.9 * rng.normal(size=(turns, D, D)) / np.sqrt(D), T - 1),
        steps(rng.normal(size=(turns, D)), T - 1),
        steps(np.linalg.cholesky(_spd(rng, turns, D)), T - 1),
        steps(_spd(rng, turns, D), T),
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
