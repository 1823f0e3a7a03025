"""What the decoder leaves of the frames seen, and how much of it a forecast may carry on.

The model calls noise whatever a few latents cannot say: the light, the fur, the shape of this one animal. In video it
hardly changes from frame to frame. Its autocorrelation is read off the frames before a forecast begins, and is held
to be zero as far as it could be chance, so that the forecast of a model whose noise is white stays what it is. What
goes on is the best linear prediction from the last residuals, if that is their autocorrelation.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from svae.model import SVAE
from svae.nets import likelihood_of

FRAMES_BEFORE = 256  # before the forecast that are looked at
ERRORS = 2.0  # standard errors above zero where an autocorrelation begins to count
LAGS = 16  # residuals from which the next ones are predicted
FLOOR = 0.01  # of their correlation matrix: less is no more than rounding and chance


class Residual(NamedTuple):
    """r_t = y_t - E[y_t | x_t] as expected in the H frames that follow, and how much of its variance that explains."""

    ahead: Float[Array, "H *event"]
    known: Float[Array, " H"]


def residual(
    model: SVAE, y: Float[Array, "T *event"], x: Float[Array, "T D"], last: Int[Array, ""], horizon: int
) -> Residual:
    """The residual of one recording that ends with frame `last`, its latents at x; zero without additive noise."""
    if not likelihood_of(model.observe).additive:
        return Residual(jnp.zeros((horizon, *y.shape[1:]), y.dtype), jnp.zeros(horizon, y.dtype))
    frames = last + 1 - min(FRAMES_BEFORE, len(y)) + jnp.arange(min(FRAMES_BEFORE, len(y)))
    seen = y[jnp.maximum(frames, 0)].reshape(len(frames), -1)
    decoded = model.observe.mean(x[jnp.maximum(frames, 0)]).reshape(len(frames), -1)
    left = jnp.where((frames >= 0)[:, None] & ~jnp.isnan(seen), seen - decoded, 0)
    lags = min(LAGS, len(left))
    weights, known = best_linear(autocorrelation(left, horizon + lags - 1), lags)
    ahead = jnp.matmul(weights, left[::-1][:lags], precision="highest")
    return Residual(ahead.reshape(horizon, *y.shape[1:]), known)


def best_linear(c: Float[Array, " N"], lags: int) -> tuple[Float[Array, "H L"], Float[Array, " H"]]:
    """Weights of r_T, r_{T-1}, ... in E[r_{T+h}], h = 1..N-L+1, given autocorrelations at lags 1..N; and R² of each."""
    c = jnp.concatenate([jnp.ones(1, c.dtype), c])
    j = jnp.arange(lags)
    ahead = c[1 + jnp.arange(len(c) - lags)[:, None] + j[None]]
    values, vectors = jnp.linalg.eigh(c[jnp.abs(j[:, None] - j[None])])
    weights = ahead @ (vectors / jnp.maximum(values, FLOOR)[None]) @ vectors.T
    return weights, jnp.clip(jnp.sum(weights * ahead, 1), 0, 1)


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
    unknown = jnp.sqrt(1 - found.known).reshape(-1, *(1 for _ in mean.shape[1:]))
    return mean + found.ahead, mean + found.ahead + unknown * (drawn - mean)
