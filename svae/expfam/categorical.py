"""Categorical over K states in unnormalised log probabilities (not minimal: adding a constant changes nothing)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from svae.expfam._base import AbstractExpFam


class Categorical(AbstractExpFam):
    logits: Float[Array, "... K"]

    def natural(self) -> "Categorical":
        return self

    @classmethod
    def from_natural(cls, eta: "Categorical") -> "Categorical":
        return eta

    @classmethod
    def from_standard(cls, probabilities: Float[Array, "... K"]) -> "Categorical":
        return cls(jnp.log(probabilities))

    def to_standard(self) -> Float[Array, "... K"]:
        return jax.nn.softmax(self.logits, axis=-1)

    def log_partition(self) -> Float[Array, "..."]:
        return jax.nn.logsumexp(self.logits, axis=-1)

    def in_domain(self) -> Bool[Array, "..."]:
        return jnp.any(jnp.isfinite(self.logits), -1) & ~jnp.any(jnp.isnan(self.logits) | (self.logits == jnp.inf), -1)

    def sample(self, *, key: PRNGKeyArray) -> Int[Array, "..."]:
        return jax.random.categorical(key, self.logits)

    @staticmethod
    def statistics(z: Int[Array, "..."], num_states: int) -> "Categorical":
        return Categorical(jax.nn.one_hot(z, num_states))
