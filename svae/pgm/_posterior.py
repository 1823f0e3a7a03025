"""q*(x, z) of one sequence: a factor for each block, by name."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from svae import messages
from svae._linalg import inv_tril, logdet_tril, mm, mv
from svae.expfam import Gaussian
from svae.messages import GaussianSmoothed, HMMChain, HSMMChain

Numbers = Array | np.ndarray  # a posterior that was read out holds numpy's


class SemiMarkovPath(NamedTuple):
    """The state of every frame, and how many frames of its bout are still to come."""

    states: Int[Array, "*B T"]
    remaining: Int[Array, "*B T"]


class Hidden(eqx.Module):
    """q of a hidden chain."""

    chain: HMMChain  # the prior in expectation times the node potentials that produced q
    states: Float[Array, "*B T K"]

    @property
    def node(self) -> Float[Numbers, "*B T K"]:
        return self.chain.node

    def with_node(self, node: Float[Array, "T K"]) -> "Hidden":
        """The chain that other potentials make; its marginals are still those of the old ones."""
        return Hidden(self.chain._replace(node=node), self.states)

    def sample(self, *, key: PRNGKeyArray) -> Int[Array, " T"]:
        return messages.hmm.sample(self.chain, key=key)

    def viterbi(self) -> Int[Array, " T"]:
        return messages.hmm.viterbi(self.chain)


class SemiHidden(eqx.Module):
    """q of a hidden chain of bouts."""

    chain: HSMMChain  # as of Hidden
    states: Float[Array, "*B T K"]

    @property
    def node(self) -> Float[Numbers, "*B T K"]:
        return self.chain.node

    def with_node(self, node: Float[Array, "T K"]) -> "SemiHidden":
        """The chain that other potentials make; its marginals are still those of the old ones."""
        return SemiHidden(self.chain._replace(node=node), self.states)

    def sample(self, *, key: PRNGKeyArray) -> Int[Array, " T"]:
        return messages.hsmm.sample(self.chain, key=key).states

    def viterbi(self) -> Int[Array, " T"]:
        return messages.hsmm.viterbi(self.chain).states

    def draw_frame(self, t: Int[Array, ""], *, key: PRNGKeyArray) -> tuple[Int[Array, ""], Int[Array, ""]]:
        """The state of frame t and how many frames of its bout are still to come."""
        path = messages.hsmm.sample(self.chain, key=key)
        return path.states[t], path.remaining[t]


class Independent(eqx.Module):
    """q of states that do not see each other."""

    log_prior: Float[Array, "*B S K"]  # E log pi, of every step or of all
    node: Float[Array, "*B T K"]
    states: Float[Array, "*B T K"]

    def with_node(self, node: Float[Array, "T K"]) -> "Independent":
        """What other potentials make of it."""
        return Independent(self.log_prior, node, jax.nn.softmax(self.log_prior + node, -1))

    def sample(self, *, key: PRNGKeyArray) -> Int[Array, " T"]:
        return jax.random.categorical(key, self.log_prior + self.node)

    def viterbi(self) -> Int[Array, " T"]:
        return jnp.argmax(self.log_prior + self.node, -1)


class Posterior(eqx.Module):
    """q*(x, z) of one sequence, the optimum of the surrogate objective (Sec. 4.2)."""

    factors: Any  # by block: GaussianSmoothed of a continuous one; of a discrete one what has states, sample, viterbi
    kl: Float[Array, "*B T"]  # per step; sums to E_q(theta) KL(q*(x, z) || p(x, z | theta))
    log_normalizer: Float[
        Array, "*B T"
    ]  # E_q psi_t - kl_t: the surrogate bound; its derivative in E t(theta) is E t(x)
    residual: Float[Array, "*B"]  # of the mean field fixed point
    shown: str | None = eqx.field(static=True)  # the discrete block that `states` and `viterbi` speak of
    heard: dict[str, Any] = eqx.field(default_factory=dict)  # what parents of the frame before said in mean field
    surrogates: tuple = ()  # of the conditionals that are not conjugate

    @property
    def continuous(self) -> list[GaussianSmoothed]:
        """The factors of all continuous blocks, in their order."""
        return [factor for factor in self.factors if isinstance(factor, GaussianSmoothed)]

    @property
    def discrete(self) -> dict[str, Any]:
        """The factors of all discrete blocks, by name."""
        every = self.factors._asdict().items()
        return {name: factor for name, factor in every if not isinstance(factor, GaussianSmoothed)}

    def mean(self) -> Float[Numbers, "*B T D"]:
        """E x_t, all continuous blocks side by side."""
        return side_by_side([q.mean for q in self.continuous])

    def sd(self) -> Float[Numbers, "*B T D"]:
        return side_by_side([jnp.sqrt(jnp.sum(q.sqrt**2, -1)) for q in self.continuous])

    def sample(self, *, key: PRNGKeyArray) -> Float[Array, "T D"]:
        """x ~ q*(x), reparameterised."""
        keys = keys_of(key, len(self.continuous))
        return side_by_side([messages.gaussian.sample(q, key=k) for q, k in zip(self.continuous, keys, strict=True)])

    @property
    def states(self) -> Float[Numbers, "*B T K"]:
        """E z_t of the block that is shown; K = 1 in a model without discrete states."""
        return jnp.ones((*self.kl.shape, 1), self.kl.dtype) if self.shown is None else self._shown.states

    def viterbi(self) -> Int[Array, " T"]:
        """The most probable path of the block that is shown."""
        return jnp.zeros(self.kl.shape, int) if self.shown is None else self._shown.viterbi()

    @property
    def _shown(self):
        return getattr(self.factors, self.shown)

    def nodes(self) -> dict[str, Float[Numbers, "*B T K"]]:
        """The potentials that each discrete factor is made from: a point from which mean field can begin again."""
        return {name: factor.node for name, factor in self.discrete.items()} | self.heard

    def gap(self, x: Float[Array, "T D"]) -> Float[Array, " T"] | None:
        """At a draw x, the true score of conditionals that are not conjugate less that of their surrogates.

        `kl` has the surrogates' score; E kl - gap is the KL of the model. None where all conditionals are conjugate.
        """
        gaps = [surrogate.gap(x) for surrogate in self.surrogates]
        return sum(gaps[1:], gaps[0]) if gaps else None

    def draw_frame(self, t: Int[Array, ""], *, key_x: PRNGKeyArray, key_z: PRNGKeyArray) -> Any:
        """Latents of frame t alone, each block on its own: a path of one step from which a simulation goes on."""
        keys_x = iter(keys_of(key_x, len(self.continuous)))
        keys_z = iter(keys_of(key_z, len(self.discrete)))

        def draw(factor):
            if isinstance(factor, GaussianSmoothed):
                noise = jax.random.normal(next(keys_x), factor.mean[t].shape, factor.mean.dtype)
                return (factor.mean[t] + mv(factor.sqrt[t], noise))[None]
            if isinstance(factor, SemiHidden):
                return SemiMarkovPath(*(a[None] for a in factor.draw_frame(t, key=next(keys_z))))
            return jax.random.categorical(next(keys_z), jnp.log(factor.states[t]))[None]

        return type(self.factors)(*map(draw, self.factors))

    def log_density(self, x: Float[Array, "T D"], mask: Bool[Array, " T"]) -> Float[Array, " T"]:
        """log q*(x_t | x_{t+1}), step by step: the density of the draws that `sample` makes, backwards in time."""
        total, first = jnp.zeros(len(x), x.dtype), 0
        for q in self.continuous:
            total = total + _log_density(q, x[:, first : first + q.mean.shape[-1]], mask)
            first += q.mean.shape[-1]
        return total


def _log_density(q: GaussianSmoothed, x: Float[Array, "T D"], mask: Bool[Array, " T"]) -> Float[Array, " T"]:
    """The last real step is on its own, whatever is drawn in the padding after it."""
    away, real = x - q.mean, mask[1:, None, None]
    following = jnp.concatenate([jnp.where(real[..., 0], mv(q.gain, away[1:]), 0), jnp.zeros_like(away[:1])])
    root = jnp.concatenate([jnp.where(real, q.back_sqrt, q.sqrt[:-1]), q.sqrt[-1:]])
    noise = mv(inv_tril(root), away - following)
    return -jnp.sum(noise**2, -1) / 2 - logdet_tril(root) - x.shape[-1] / 2 * jnp.log(2 * jnp.pi)


def side_by_side(parts: list) -> Any:
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts, -1)


def keys_of(key: PRNGKeyArray, number: int) -> list:
    """A key for each of them: the key itself where there is one.

    Args:
        key: The random key.
        number: How many are wanted.

    Returns:
        Keys.
    """
    return [key] if number == 1 else list(jax.random.split(key, max(number, 1)))


def expected_potential(potentials: Gaussian, q: GaussianSmoothed) -> Float[Array, " T"]:
    """E_q psi_t(x_t) = h'm - (m'J m + tr J P) / 2."""
    second = jnp.sum(mm(potentials.J, q.sqrt) * q.sqrt, (-2, -1))
    Jm = mm(potentials.J, q.mean[..., None])[..., 0]
    return jnp.sum(q.mean * (potentials.h - Jm / 2), -1) - second / 2
