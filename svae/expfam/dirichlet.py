"""Dirichlet over probability vectors: statistic log pi, natural parameter = counts (base measure prod 1/pi)."""

from typing import NamedTuple

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

    def moments(self) -> DirichletMoments:
        return DirichletMoments(digamma(self.counts) - digamma(jnp.sum(self.counts, -1, keepdims=True)))

    def mean(self) -> Float[Array, "... K"]:
        return self.counts / jnp.sum(self.counts, -1, keepdims=True)

    def natural_gradient(self, prior: "Dirichlet", d_moments: DirichletMoments) -> DirichletNatural:
        return DirichletNatural(prior.counts - self.counts + d_moments.log_prob)

    def step(self, direction: DirichletNatural, rho: Float[Array, ""]) -> "Dirichlet":
        return Dirichlet(self.counts + rho * direction.counts)

    def uncentre(self, direction: DirichletNatural) -> DirichletNatural:
        return direction

    def centre(self, direction: DirichletNatural) -> DirichletNatural:
        return direction

    def kl(self, prior: "Dirichlet") -> Float[Array, "..."]:
        difference = jnp.sum((self.counts - prior.counts) * self.moments().log_prob, -1)
        return difference - self.log_partition() + prior.log_partition()

    def sample(self, *, key: PRNGKeyArray) -> Float[Array, "... K"]:
        """log pi; in log space because sparse Dirichlets underflow."""
        log_gamma = jax.random.loggamma(key, self.counts)
        return jax.nn.log_softmax(log_gamma, axis=-1)

    @staticmethod
    def statistics(log_prob: Float[Array, "... K"]) -> DirichletNatural:
        return DirichletNatural(log_prob)
