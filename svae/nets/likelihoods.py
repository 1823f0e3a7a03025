"""Likelihoods of one frame given the network's location and features of the latent.

`log_prob` takes frame and location as vectors (P,), and sums over the entries of the frame that are not NaN; the other
methods take a location of any shape.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax import lgamma
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from svae.nets.protocols import AbstractLikelihood

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
LEAST_SD = 0.01  # of the noise of an entry in model units, for every model: pixels that never change say nothing
LOG_SD_RANGE = 5.0  # a network may change log sd by this much: an sd free to vanish makes the likelihood unbounded


class FixedScale(eqx.Module):
    """One sd for every entry, given and not learned."""

    sd: float = eqx.field(static=True)

    def __call__(self, features: Float[Array, "..."]) -> float:
        return math.log(self.sd)


class LearnedScale(eqx.Module):
    """One log sd per entry of the event, learned."""

    log_sd: Float[Array, "*event"]

    def __call__(self, features: Float[Array, "..."]) -> Float[Array, "*event"]:
        return self.log_sd


class NetworkScale(eqx.Module):
    """log sd (*event) from the latent's features: log sd₀ + 5 tanh(head / 5)."""

    head: eqx.Module
    sd: float = eqx.field(static=True)

    def __call__(self, features: Float[Array, "..."]) -> Float[Array, "*event"]:
        return math.log(self.sd) + LOG_SD_RANGE * jnp.tanh(self.head(features) / LOG_SD_RANGE)


Scale = FixedScale | LearnedScale | NetworkScale


def _shown(y: Float[Array, " P"]) -> tuple[Float[Array, " P"], Bool[Array, " P"]]:
    """The frame with 0 in place of what is missing, and which entries are observed."""
    observed = ~jnp.isnan(y)
    return jnp.where(observed, y, 0), observed


def _sum(entries: Float[Array, " P"], observed: Bool[Array, " P"]) -> Float[Array, ""]:
    return jnp.sum(jnp.where(observed, entries, 0))


@jax.custom_vjp
def gaussian_log_prob(
    y: Float[Array, " P"], location: Float[Array, " P"], log_sd: Float[Array, " P"]
) -> Float[Array, ""]:
    """Sum of log N(y; location, sd²) over entries that are not NaN; its derivative passes once over the frames."""
    y, observed = _shown(y)
    return _sum(-0.5 * jnp.square((y - location) * jnp.exp(-log_sd)) - log_sd - HALF_LOG_2PI, observed)


def _gaussian_forward(y, location, log_sd):
    return gaussian_log_prob(y, location, log_sd), (y, location, log_sd)


def _gaussian_backward(kept, d):
    y, location, log_sd = kept
    missing, precision = jnp.isnan(y), jnp.exp(-2 * log_sd)
    d_location = jnp.where(missing, 0, (y - location) * (d * precision))
    d_log_sd = jnp.where(missing, 0, d * (jnp.square(y - location) * precision - 1))
    return -d_location, d_location, d_log_sd


gaussian_log_prob.defvjp(_gaussian_forward, _gaussian_backward)


class GaussianNoise(AbstractLikelihood):
    """y ~ N(location, sd²)."""

    title, additive = "Gaussian", True

    scale: Scale

    def log_prob(self, y: Float[Array, " P"], location: Float[Array, " P"], features: Array) -> Float[Array, ""]:
        log_sd = jnp.reshape(self.scale(features), -1)
        return gaussian_log_prob(y, location, jnp.broadcast_to(log_sd, y.shape).astype(y.dtype))

    def mean(self, location: Float[Array, "*event"]) -> Float[Array, "*event"]:
        return location

    def sample(self, location: Float[Array, "*event"], features: Array, *, key: PRNGKeyArray) -> Array:
        noise = jax.random.normal(key, location.shape, location.dtype)
        return location + jnp.exp(self.scale(features)) * noise


class StudentT(AbstractLikelihood):
    """y = location + sd t, t ~ Student(ν), ν = 1 + softplus(raw_dof) learned, one for all entries; it starts at 4."""

    title, additive = "Student t", True

    scale: Scale
    raw_dof: Float[Array, ""]

    @property
    def dof(self) -> Float[Array, ""]:
        """ν > 1, so that the mean exists."""
        return 1 + jax.nn.softplus(self.raw_dof)

    def log_prob(self, y: Float[Array, " P"], location: Float[Array, " P"], features: Array) -> Float[Array, ""]:
        y, observed = _shown(y)
        log_sd, nu = jnp.reshape(self.scale(features), -1), self.dof
        z = (y - location) * jnp.exp(-log_sd)
        constant = lgamma((nu + 1) / 2) - lgamma(nu / 2) - 0.5 * jnp.log(math.pi * nu)
        return _sum(constant - log_sd - 0.5 * (nu + 1) * jnp.log1p(z * z / nu), observed)

    def mean(self, location: Float[Array, "*event"]) -> Float[Array, "*event"]:
        return location

    def sample(self, location: Float[Array, "*event"], features: Array, *, key: PRNGKeyArray) -> Array:
        noise = jax.random.t(key, self.dof, location.shape, location.dtype)
        return location + jnp.exp(self.scale(features)) * noise


class Bernoulli(AbstractLikelihood):
    """y ~ Bernoulli(σ(location)); y between 0 and 1 is read as a fraction."""

    title, low, high, discrete, standardized = "Bernoulli", 0.0, 1.0, True, False

    def log_prob(self, y: Float[Array, " P"], location: Float[Array, " P"], features: Array) -> Float[Array, ""]:
        y, observed = _shown(y)
        return _sum(-y * jax.nn.softplus(-location) - (1 - y) * jax.nn.softplus(location), observed)

    def mean(self, location: Float[Array, "*event"]) -> Float[Array, "*event"]:
        return jax.nn.sigmoid(location)

    def sample(self, location: Float[Array, "*event"], features: Array, *, key: PRNGKeyArray) -> Array:
        return jax.random.bernoulli(key, self.mean(location)).astype(location.dtype)


class Poisson(AbstractLikelihood):
    """y ~ Poisson(softplus(location)): unlike exp, the link neither overflows nor bends a linear map at high rates."""

    title, low, discrete, standardized = "Poisson", 0.0, True, False

    def log_prob(self, y: Float[Array, " P"], location: Float[Array, " P"], features: Array) -> Float[Array, ""]:
        y, observed = _shown(y)
        return _sum(y * log_softplus(location) - jax.nn.softplus(location) - lgamma(y + 1), observed)

    def mean(self, location: Float[Array, "*event"]) -> Float[Array, "*event"]:
        return jax.nn.softplus(location)

    def sample(self, location: Float[Array, "*event"], features: Array, *, key: PRNGKeyArray) -> Array:
        return jax.random.poisson(key, self.mean(location)).astype(location.dtype)


Likelihood = AbstractLikelihood


def log_softplus(a: Float[Array, "*event"]) -> Float[Array, "*event"]:
    """log softplus(a); far below zero it is a, where softplus itself would underflow."""
    return jnp.where(a < -40, a, jnp.log(jax.nn.softplus(jnp.maximum(a, -40))))
