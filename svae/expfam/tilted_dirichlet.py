"""A Dirichlet that gives log E pi beside E log pi, for conditionals that weigh probabilities and normalise them.

log E pi is no expected statistic. Its derivative reaches the dual through the Fisher matrix of the counts,
F = d E log pi / d counts = diag psi'(c) - psi'(sum c) 11', whose inverse is known.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.special import polygamma
from jaxtyping import Array, Float

from svae.expfam.dirichlet import Dirichlet, DirichletMoments, DirichletNatural

SERIES_FROM = 20.0  # counts from which a series is exact, and a difference loses digits


class TiltedMoments(NamedTuple):
    log_prob: Float[Array, "... K"]  # E log pi
    log_mean: Float[Array, "... K"]  # log E pi


class TiltedDirichlet(Dirichlet):
    """The same distribution, with log E pi among its moments."""

    def moments(self) -> TiltedMoments:
        return TiltedMoments(super().moments().log_prob, super().moments_at_mean().log_prob)

    def moments_at_mean(self) -> TiltedMoments:
        log_mean = super().moments_at_mean().log_prob
        return TiltedMoments(log_mean, log_mean)

    def natural_gradient(self, prior: Dirichlet, d_moments: TiltedMoments) -> DirichletNatural:
        plain = super().natural_gradient(prior, DirichletMoments(d_moments.log_prob)).counts
        return DirichletNatural(plain + _dual_of_log_mean(self.counts, d_moments.log_mean))


def _dual_of_log_mean(c: Float[Array, "... K"], d: Float[Array, "... K"]) -> Float[Array, "... K"]:
    """F^-1 (d log E pi / d counts)' d. That derivative g has c'g = 0, so that nothing large is subtracted.

    With 1 / psi'(c) = c - r(c), by Sherman and Morrison: F^-1 g = (c - r) (g - r'g / (sum r - r(sum c))).
    """
    C = jnp.sum(c, -1, keepdims=True)
    g = d / c - jnp.sum(d, -1, keepdims=True) / C
    r = _shortfall(c)
    size = jnp.sum(r, -1, keepdims=True) - _shortfall(C)  # 0 where there is one state
    ratio = jnp.sum(r * g, -1, keepdims=True) / jnp.where(size > 0, size, 1)
    return (c - r) * (g - ratio)


def _shortfall(c: Float[Array, "..."]) -> Float[Array, "..."]:
    """r = c - 1 / psi'(c): from 0 to 1/2."""
    large = c > SERIES_FROM
    big, small = jnp.where(large, c, SERIES_FROM), jnp.where(large, SERIES_FROM, c)
    inverse = 1 / big
    excess = inverse * (1 / 2 + inverse * (1 / 6 - inverse**2 * (1 / 30 - inverse**2 / 42)))
    return jnp.where(large, big * excess / (1 + excess), small - 1 / polygamma(1, small))
