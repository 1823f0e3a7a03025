"""What every latent model offers: a conjugate prior, inference given potentials, simulation, and initialisation."""

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from svae import messages
from svae._linalg import inv_tril, logdet_tril, mm, mT, tria
from svae.expfam import Gaussian, LinearGaussian
from svae.messages import GaussianSmoothed, HMMChain


class Latents(NamedTuple):
    """Local latent variables of one sequence; models without discrete states have z = 0 throughout."""

    x: Float[Array, "T D"]
    z: Int[Array, " T"]


class Posterior(eqx.Module):
    """q*(x) q*(z) of one sequence, the optimum of the surrogate objective (Sec. 4.2)."""

    x: GaussianSmoothed
    z: HMMChain  # q(z): prior in expectation times the node potentials that produced it
    states: Float[Array, "T K"]  # E z_t; a model without discrete states has K = 1
    kl: Float[Array, " T"]  # per step; sums to E_q(theta) KL(q*(x, z) || p(x, z | theta))
    log_normalizer: Float[
        Array, " T"
    ]  # E_q psi_t - kl_t: the surrogate bound, whose derivative in E t(theta) is E t(x)
    residual: Float[Array, ""]  # of the mean field fixed point

    def sample(self, *, key: PRNGKeyArray) -> Float[Array, "T D"]:
        """x ~ q*(x), reparameterised."""
        return messages.gaussian.sample(self.x, key=key)

    def sample_states(self, *, key: PRNGKeyArray) -> Int[Array, " T"]:
        return messages.hmm.sample(self.z, key=key)

    def viterbi(self) -> Int[Array, " T"]:
        return messages.hmm.viterbi(self.z)

    def mean(self) -> Float[Array, "T D"]:
        return self.x.mean

    def sd(self) -> Float[Array, "T D"]:
        return jnp.sqrt(jnp.sum(self.x.sqrt**2, -1))


class AbstractPGM(eqx.Module):
    """A latent graphical model p(theta) p(x, z | theta)."""

    prior: eqx.AbstractVar[Any]  # natural parameters of p(theta): a tree of conjugate priors

    @abstractmethod
    def infer(
        self, moments: Any, potentials: Gaussian, mask: Bool[Array, " T"], start: Float[Array, "T K"] | None = None
    ) -> Posterior:
        """q*(x) of one sequence given E_q t(theta) and potentials psi (T steps); mean field begins at `start`."""

    @abstractmethod
    def simulate(self, theta: Any, length: int, *, key: PRNGKeyArray, start: Latents | None = None) -> Latents:
        """x, z ~ p(x, z | theta); with `start` (latents of any length) the `length` steps that follow its last one."""

    @abstractmethod
    def log_prob(self, theta: Any, x: Float[Array, "T D"], mask: Bool[Array, " T"]) -> Float[Array, " T"]:
        """log p(x_t | x_1..x_{t-1}, theta), the states summed over; 0 at padding."""

    def as_seen(self, q: Any) -> Any:
        """q(theta) without the sticky counts that price a switch: what simulations are drawn from."""
        return q

    @abstractmethod
    def initialize(self, latents: list, states: list) -> Any:
        """q(theta) = prior + complete-data statistics of latents (T_i, D) and states (T_i, K), in numpy float64."""


def expected_potential(potentials: Gaussian, q: GaussianSmoothed) -> Float[Array, " T"]:
    """E_q psi_t(x_t) = h'm - (m'J m + tr J P) / 2."""
    second = jnp.sum(mm(potentials.J, q.sqrt) * q.sqrt, (-2, -1))
    Jm = mm(potentials.J, q.mean[..., None])[..., 0]
    return jnp.sum(q.mean * (potentials.h - Jm / 2), -1) - second / 2


def one_state(mask: Bool[Array, " T"], dtype) -> HMMChain:
    """The chain of a model without discrete states."""
    return HMMChain(jnp.zeros(1, dtype), jnp.zeros((1, 1), dtype), jnp.zeros((len(mask), 1), dtype), mask)


def make_posterior(x, z, states, kl, potentials, mask, residual) -> Posterior:
    """Assemble a posterior whose padded steps count for nothing."""
    kl = jnp.where(mask, kl, 0)
    surrogate = jnp.where(mask, expected_potential(potentials, x), 0) - kl
    return Posterior(x, z, states, kl, surrogate, residual)


def gaussian_step(theta, u: Float[Array, " U"], *, key: PRNGKeyArray) -> Float[Array, " D"]:
    """x ~ N(W u, sqrt sqrt')."""
    return theta.W @ u + theta.sqrt @ jax.random.normal(key, theta.W.shape[:1], theta.W.dtype)


def log_normal(theta: LinearGaussian, x: Float[Array, "T D"], u: Float[Array, "T U"]) -> Float[Array, " T"]:
    """log N(x_t; W u_t, sqrt sqrt')."""
    L = tria(theta.sqrt)
    whitened = mm(inv_tril(L), mT(x - mm(u, mT(theta.W))))
    return -jnp.sum(whitened**2, 0) / 2 - logdet_tril(L) - x.shape[-1] / 2 * jnp.log(2 * jnp.pi)


def log_normal_by_state(theta: LinearGaussian, x: Float[Array, "T D"], u: Float[Array, "T U"]) -> Float[Array, "T K"]:
    """`log_normal` of each of K conditionals."""
    return mT(jax.vmap(log_normal, (0, None, None))(theta, x, u))


def ones(x: Float[Array, "T D"]) -> Float[Array, "T 1"]:
    """The regressor u = 1 of independent steps."""
    return jnp.ones((len(x), 1), x.dtype)


def previous(x: Float[Array, "T D"]) -> Float[Array, "T-1 U"]:
    """The regressors u_t = (x_{t-1}, 1) of a chain."""
    return jnp.concatenate([x, ones(x)], -1)[:-1]


def select(theta, k: Int[Array, ""]):
    """Parameters of state k of a batch of K."""
    return jax.tree.map(lambda leaf: leaf[k], theta)
