"""`hmm`: z a Markov chain, x_t | z_t ~ N(mu_z, Sigma_z)."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from svae import messages
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
from svae.pgm._markov import as_seen, simulate_states, state_chain
from svae.pgm._mean_field import implicit
from svae.pgm._priors import (
    dirichlet_prior,
    first_counts,
    fit_dirichlet,
    fit_niw,
    niw_prior,
    stacked,
    sticky_prior,
    transition_counts,
)


class HMMGlobals(NamedTuple):
    init: Dirichlet
    transitions: Dirichlet
    x: NIW


class HMM(AbstractPGM):
    prior: HMMGlobals
    solve: Callable = eqx.field(static=True, default=implicit)

    def infer(self, moments, potentials, mask, start=None) -> Posterior:
        zero = jnp.zeros((len(mask), len(moments.init.log_prob)), potentials.h.dtype)
        moments = moments._replace(x=residuals(moments.x))
        found = self.solve(_sweep, zero if start is None else start, (moments, potentials, mask))
        chain, z, expected, x = _factors(found.value, moments, potentials, mask)
        kl = z.kl + x.kl + expected_penalty(expected, joint_with_one(x))
        return make_posterior(x, chain, z.states, kl, potentials, mask, found.residual)

    def simulate(self, theta, length, *, key, start=None) -> Latents:
        key_z, key_x = jax.random.split(key)
        z = simulate_states(theta, length, key=key_z, start=start)
        one = jnp.ones(1, theta.x.W.dtype)
        x = jax.vmap(lambda k, key: gaussian_step(select(theta.x, k), one, key=key))(z, jax.random.split(key_x, length))
        return Latents(x, z)

    def log_prob(self, theta, x, mask):
        node = log_normal_by_state(theta.x, x, ones(x))
        return messages.hmm.filter(HMMChain(theta.init, theta.transitions, node, mask)).log_z

    def as_seen(self, q: HMMGlobals) -> HMMGlobals:
        return q._replace(transitions=as_seen(q.transitions, self.prior.transitions, q.x.nu - self.prior.x.nu))

    def initialize(self, latents: list, states: list) -> HMMGlobals:
        return HMMGlobals(
            fit_dirichlet(self.prior.init, first_counts(states)),
            fit_dirichlet(self.prior.transitions, transition_counts(states)),
            fit_niw(self.prior.x, *stacked(latents, states)),
        )


def _factors(node, moments, potentials, mask):
    chain = state_chain(moments, node, mask)
    z = messages.hmm.smooth(chain)
    expected = mix(moments.x, z.states)
    return chain, z, expected, independent(expected, potentials)


def _sweep(node, args):
    moments, potentials, mask = args
    x = _factors(node, moments, potentials, mask)[-1]
    return jnp.where(mask[:, None], log_prob_by_state(moments.x, joint_with_one(x)), 0)


def make(latent_dim: int, states: int, *, concentration: float, stickiness: float) -> HMM:
    init = dirichlet_prior(states, concentration=concentration)
    rows = sticky_prior(states, concentration=concentration, stickiness=stickiness)
    return HMM(HMMGlobals(init, rows, niw_prior(latent_dim, (states,))))
