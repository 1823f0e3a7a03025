"""`lds`: x_1 ~ N(mu, Sigma), x_t = A x_{t-1} + b + noise; exact inference by one pass of message passing (Sec. 2.2)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from svae import messages
from svae.expfam import MNIW, NIW
from svae.messages import GaussianChain
from svae.pgm._base import (
    AbstractPGM,
    Latents,
    Posterior,
    gaussian_step,
    log_normal,
    make_posterior,
    one_state,
    ones,
    previous,
)
from svae.pgm._conditional import Expected, chain, chain_kl, expect, shared_penalty
from svae.pgm._priors import first_frames, fit_mniw, fit_niw, mniw_prior, niw_prior, one_state_only, regressions

# Steps up to which padding follows the dynamics, unseen: in float32 a mode may grow by 1.4 a step for so long.
LONGEST = 256


class LDSGlobals(NamedTuple):
    first: NIW
    dynamics: MNIW


class LDS(AbstractPGM):
    prior: LDSGlobals

    def infer(self, moments, potentials, mask, start=None) -> Posterior:
        T, dtype = len(mask), potentials.h.dtype
        first, dynamics = expect(moments.first, 1), expect(moments.dynamics, 1)
        every = chain(first, dynamics, potentials, mask)
        x = messages.gaussian.smooth(every if T > LONGEST else _shared(every, dynamics, mask))
        kl = chain_kl(x, first, shared_penalty(moments.dynamics, x), mask)
        return make_posterior(x, one_state(mask, dtype), jnp.ones((T, 1), dtype), kl, potentials, mask, jnp.zeros(()))

    def simulate(self, theta, length, *, key, start=None) -> Latents:
        key_first, key_rest = jax.random.split(key)
        one = jnp.ones(1, theta.first.W.dtype)
        advance = lambda x, key: gaussian_step(theta.dynamics, jnp.append(x, one), key=key)  # noqa: E731
        first = gaussian_step(theta.first, one, key=key_first) if start is None else advance(start.x[-1], key_first)
        _, rest = jax.lax.scan(lambda x, k: 2 * (advance(x, k),), first, jax.random.split(key_rest, length - 1))
        return Latents(jnp.concatenate([first[None], rest]), jnp.zeros(length, int))

    def log_prob(self, theta, x, mask):
        first = log_normal(theta.first, x[:1], ones(x[:1]))
        later = log_normal(theta.dynamics, x[1:], previous(x))
        return jnp.where(mask, jnp.concatenate([first, later]), 0)

    def initialize(self, latents: list, states: list) -> LDSGlobals:
        single = one_state_only(states)
        batched = jax.tree.map(lambda a: a[None], self.prior)
        first = fit_niw(batched.first, *first_frames(latents, single))
        fitted = LDSGlobals(first, fit_mniw(batched.dynamics, *regressions(latents, single)))
        return jax.tree.map(lambda a: a[0], fitted)


def _shared(chain: GaussianChain, dynamics: Expected, mask: Bool[Array, " T"]) -> GaussianChain:
    """The chain with one transition for all steps, into padding too, whose potentials are nothing."""
    D = chain.h.shape[1]
    J, h = jnp.where(mask[:, None, None], chain.J, 0), jnp.where(mask[:, None], chain.h, 0)
    return GaussianChain(*chain[:2], dynamics.M[:, :, :D], dynamics.M[:, :, D], dynamics.sqrt, J, h)


def make(latent_dim: int, states: int, *, concentration: float, stickiness: float) -> LDS:
    del states, concentration, stickiness
    return LDS(LDSGlobals(niw_prior(latent_dim), mniw_prior(latent_dim)))
