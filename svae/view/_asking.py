"""What the page asks the model: a picture of a latent point, and how a recording goes on."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from svae.data import Recordings
from svae.queries import forecast

CHUNK = 32  # latents that are decoded at once: one program for all
CONTEXTS = (120, 32, 8, 1)  # frames that a forecast sees: the most that there are, of few, since each is a program
DRAWS = 48
INTERVAL = (5, 95)  # percentiles


class Predicted(NamedTuple):
    """H frames after a moment: of the latents and of the frames, in the units of the data."""

    mean: Float[np.ndarray, "H D"]
    low: Float[np.ndarray, "H D"]
    high: Float[np.ndarray, "H D"]
    states: Float[np.ndarray, "H K"]  # share of the futures in each state
    frames: np.ndarray  # (H, *event) the mean over all futures
    one: np.ndarray  # (H, *event) one of them, without observation noise
    least: np.ndarray  # (H, *event) of the interval, noise included
    most: np.ndarray


def decode(model: Any, latents: Float[np.ndarray, "n D"]) -> np.ndarray:
    """E[y | x] (n, *event) in the units of the data."""
    parts = [_decode(model, _padded(latents[i : i + CHUNK])) for i in range(0, len(latents), CHUNK)]
    return model.scaling.invert(np.concatenate([np.asarray(p) for p in parts])[: len(latents)])


def _padded(latents):
    """CHUNK rows, the last repeated."""
    rows = np.minimum(np.arange(CHUNK), len(latents) - 1)
    return jnp.asarray(latents[rows], jnp.result_type(float))


@eqx.filter_jit
def _decode(model, latents):
    return model.observe.mean(latents)


def context(frame: int) -> slice:
    """The frames that a forecast from a frame sees; it is the last of them."""
    return slice(frame + 1 - next(n for n in CONTEXTS if n <= frame + 1), frame + 1)


def predict(model: Any, seen: Recordings, horizon: int, K: int, block: str | None = None) -> Predicted:
    """From a stretch of a raw recording, and nothing else; inputs stay as they are. States are those of a block."""
    found = forecast(model, seen, horizon=horizon, samples=DRAWS, key=jax.random.key(0))
    x, z, y = found.latents[0], (found.states if block is None else found.blocks[block])[0], found.samples[0]
    share = np.stack([np.bincount(now, minlength=K)[:K] for now in z.T]) / len(z)
    means = found.means[0]
    interval = np.percentile(x, INTERVAL, axis=0)
    return Predicted(x.mean(0), *interval, share, means.mean(0), means[0], *np.percentile(y, INTERVAL, axis=0))
