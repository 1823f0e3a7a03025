"""`gaussian`: x ~ N(mu, Sigma) with a normal inverse Wishart prior; a variational autoencoder that learns its prior."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from svae.expfam import NIW
from svae.pgm._base import AbstractPGM, Latents, Posterior, gaussian_step, log_normal, make_posterior, one_state, ones
from svae.pgm._conditional import expect, expected_penalty, independent, joint_with_one
from svae.pgm._priors import fit_niw, niw_prior, one_state_only, stacked


class GaussianGlobals(NamedTuple):
    x: NIW


class GaussianModel(AbstractPGM):
    prior: GaussianGlobals

    def infer(self, moments, potentials, mask, start=None) -> Posterior:
        T, dtype = len(mask), potentials.h.dtype
        expected = expect(moments.x, T)
        x = independent(expected, potentials)
        kl = x.kl + expected_penalty(expected, joint_with_one(x))
        return make_posterior(x, one_state(mask, dtype), jnp.ones((T, 1), dtype), kl, potentials, mask, jnp.zeros(()))

    def simulate(self, theta, length, *, key, start=None) -> Latents:
        one = jnp.ones(1, theta.x.W.dtype)
        x = jax.vmap(lambda k: gaussian_step(theta.x, one, key=k))(jax.random.split(key, length))
        return Latents(x, jnp.zeros(length, int))

    def log_prob(self, theta, x, mask):
        return jnp.where(mask, log_normal(theta.x, x, ones(x)), 0)

    def initialize(self, latents: list, states: list) -> GaussianGlobals:
        batched = jax.tree.map(lambda a: a[None], self.prior.x)
        fitted = fit_niw(batched, *stacked(latents, one_state_only(states)))
        return GaussianGlobals(jax.tree.map(lambda a: a[0], fitted))


def make(latent_dim: int, states: int, *, concentration: float, stickiness: float) -> GaussianModel:
    del states, concentration, stickiness
    return GaussianModel(GaussianGlobals(niw_prior(latent_dim)))
