"""Gaussians in natural parameters, exp(-x'J x / 2 + h'x): what networks output and messages combine."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from svae._linalg import cholesky, inv_tril, logdet_tril, mm, mT, symmetrize
from svae.expfam._base import AbstractExpFam


class Gaussian(AbstractExpFam):
    """Full precision. As a potential J may be singular, and J = 0, h = 0 says nothing about x."""

    J: Float[Array, "... D D"]
    h: Float[Array, "... D"]

    def natural(self) -> "Gaussian":
        return self

    @classmethod
    def from_natural(cls, eta: "Gaussian") -> "Gaussian":
        return eta

    @classmethod
    def from_standard(cls, mean: Float[Array, "... D"], covariance: Float[Array, "... D D"]) -> "Gaussian":
        R = inv_tril(cholesky(covariance))
        J = mm(mT(R), R)
        return cls(J, mm(J, mean[..., None])[..., 0])

    def to_standard(self) -> tuple[Float[Array, "... D"], Float[Array, "... D D"]]:
        R = inv_tril(cholesky(self.J))
        covariance = mm(mT(R), R)
        return mm(covariance, self.h[..., None])[..., 0], covariance

    def log_partition(self) -> Float[Array, "..."]:
        L = cholesky(symmetrize(self.J))
        whitened = mm(inv_tril(L), self.h[..., None])[..., 0]
        return jnp.sum(whitened**2, -1) / 2 - logdet_tril(L) + self.h.shape[-1] / 2 * jnp.log(2 * jnp.pi)

    def in_domain(self) -> Bool[Array, "..."]:
        return jnp.all(jnp.isfinite(cholesky(self.J)), (-2, -1))

    def sample(self, *, key: PRNGKeyArray) -> Float[Array, "... D"]:
        R = inv_tril(cholesky(self.J))
        noise = jax.random.normal(key, self.h.shape, self.h.dtype) + mm(R, self.h[..., None])[..., 0]
        return mm(mT(R), noise[..., None])[..., 0]

    @staticmethod
    def statistics(x: Float[Array, "... D"]) -> "Gaussian":
        return Gaussian(-x[..., :, None] * x[..., None, :] / 2, x)


class DiagonalGaussian(AbstractExpFam):
    """Diagonal precision."""

    J: Float[Array, "... D"]
    h: Float[Array, "... D"]

    def natural(self) -> "DiagonalGaussian":
        return self

    @classmethod
    def from_natural(cls, eta: "DiagonalGaussian") -> "DiagonalGaussian":
        return eta

    @classmethod
    def from_standard(cls, mean: Float[Array, "... D"], variance: Float[Array, "... D"]) -> "DiagonalGaussian":
        return cls(1 / variance, mean / variance)

    def to_standard(self) -> tuple[Float[Array, "... D"], Float[Array, "... D"]]:
        return self.h / self.J, 1 / self.J

    def full(self) -> Gaussian:
        return Gaussian(jax.vmap(jnp.diag)(self.J.reshape(-1, self.J.shape[-1])).reshape(*self.J.shape, -1), self.h)

    def log_partition(self) -> Float[Array, "..."]:
        return jnp.sum(self.h**2 / self.J - jnp.log(self.J) + jnp.log(2 * jnp.pi), -1) / 2

    def in_domain(self) -> Bool[Array, "..."]:
        return jnp.all((self.J > 0) & jnp.isfinite(self.J) & jnp.isfinite(self.h), -1)

    def sample(self, *, key: PRNGKeyArray) -> Float[Array, "... D"]:
        return self.h / self.J + jax.random.normal(key, self.h.shape, self.h.dtype) / jnp.sqrt(self.J)

    @staticmethod
    def statistics(x: Float[Array, "... D"]) -> "DiagonalGaussian":
        return DiagonalGaussian(-(x**2) / 2, x)
