"""`vae`: x ~ N(0, I), fixed; the variational autoencoder of Kingma and Welling, the baseline of every other model."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from svae.expfam import ConditionalMoments, LinearGaussian
from svae.pgm._base import AbstractPGM, Latents, Posterior, gaussian_step, log_normal, make_posterior, one_state, ones
from svae.pgm._conditional import expect, independent


class Standard(AbstractPGM):
    prior: Any  # nothing to learn: an empty tree
    latent_dim: int = eqx.field(static=True)

    def infer(self, moments, potentials, mask, start=None) -> Posterior:
        T, D = potentials.h.shape
        dtype = potentials.h.dtype
        identity = jnp.eye(D, dtype=dtype)
        unit = ConditionalMoments(jnp.zeros((D, 1), dtype), identity, jnp.zeros((1, 1), dtype), jnp.zeros((), dtype))
        x = independent(expect(unit, T), potentials)
        return make_posterior(x, one_state(mask, dtype), jnp.ones((T, 1), dtype), x.kl, potentials, mask, jnp.zeros(()))

    def simulate(self, theta, length, *, key, start=None) -> Latents:
        unit = LinearGaussian(jnp.zeros((self.latent_dim, 1)), jnp.eye(self.latent_dim))
        keys = jax.random.split(key, length)
        return Latents(jax.vmap(lambda k: gaussian_step(unit, jnp.ones(1), key=k))(keys), jnp.zeros(length, int))

    def log_prob(self, theta, x, mask):
        unit = LinearGaussian(jnp.zeros((self.latent_dim, 1), x.dtype), jnp.eye(self.latent_dim, dtype=x.dtype))
        return jnp.where(mask, log_normal(unit, x, ones(x)), 0)

    def initialize(self, latents: list, states: list):
        del latents, states
        return self.prior


def make(latent_dim: int, states: int, *, concentration: float, stickiness: float) -> Standard:
    del states, concentration, stickiness
    return Standard((), latent_dim)
