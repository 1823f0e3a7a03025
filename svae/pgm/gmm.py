"""`gmm`: z ~ pi, x | z ~ N(mu_z, Sigma_z); the warped mixture of Sec. 2.1."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from svae.expfam import NIW, Dirichlet
from svae.messages import HMMChain
from svae.pgm._base import (
    AbstractPGM,
    Latents,
    Posterior,
    gaussian_step,
    log_normal_by_state,
    make_posterior,
    ones,
    select,
)
from svae.pgm._conditional import expected_penalty, independent, joint_with_one, log_prob_by_state, mix, residuals
from svae.pgm._mean_field import implicit
from svae.pgm._priors import dirichlet_prior, fit_dirichlet, fit_niw, niw_prior, stacked


class GMMGlobals(NamedTuple):
    weights: Dirichlet
    x: NIW


class GMM(AbstractPGM):
    prior: GMMGlobals
    solve: Callable = eqx.field(static=True, default=implicit)

    def infer(self, moments, potentials, mask, start=None) -> Posterior:
        log_pi = moments.weights.log_prob
        node = jnp.zeros((len(mask), len(log_pi)), log_pi.dtype) if start is None else start
        moments = moments._replace(x=residuals(moments.x))
        found = self.solve(_sweep, node, (moments, potentials, mask))
        states, expected, x = _factors(found.value, moments, potentials)
        log_z = jax.nn.logsumexp(log_pi[None] + found.value, -1)
        kl_z = jnp.sum(states * found.value, -1) - log_z
        kl = kl_z + x.kl + expected_penalty(expected, joint_with_one(x))
        z = HMMChain(log_pi, jnp.broadcast_to(log_pi, 2 * log_pi.shape), found.value, mask)
        return make_posterior(x, z, states, kl, potentials, mask, found.residual)

    def simulate(self, theta, length, *, key, start=None) -> Latents:
        key_z, key_x = jax.random.split(key)
        z = jax.random.categorical(key_z, theta.weights, shape=(length,))
        one = jnp.ones(1, theta.x.W.dtype)
        x = jax.vmap(lambda k, key: gaussian_step(select(theta.x, k), one, key=key))(z, jax.random.split(key_x, length))
        return Latents(x, z)

    def log_prob(self, theta, x, mask):
        node = log_normal_by_state(theta.x, x, ones(x))
        return jnp.where(mask, jax.nn.logsumexp(theta.weights[None] + node, -1), 0)

    def initialize(self, latents: list, states: list) -> GMMGlobals:
        x, w = stacked(latents, states)
        return GMMGlobals(fit_dirichlet(self.prior.weights, w.sum(0)), fit_niw(self.prior.x, x, w))


def _factors(node, moments, potentials):
    states = jax.nn.softmax(moments.weights.log_prob[None] + node, -1)
    expected = mix(moments.x, states)
    return states, expected, independent(expected, potentials)


def _sweep(node, args):
    moments, potentials, mask = args
    _, _, x = _factors(node, moments, potentials)
    return jnp.where(mask[:, None], log_prob_by_state(moments.x, joint_with_one(x)), 0)


def make(latent_dim: int, states: int, *, concentration: float, stickiness: float) -> GMM:
    del stickiness
    return GMM(GMMGlobals(dirichlet_prior(states, concentration=concentration), niw_prior(latent_dim, (states,))))
