"""Matrix normal inverse Wishart over a linear-Gaussian conditional x | u ~ N(W u, Sigma).

`Sigma ~ IW(nu, S)`, `W | Sigma ~ MN(M, Sigma, K^-1)`. With u = (x_prev, 1) it is the prior of dynamics with an offset,
with u = x_prev of dynamics without one, and with u = 1 it is the normal inverse Wishart.
Statistics: (-W'Sigma^-1 W / 2, W'Sigma^-1, -Sigma^-1 / 2, -log|Sigma| / 2), multiplied by (uuT, uxT, xxT, nu).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import digamma, gammaln
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from svae._linalg import cholesky, cholesky_and_inverse, inv_tril, logdet_tril, mm, mT, phi, symmetrize
from svae.expfam._base import AbstractConjugatePrior


class MNIWNatural(NamedTuple):
    uuT: Float[Array, "... U U"]
    uxT: Float[Array, "... U D"]
    xxT: Float[Array, "... D D"]
    nu: Float[Array, "..."]


class ConditionalMoments(NamedTuple):
    """E log N(x; W u, Sigma) = log N(x; M u, L L') - u'E u / 2 - (logdet - log|L L'|) / 2 (nothing cancels)."""

    M: Float[Array, "... D U"]  # E[Sigma^-1]^-1 E[Sigma^-1 W]
    L: Float[Array, "... D D"]  # lower, L L' = E[Sigma^-1]^-1
    E: Float[Array, "... U U"]  # E[(W - M)' Sigma^-1 (W - M)] = D K^-1
    logdet: Float[Array, "..."]  # E log|Sigma|


class LinearGaussian(NamedTuple):
    """Parameters theta of x | u ~ N(W u, sqrt sqrt')."""

    W: Float[Array, "... D U"]
    sqrt: Float[Array, "... D D"]


class MNIW(AbstractConjugatePrior):
    M: Float[Array, "... D U"]
    S: Float[Array, "... D D"]
    K: Float[Array, "... U U"]
    nu: Float[Array, "..."]

    def natural(self) -> MNIWNatural:
        KM = mm(self.K, mT(self.M))
        return MNIWNatural(self.K, KM, self.S + mm(self.M, KM), self.nu)

    @classmethod
    def from_natural(cls, eta: MNIWNatural) -> "MNIW":
        K = symmetrize(eta.uuT)
        M = mT(_solve(K, eta.uxT))
        return cls(M, symmetrize(eta.xxT - mm(M, eta.uxT)), K, eta.nu)

    def log_partition(self) -> Float[Array, "..."]:
        D, U = self.M.shape[-2:]
        log_det_S, log_det_K = _logdet(self.S), _logdet(self.K)
        wishart = self.nu * D / 2 * jnp.log(2.0) + _multigammaln(self.nu / 2, D) - self.nu / 2 * log_det_S
        return wishart + D * U / 2 * jnp.log(2 * jnp.pi) - D / 2 * log_det_K

    def in_domain(self) -> Bool[Array, "..."]:
        D = self.S.shape[-1]
        proper = [jnp.all(jnp.isfinite(cholesky(A)), (-2, -1)) for A in (self.S, self.K)]
        return proper[0] & proper[1] & (self.nu > D - 1) & jnp.all(jnp.isfinite(self.M), (-2, -1))

    def moments(self) -> ConditionalMoments:
        D, root = self.S.shape[-1], cholesky(self.S)
        logdet = 2 * logdet_tril(root) - D * jnp.log(2.0) - _multidigamma(self.nu / 2, D)
        return ConditionalMoments(self.M, root / jnp.sqrt(self.nu)[..., None, None], D * _inverse(self.K), logdet)

    def moments_at_mean(self) -> ConditionalMoments:
        W, sqrt = self.mean()
        return ConditionalMoments(W, sqrt, jnp.zeros_like(self.K), 2 * logdet_tril(sqrt))

    def natural_gradient(self, prior: "MNIW", d_moments: ConditionalMoments) -> MNIWNatural:
        """In coordinates x -> x - M u, where q is (K, 0, S, nu) and the dual of the moments is immediate."""
        L = cholesky(self.S) / jnp.sqrt(self.nu)[..., None, None]
        lower = phi(mm(mT(L), jnp.tril(d_moments.L)))
        evidence = MNIWNatural(
            uuT=-2 * symmetrize(d_moments.E),
            uxT=mm(mT(d_moments.M), mm(L, mT(L))),
            xxT=mm(L, mm(lower + mT(lower), mT(L))),
            nu=-2 * d_moments.logdet,
        )
        shift = prior.M - self.M
        KM = mm(prior.K, mT(shift))
        return MNIWNatural(
            uuT=prior.K - self.K + evidence.uuT,
            uxT=KM + evidence.uxT,
            xxT=prior.S + mm(shift, KM) - self.S + evidence.xxT,
            nu=prior.nu - self.nu + evidence.nu,
        )

    def step(self, direction: MNIWNatural, rho: Float[Array, ""]) -> "MNIW":
        K = symmetrize(self.K + rho * direction.uuT)
        uxT = rho * direction.uxT
        dM = mT(_solve(K, uxT))
        S = symmetrize(self.S + rho * direction.xxT - mm(dM, uxT))
        return MNIW(self.M + dM, S, K, self.nu + rho * direction.nu)

    def uncentre(self, direction: MNIWNatural) -> MNIWNatural:
        return _shift(direction, self.M)

    def centre(self, direction: MNIWNatural) -> MNIWNatural:
        return _shift(direction, -self.M)

    def kl(self, prior: "MNIW") -> Float[Array, "..."]:
        D, U = self.M.shape[-2:]
        L, L_inv = cholesky_and_inverse(self.S)
        shift = mm(L_inv, prior.M - self.M)
        wishart = (
            _multigammaln(prior.nu / 2, D)
            - _multigammaln(self.nu / 2, D)
            + (self.nu - prior.nu) / 2 * _multidigamma(self.nu / 2, D)
            + prior.nu / 2 * (2 * logdet_tril(L) - _logdet(prior.S))
            + self.nu / 2 * (_trace(mm(mm(L_inv, prior.S), mT(L_inv))) - D)
        )
        ratio = _trace(mm(prior.K, _inverse(self.K)))
        normal = D * ratio - D * U + self.nu * _trace(mm(mm(shift, prior.K), mT(shift)))
        return wishart + (normal + D * (_logdet(self.K) - _logdet(prior.K))) / 2

    def sample(self, *, key: PRNGKeyArray) -> LinearGaussian:
        """Sigma by Bartlett's decomposition, then W = M + Sigma^(1/2) Z chol(K)^-1."""
        key_sigma, key_w = jax.random.split(key)
        sqrt = mm(cholesky(self.S), mT(inv_tril(_bartlett(self.nu, self.S.shape, key=key_sigma, dtype=self.S.dtype))))
        noise = jax.random.normal(key_w, self.M.shape, self.M.dtype)
        return LinearGaussian(self.M + mm(sqrt, mm(noise, inv_tril(cholesky(self.K)))), sqrt)

    def mean(self) -> LinearGaussian:
        """Point estimate: W = M and Sigma = E[Sigma^-1]^-1."""
        return LinearGaussian(self.M, self.moments().L)

    @staticmethod
    def statistics(theta: LinearGaussian) -> MNIWNatural:
        precision = _inverse(mm(theta.sqrt, mT(theta.sqrt)))
        WP = mm(mT(theta.W), precision)
        return MNIWNatural(-mm(WP, theta.W) / 2, WP, -precision / 2, _logdet(precision) / 2)


def _shift(eta: MNIWNatural, M: Float[Array, "... D U"]) -> MNIWNatural:
    """Natural parameters of (W + M, Sigma) from those of (W, Sigma): the linear map of x -> x + M u."""
    uxT = eta.uxT + mm(eta.uuT, mT(M))
    return MNIWNatural(eta.uuT, uxT, eta.xxT + mm(mT(eta.uxT), mT(M)) + mm(M, uxT), eta.nu)


def _inverse(A: Float[Array, "... D D"]) -> Float[Array, "... D D"]:
    R = cholesky_and_inverse(A)[1]
    return mm(mT(R), R)


def _solve(A: Float[Array, "... D D"], B: Float[Array, "... D N"]) -> Float[Array, "... D N"]:
    R = cholesky_and_inverse(A)[1]
    return mm(mT(R), mm(R, B))


def _logdet(A: Float[Array, "... D D"]) -> Float[Array, "..."]:
    return 2 * logdet_tril(cholesky(A))


def _trace(A: Float[Array, "... D D"]) -> Float[Array, "..."]:
    return jnp.trace(A, axis1=-2, axis2=-1)


def _halves(a: Float[Array, "..."], D: int) -> Float[Array, "... D"]:
    return a[..., None] - jnp.broadcast_to(jnp.arange(D, dtype=a.dtype) / 2, (*a.shape, D))


def _multigammaln(a: Float[Array, "..."], D: int) -> Float[Array, "..."]:
    return D * (D - 1) / 4 * jnp.log(jnp.pi) + jnp.sum(gammaln(_halves(a, D)), -1)


def _multidigamma(a: Float[Array, "..."], D: int) -> Float[Array, "..."]:
    return jnp.sum(digamma(_halves(a, D)), -1)


def _bartlett(nu: Float[Array, "..."], shape: tuple, *, key: PRNGKeyArray, dtype) -> Float[Array, "... D D"]:
    """Lower A with A A' ~ Wishart(I, nu): chi on the diagonal, normals below it."""
    key_chi, key_normal = jax.random.split(key)
    chi2 = 2 * jnp.exp(jax.random.loggamma(key_chi, _halves(nu / 2, shape[-1]), dtype=dtype))
    below = jnp.tril(jax.random.normal(key_normal, shape, dtype), -1)
    return below + jnp.sqrt(chi2)[..., None] * jnp.broadcast_to(jnp.eye(shape[-1], dtype=dtype), shape)
