"""Normal inverse Wishart over the mean and covariance of a Gaussian: the MNIW of a constant regressor, u = 1.

`Sigma ~ IW(nu, S)`, `mu | Sigma ~ N(m, Sigma / n)`.
Statistics: (-Sigma^-1 / 2, Sigma^-1 mu, -mu'Sigma^-1 mu / 2, -log|Sigma| / 2), multiplied by (xxT, x, n, nu).
"""

from typing import NamedTuple

from jaxtyping import Array, Bool, Float, PRNGKeyArray

from svae.expfam._base import AbstractConjugatePrior
from svae.expfam.mniw import MNIW, ConditionalMoments, LinearGaussian, MNIWNatural


class NIWNatural(NamedTuple):
    xxT: Float[Array, "... D D"]
    x: Float[Array, "... D"]
    n: Float[Array, "..."]
    nu: Float[Array, "..."]


class NIW(AbstractConjugatePrior):
    m: Float[Array, "... D"]
    S: Float[Array, "... D D"]
    n: Float[Array, "..."]
    nu: Float[Array, "..."]

    def as_mniw(self) -> MNIW:
        return MNIW(self.m[..., None], self.S, self.n[..., None, None], self.nu)

    def natural(self) -> NIWNatural:
        return _narrow(self.as_mniw().natural())

    @classmethod
    def from_natural(cls, eta: NIWNatural) -> "NIW":
        return _from_mniw(MNIW.from_natural(_widen(eta)))

    def log_partition(self) -> Float[Array, "..."]:
        return self.as_mniw().log_partition()

    def in_domain(self) -> Bool[Array, "..."]:
        return self.as_mniw().in_domain()

    def moments(self) -> ConditionalMoments:
        return self.as_mniw().moments()

    def moments_at_mean(self) -> ConditionalMoments:
        return self.as_mniw().moments_at_mean()

    def natural_gradient(self, prior: "NIW", d_moments: ConditionalMoments) -> NIWNatural:
        return _narrow(self.as_mniw().natural_gradient(prior.as_mniw(), d_moments))

    def step(self, direction: NIWNatural, rho: Float[Array, ""]) -> "NIW":
        return _from_mniw(self.as_mniw().step(_widen(direction), rho))

    def uncentre(self, direction: NIWNatural) -> NIWNatural:
        return _narrow(self.as_mniw().uncentre(_widen(direction)))

    def centre(self, direction: NIWNatural) -> NIWNatural:
        return _narrow(self.as_mniw().centre(_widen(direction)))

    def kl(self, prior: "NIW") -> Float[Array, "..."]:
        return self.as_mniw().kl(prior.as_mniw())

    def sample(self, *, key: PRNGKeyArray) -> LinearGaussian:
        return self.as_mniw().sample(key=key)

    def mean(self) -> LinearGaussian:
        return self.as_mniw().mean()

    @staticmethod
    def statistics(theta: LinearGaussian) -> NIWNatural:
        return _narrow(MNIW.statistics(theta))


def _from_mniw(family: MNIW) -> NIW:
    return NIW(family.M[..., 0], family.S, family.K[..., 0, 0], family.nu)


def _widen(eta: NIWNatural) -> MNIWNatural:
    return MNIWNatural(eta.n[..., None, None], eta.x[..., None, :], eta.xxT, eta.nu)


def _narrow(eta: MNIWNatural) -> NIWNatural:
    return NIWNatural(eta.xxT, eta.uxT[..., 0, :], eta.uuT[..., 0, 0], eta.nu)
