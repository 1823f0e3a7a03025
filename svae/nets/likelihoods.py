"""Likelihoods of one frame, entry by entry, given the network's location and features of the latent.

`log_prob` takes frame and location as vectors (P,), the other methods a location of any shape.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax import lgamma
from jaxtyping import Array, Float, PRNGKeyArray

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


class GaussianNoise(eqx.Module):
    """y ~ N(location, sd²)."""

    scale: Scale

    def log_prob(self, y: Float[Array, " P"], location: Float[Array, " P"], features: Array) -> Array:
        log_sd = jnp.reshape(self.scale(features), -1)
        return -0.5 * jnp.square((y - location) * jnp.exp(-log_sd)) - log_sd - 0.5 * math.log(2 * math.pi)

    def mean(self, location: Float[Array, "*event"]) -> Float[Array, "*event"]:
        return location

    def sample(self, location: Float[Array, "*event"], features: Array, *, key: PRNGKeyArray) -> Array:
        noise = jax.random.normal(key, location.shape, location.dtype)
        return location + jnp.exp(self.scale(features)) * noise


class StudentT(eqx.Module):
    """y = location + sd t, t ~ Student(ν), ν = 1 + softplus(raw_dof) learned, one for all entries; it starts at 4."""

    scale: Scale
    raw_dof: Float[Array, ""]

    @property
    def dof(self) -> Float[Array, ""]:
        """ν > 1, so that the mean exists."""
        return 1 + jax.nn.softplus(self.raw_dof)

    def log_prob(self, y: Float[Array, " P"], location: Float[Array, " P"], features: Array) -> Array:
        log_sd, nu = jnp.reshape(self.scale(features), -1), self.dof
        z = (y - location) * jnp.exp(-log_sd)
        constant = lgamma((nu + 1) / 2) - lgamma(nu / 2) - 0.5 * jnp.log(math.pi * nu)
        return constant - log_sd - 0.5 * (nu + 1) * jnp.log1p(z * z / nu)

    def mean(self, location: Float[Array, "*event"]) -> Float[Array, "*event"]:
        return location

    def sample(self, location: Float[Array, "*event"], features: Array, *, key: PRNGKeyArray) -> Array:
        noise = jax.random.t(key, self.dof, location.shape, location.dtype)
        return location + jnp.exp(self.scale(features)) * noise


class Bernoulli(eqx.Module):
    """y ~ Bernoulli(σ(location)); y between 0 and 1 is read as a fraction."""

    def log_prob(self, y: Float[Array, " P"], location: Float[Array, " P"], features: Array) -> Array:
        return -y * jax.nn.softplus(-location) - (1 - y) * jax.nn.softplus(location)

    def mean(self, location: Float[Array, "*event"]) -> Float[Array, "*event"]:
        return jax.nn.sigmoid(location)

    def sample(self, location: Float[Array, "*event"], features: Array, *, key: PRNGKeyArray) -> Array:
        return jax.random.bernoulli(key, self.mean(location)).astype(location.dtype)


class Poisson(eqx.Module):
    """y ~ Poisson(softplus(location)): unlike exp, the link neither overflows nor bends a linear map at high rates."""

    def log_prob(self, y: Float[Array, " P"], location: Float[Array, " P"], features: Array) -> Array:
        return y * log_softplus(location) - jax.nn.softplus(location) - lgamma(y + 1)

    def mean(self, location: Float[Array, "*event"]) -> Float[Array, "*event"]:
        return jax.nn.softplus(location)

    def sample(self, location: Float[Array, "*event"], features: Array, *, key: PRNGKeyArray) -> Array:
        return jax.random.poisson(key, self.mean(location)).astype(location.dtype)


Likelihood = GaussianNoise | StudentT | Bernoulli | Poisson


def log_softplus(a: Float[Array, "*event"]) -> Float[Array, "*event"]:
    """log softplus(a); far below zero it is a, where softplus itself would underflow."""
    return jnp.where(a < -40, a, jnp.log(jax.nn.softplus(jnp.maximum(a, -40))))
