"""`lds`: x_1 ~ N(mu, Sigma), x_t = A x_{t-1} + b + noise; exact inference by one pass of message passing (Sec. 2.2)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from svae import messages
from svae.expfam import MNIW, NIW
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
from svae.pgm._conditional import chain, chain_kl, expect, shared_penalty
from svae.pgm._priors import first_frames, fit_mniw, fit_niw, mniw_prior, niw_prior, one_state_only, regressions


class LDSGlobals(NamedTuple):
    first: NIW
    dynamics: MNIW


class LDS(AbstractPGM):
    prior: LDSGlobals

    def infer(self, moments, potentials, mask, start=None) -> Posterior:
        T, dtype = len(mask), potentials.h.dtype
        first, dynamics = expect(moments.first, 1), expect(moments.dynamics, T - 1)
        x = messages.gaussian.smooth(chain(first, dynamics, potentials, mask))
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


def make(latent_dim: int, states: int, *, concentration: float, stickiness: float) -> LDS:
    del states, concentration, stickiness
    return LDS(LDSGlobals(niw_prior(latent_dim), mniw_prior(latent_dim)))
