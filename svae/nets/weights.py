"""The paper's q(γ): an independent Gaussian over every weight of an observation network."""

import math
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from svae.nets.likelihoods import Likelihood
from svae.nets.linear import Embed
from svae.nets.observation import Observation


class GaussianWeights(eqx.Module):
    """q(γ) = N(weights of `observation`, exp(log_sd)²), leaf by leaf, under the prior p(γ) = N(0, prior_sd²).

    `observation` holds the means; `log_sd` has its tree of float arrays. Draw γ̂ once, then use the drawn observation;
    `log_prob` and `mean` here take γ at its mean, and `simulate` draws it.
    """

    observation: Observation
    log_sd: PyTree
    prior_sd: float = eqx.field(static=True)

    def __init__(self, observation: Observation, *, prior_sd: float = 1.0, sd: float = 0.01):
        self.observation = observation
        self.log_sd = jax.tree.map(lambda w: jnp.full_like(w, math.log(sd)), float_arrays(observation))
        self.prior_sd = prior_sd

    @property
    def linear(self) -> Embed | None:
        """The linear map of the mean weights, for `with_linear_map`."""
        return self.observation.linear

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood of the mean weights, for `with_noise`."""
        return self.observation.likelihood

    def draw(self, *, key: PRNGKeyArray) -> Observation:
        """γ̂ = mean + exp(log_sd) ε, ε ~ N(0, I), as an observation with plain weights."""
        mean, rest = eqx.partition(self.observation, eqx.is_inexact_array)
        leaves, tree = jax.tree.flatten(mean)
        keys = jax.tree.unflatten(tree, list(jax.random.split(key, len(leaves))))
        return eqx.combine(jax.tree.map(draw_leaf, mean, self.log_sd, keys), rest)

    def kl(self) -> Float[Array, ""]:
        """KL(q(γ) ‖ p(γ)) = Σ log(s₀/s) + (s² + m²)/(2 s₀²) - 1/2, over all weights."""
        leaf = partial(kl_leaf, prior_sd=self.prior_sd)
        return sum(jax.tree.leaves(jax.tree.map(leaf, float_arrays(self.observation), self.log_sd)), jnp.zeros(()))

    def log_prob(self, x: Float[Array, "T D"], y: Float[Array, "T *event"]) -> Float[Array, " T"]:
        """log p(y_t | x_t, γ) at the mean of q(γ)."""
        return self.observation.log_prob(x, y)

    def mean(self, x: Float[Array, "T D"]) -> Float[Array, "T *event"]:
        """E[y_t | x_t, γ] at the mean of q(γ)."""
        return self.observation.mean(x)

    def simulate(self, x: Float[Array, "T D"], *, key: PRNGKeyArray) -> Float[Array, "T *event"]:
        """γ̂ ~ q(γ), then y_t ~ p(y_t | x_t, γ̂)."""
        key_weights, key_noise = jax.random.split(key)
        return self.draw(key=key_weights).simulate(x, key=key_noise)


def float_arrays(module: eqx.Module) -> PyTree:
    """The float arrays of a module, None elsewhere."""
    return eqx.filter(module, eqx.is_inexact_array)


def draw_leaf(mean: Float[Array, "..."], log_sd: Float[Array, "..."], key: PRNGKeyArray) -> Float[Array, "..."]:
    """mean + exp(log_sd) ε."""
    return mean + jnp.exp(log_sd) * jax.random.normal(key, mean.shape, mean.dtype)


def kl_leaf(mean: Float[Array, "..."], log_sd: Float[Array, "..."], *, prior_sd: float) -> Float[Array, ""]:
    """KL(N(mean, exp(log_sd)²) ‖ N(0, prior_sd²)), summed over entries."""
    second_moment = jnp.exp(2 * log_sd) + jnp.square(mean)
    return jnp.sum(math.log(prior_sd) - log_sd + second_moment / (2 * prior_sd**2) - 0.5)
