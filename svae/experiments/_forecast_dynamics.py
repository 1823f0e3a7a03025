"""Dynamics that forecast many frames, and how far to trust them: from the latents of the training frames alone.

The bound asks how well each frame follows from the one before. Where motion is smooth and no LDS is true, the A that
answers best forgets too slowly, and its error compounds. Here A and b have the least squared error over 1 to H frames
ahead; what they lose one frame ahead is added to the noise. Far ahead little can be forecast, and what few stretches
seem to say of it is partly chance: so the mean of a forecast goes back to the mean of the frames seen before, as far as
regressions on other stretches say too much.
"""

import itertools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from svae.data import Recordings
from svae.expfam import MNIW
from svae.model import SVAE
from svae.queries import infer

STRETCHES = 4000
STEPS, RATE = 300, 3e-3
BLOCK = 10  # stretches that are left out together
BLOCKS = 5  # at least


class Foresight(NamedTuple):
    """A model for forecasts of up to H frames."""

    model: SVAE
    trust: Float[np.ndarray, " H"]  # 1: its forecast, 0: the mean of what was seen

    def mean(
        self, seen: Float[np.ndarray, "T *event"], futures: Float[np.ndarray, "S H *event"]
    ) -> Float[np.ndarray, "H *event"]:
        """The frames forecast: the mean over futures of the model as far as it is trusted, else that of frames seen."""
        centre = np.nan_to_num(np.nanmean(seen, 0))
        trust = self.trust[: futures.shape[1]].reshape(-1, *(1 for _ in centre.shape))
        return centre + trust * (futures.mean(0) - centre)


def with_foresight(model: SVAE, train: Recordings, horizon: int) -> Foresight:
    """The LDS with dynamics for forecasts of up to `horizon` frames, from the latents of its training recordings."""
    latents = infer(model, train).mean
    x = jnp.asarray(stretches(latents, horizon), jnp.float32)
    dynamics = refitted(model.q.x.dynamics, x, independent(latents, horizon))
    return Foresight(eqx.tree_at(lambda m: m.q.x.dynamics, model, dynamics), trust(latents, horizon))


def independent(latents: list[np.ndarray], horizon: int) -> float:
    """How many stretches of H frames there are that do not overlap."""
    return sum(map(len, latents)) / horizon


# --- dynamics -----------------------------------------------------------------------------------------------------


def stretches(latents: list[np.ndarray], horizon: int) -> Float[np.ndarray, "n L D"]:
    """At most STRETCHES stretches of H + 1 frames, spread evenly over all recordings."""
    H = min(horizon, max(map(len, latents)) - 1)
    starts = [(x, s) for x in latents for s in range(len(x) - H)]
    chosen = np.unique(np.linspace(0, len(starts) - 1, STRETCHES).astype(int))
    return np.stack([starts[k][0][starts[k][1] : starts[k][1] + H + 1] for k in chosen])


def refitted(q: MNIW, x: Float[Array, "n L D"], number: float) -> MNIW:
    """q(A, b, Q) moved to the M of least error ahead; Q grows by (M - M₀) E[u u'] (M - M₀)'."""
    M = least_error_ahead(q.M, x, number)
    u = _with_one(x[:, 0])
    moved = u @ (M - q.M).T
    return MNIW(M, q.S + q.nu * moved.T @ moved / len(u), q.K, q.nu)


def least_error_ahead(M: Float[Array, "D U"], x: Float[Array, "n L D"], number: float) -> Float[Array, "D U"]:
    """The least of E|x_h - x̂_h|² + E|h (M - M₀) u|² / number near M₀; x̂_h = M (x̂_{h-1}, 1) from x̂_0 = x_0; by Adam.

    The second term is what one more stretch would say if it went exactly as M₀ forecasts, or nearly so.
    """
    return _descended(M, x, number)


@jax.jit
def _descended(before, x, number):
    optimizer = optax.adam(optax.cosine_decay_schedule(RATE, STEPS))

    def step(carry, _):
        M, state = carry
        changes, state = optimizer.update(jax.grad(_error_ahead)(M, before, x, number), state)
        return (optax.apply_updates(M, changes), state), None

    return jax.lax.scan(step, (before, optimizer.init(before)), None, length=STEPS)[0][0]


def _error_ahead(M, before, x, number):
    H = x.shape[1] - 1
    _, ahead = jax.lax.scan(lambda now, _: 2 * (_with_one(now) @ M.T,), x[:, 0], None, length=H)
    drift = H**2 / 3 * jnp.mean((_with_one(x[:, 0]) @ (M - before).T) ** 2)  # H² / 3 is nearly the mean of h²
    return jnp.mean((jnp.moveaxis(ahead, 0, 1) - x[:, 1:]) ** 2) + drift / number


def _with_one(x):
    return jnp.concatenate([x, jnp.ones((len(x), 1), x.dtype)], 1)


# --- trust --------------------------------------------------------------------------------------------------------


def trust(latents: list[np.ndarray], horizon: int) -> Float[np.ndarray, " H"]:
    """By horizon: the slope of the truth on what regressions on other blocks forecast."""
    return np.array([slope(latents, horizon, h) for h in range(1, horizon + 1)])


def slope(latents: list[np.ndarray], horizon: int, h: int) -> float:
    """The slope of x_{t+h} on its forecast from x_t by a regression on all other blocks; in 0..1, 1 without blocks."""
    centre = np.concatenate(latents).mean(0)
    pairs = [(_rows(x[:-h] - centre), x[h:] - centre) for x in blocks(latents, horizon) if len(x) > h]
    if len(pairs) < 2:
        return 1.0
    moments = [(u.T @ u, u.T @ y) for u, y in pairs]
    uu, uy = sum(a for a, _ in moments), sum(b for _, b in moments)
    both = square = 0.0
    for (u, y), (a, b) in zip(pairs, moments, strict=True):
        found = u @ np.linalg.lstsq(uu - a, uy - b, rcond=None)[0]
        both, square = both + np.sum(found * y), square + np.sum(found**2)
    return float(np.clip(both / max(square, 1e-30), 0, 1))


def blocks(latents: list[np.ndarray], horizon: int) -> list[np.ndarray]:
    """Recordings cut into blocks of about BLOCK horizons, and into BLOCKS at least."""
    size = min(BLOCK * horizon, sum(map(len, latents)) // BLOCKS)
    parts = [max(1, round(len(x) / max(size, 1))) for x in latents]
    edges = [np.linspace(0, len(x), n + 1).astype(int) for x, n in zip(latents, parts, strict=True)]
    return [x[a:b] for x, e in zip(latents, edges, strict=True) for a, b in itertools.pairwise(e)]


def _rows(x):
    return np.concatenate([x, np.ones((len(x), 1))], 1).astype(float)
