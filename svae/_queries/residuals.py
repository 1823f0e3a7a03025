"""What the decoder leaves of the frames seen, and how much of it a forecast may carry on.

The model calls noise whatever a few latents cannot say: the light, the fur, the shape of this one animal. In video it
hardly changes from frame to frame. Its autocorrelation is read off the frames before a forecast begins, and is held
to be zero as far as it could be chance, so that the forecast of a model whose noise is white stays what it is.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from svae._model import SVAE
from svae.nets import GaussianNoise, StudentT

FRAMES = 256  # before the forecast that are looked at
ERRORS = 2.0  # standard errors above zero where an autocorrelation begins to count


class Residual(NamedTuple):
    """y_T - E[y_T | x_T], and its expected share in the H frames that follow."""

    last: Float[Array, "*event"]
    share: Float[Array, " H"]


def residual(
    model: SVAE, y: Float[Array, "T *event"], x: Float[Array, "T D"], last: Int[Array, ""], horizon: int
) -> Residual:
    """Of one recording that ends with frame `last`, its latents at x; zero for likelihoods without additive noise."""
    if not isinstance(model.observe.likelihood, GaussianNoise | StudentT):
        return Residual(jnp.zeros_like(y[0]), jnp.zeros(horizon, y.dtype))
    frames = last + 1 - min(FRAMES, len(y)) + jnp.arange(min(FRAMES, len(y)))
    seen = y[jnp.maximum(frames, 0)].reshape(len(frames), -1)
    decoded = model.observe.mean(x[jnp.maximum(frames, 0)]).reshape(len(frames), -1)
    left = jnp.where((frames >= 0)[:, None] & ~jnp.isnan(seen), seen - decoded, 0)
    return Residual(left[-1].reshape(y.shape[1:]), autocorrelation(left, horizon))


def autocorrelation(r: Float[Array, "T P"], horizon: int) -> Float[Array, " H"]:
    """At lags 1..H of all entries together, n_h / n_0 with n_h = Σ_t g_t, g_t = r_t'r_{t+h}; at least 0.

    Were r white, n_h would have the variance Σ g_t². The estimate is shrunk by the factor (1 - 4 Σ g_t² / n_h²)₊.
    """
    gram = jnp.matmul(r, r.T, precision="highest")
    t, lags = jnp.arange(len(r)), 1 + jnp.arange(horizon)
    later = t[None] + lags[:, None]
    g = jnp.where(later < len(r), gram[t[None], jnp.minimum(later, len(r) - 1)], 0)
    n, chance = jnp.maximum(jnp.sum(g, 1), 0), ERRORS**2 * jnp.sum(g**2, 1)
    tiny = jnp.finfo(r.dtype).tiny
    shrinkage = jnp.maximum(0, 1 - chance / jnp.maximum(n**2, tiny))
    return shrinkage * n / jnp.maximum(jnp.trace(gram), tiny)


def carried(
    found: Residual, mean: Float[Array, "H *event"], drawn: Float[Array, "H *event"]
) -> tuple[Float[Array, "H *event"], Float[Array, "H *event"]]:
    """(mean, drawn) with the residual carried on; what is known of the noise no longer varies between draws."""
    share = found.share.reshape(-1, *(1 for _ in found.last.shape))
    kept = share * found.last[None]
    return mean + kept, mean + kept + jnp.sqrt(1 - share**2) * (drawn - mean)
