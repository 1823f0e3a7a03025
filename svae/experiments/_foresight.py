"""Dynamics that foretell many frames: an LDS whose A and b are fitted to whole stretches of its own latents.

The bound asks how well each frame follows from the one before. Where motion is smooth and no LDS is true, the A that
answers best forgets too slowly, and its error compounds. Here A and b have the least squared error over 1 to H frames
ahead, on the latents of the training frames; what they lose one frame ahead is added to the noise.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from svae._model import SVAE
from svae._queries import infer
from svae.data import Recordings
from svae.expfam import MNIW

STRETCHES = 4000
STEPS, RATE = 300, 3e-3


def with_foresight(model: SVAE, train: Recordings, horizon: int) -> SVAE:
    """The LDS with dynamics for forecasts of up to `horizon` frames, from the latents of its training recordings."""
    x = stretches(infer(model, train).mean, horizon)
    dynamics = refitted(model.q.dynamics, jnp.asarray(x, jnp.float32))
    return eqx.tree_at(lambda m: m.q.dynamics, model, dynamics)


def stretches(latents: list[np.ndarray], horizon: int) -> Float[np.ndarray, "n L D"]:
    """At most STRETCHES stretches of H + 1 frames, spread evenly over all recordings."""
    H = min(horizon, max(map(len, latents)) - 1)
    starts = [(x, s) for x in latents for s in range(len(x) - H)]
    chosen = np.unique(np.linspace(0, len(starts) - 1, STRETCHES).astype(int))
    return np.stack([starts[k][0][starts[k][1] : starts[k][1] + H + 1] for k in chosen])


def refitted(q: MNIW, x: Float[Array, "n L D"]) -> MNIW:
    """q(A, b, Q) moved to the M of least error ahead; Q grows by (M - M₀) E[u u'] (M - M₀)'."""
    M = least_error_ahead(q.M, x)
    u = _with_one(x[:, 0])
    moved = u @ (M - q.M).T
    return MNIW(M, q.S + q.nu * moved.T @ moved / len(u), q.K, q.nu)


def least_error_ahead(M: Float[Array, "D U"], x: Float[Array, "n L D"]) -> Float[Array, "D U"]:
    """Σ_h |x_h - x̂_h|² at its least near M, x̂_h = M (x̂_{h-1}, 1) from x̂_0 = x_0; by Adam."""
    optimizer = optax.adam(optax.cosine_decay_schedule(RATE, STEPS))

    def loss(M):
        _, ahead = jax.lax.scan(lambda now, _: 2 * (_with_one(now) @ M.T,), x[:, 0], None, length=x.shape[1] - 1)
        return jnp.mean((jnp.moveaxis(ahead, 0, 1) - x[:, 1:]) ** 2)

    def step(carry, _):
        M, state = carry
        changes, state = optimizer.update(jax.grad(loss)(M), state)
        return (optax.apply_updates(M, changes), state), None

    return jax.jit(lambda M: jax.lax.scan(step, (M, optimizer.init(M)), None, length=STEPS)[0][0])(M)


def _with_one(x):
    return jnp.concatenate([x, jnp.ones((len(x), 1), x.dtype)], 1)
