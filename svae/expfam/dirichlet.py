"""Dirichlet over probability vectors: statistic log pi, natural parameter = counts (base measure prod 1/pi)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import digamma, gammaln
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from svae.expfam._base import AbstractConjugatePrior


class DirichletNatural(NamedTuple):
    counts: Float[Array, "... K"]


class DirichletMoments(NamedTuple):
    log_prob: Float[Array, "... K"]  # E log pi


class Dirichlet(AbstractConjugatePrior):
    counts: Float[Array, "... K"]

    def natural(self) -> DirichletNatural:
        return DirichletNatural(self.counts)

    @classmethod
    def from_natural(cls, eta: DirichletNatural) -> "Dirichlet":
        return cls(eta.counts)

    def log_partition(self) -> Float[Array, "..."]:
        return jnp.sum(gammaln(self.counts), -1) - gammaln(jnp.sum(self.counts, -1))

    def in_domain(self) -> Bool[Array, "..."]:
        return jnp.all((self.counts > 0) & jnp.isfinite(self.counts), -1)

    def moments(self) -> Any:
        return DirichletMoments(digamma(self.counts) - digamma(jnp.sum(self.counts, -1, keepdims=True)))

    def moments_at_mean(self) -> Any:
        return DirichletMoments(jnp.log(self.counts) - jnp.log(jnp.sum(self.counts, -1, keepdims=True)))

    def mean(self) -> Float[Array, "... K"]:
        return self.counts / jnp.sum(self.counts, -1, keepdims=True)

    def natural_gradient(self, prior: "Dirichlet", d_moments: Any) -> DirichletNatural:
        return DirichletNatural(prior.counts - self.counts + d_moments.log_prob)

    def step(self, direction: DirichletNatural, rho: Float[Array, ""]) -> "Dirichlet":
        return type(self)(self.counts + rho * direction.counts)

    def uncentre(self, direction: DirichletNatural) -> DirichletNatural:
        return direction

    def centre(self, direction: DirichletNatural) -> DirichletNatural:
        return direction

    def kl(self, prior: "Dirichlet") -> Float[Array, "..."]:
        total = _gamma_kl(jnp.sum(self.counts, -1), jnp.sum(prior.counts, -1))
        return jnp.sum(_gamma_kl(self.counts, prior.counts), -1) - total

    def sample(self, *, key: PRNGKeyArray) -> Float[Array, "... K"]:
        """log pi; in log space because sparse Dirichlets underflow."""
        log_gamma = jax.random.loggamma(key, self.counts)
        return jax.nn.log_softmax(log_gamma, axis=-1)

    @staticmethod
    def statistics(log_prob: Float[Array, "... K"]) -> DirichletNatural:
        return DirichletNatural(log_prob)


def _gamma_kl(q: Float[Array, "..."], p: Float[Array, "..."]) -> Float[Array, "..."]:
    """gammaln(p) - gammaln(q) + (q - p) digamma(q), by Stirling's series where the logarithms would cancel.

    A sticky prior has counts of 1e10, and gammaln of that is 2e11: in float32 its differences are noise.
    """
    large = jnp.minimum(q, p) > 100.0
    q_safe, p_safe = jnp.where(large, q, 200.0), jnp.where(large, p, 200.0)
    ratio = (q_safe - p_safe) / q_safe
    series = (p_safe - 0.5) * jnp.log1p(-ratio) + (q_safe - p_safe) - ratio / 2
    series = series + (1 / p_safe - 1 / q_safe) / 12 - ratio / (12 * q_safe)
    q, p = jnp.where(large, 1.0, q), jnp.where(large, 1.0, p)
    return jnp.where(large, series, gammaln(p) - gammaln(q) + (q - p) * digamma(q))
