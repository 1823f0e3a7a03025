"""`slds`: z a Markov chain, x_t = A_z x_{t-1} + b_z + noise; block mean field of the two chains (Sec. 2.3)."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from svae import messages
from svae.expfam import MNIW, NIW, Dirichlet
from svae.messages import HMMChain
from svae.pgm._base import (
    AbstractPGM,
    Latents,
    Posterior,
    gaussian_step,
    log_normal_by_state,
    make_posterior,
    ones,
    previous,
    select,
)
from svae.pgm._conditional import (
    chain,
    chain_kl,
    joint_with_one,
    log_prob_by_state,
    log_prob_of_steps,
    mix,
    residuals,
    steps_penalty,
)
from svae.pgm._markov import as_seen, simulate_states, state_chain
from svae.pgm._mean_field import implicit
from svae.pgm._priors import (
    dirichlet_prior,
    first_counts,
    first_frames,
    fit_dirichlet,
    fit_mniw,
    fit_niw,
    mniw_prior,
    niw_prior,
    regressions,
    sticky_prior,
    transition_counts,
)


class SLDSGlobals(NamedTuple):
    init: Dirichlet
    transitions: Dirichlet
    first: NIW
    dynamics: MNIW


class SLDS(AbstractPGM):
    prior: SLDSGlobals
    solve: Callable = eqx.field(static=True, default=implicit)

    def infer(self, moments, potentials, mask, start=None) -> Posterior:
        zero = jnp.zeros((len(mask), len(moments.init.log_prob)), potentials.h.dtype)
        moments = tables(moments)
        found = self.solve(_sweep, zero if start is None else start, (moments, potentials, mask))
        z_chain, z, first, dynamics, x = _factors(found.value, moments, potentials, mask)
        kl = z.kl + chain_kl(x, first, steps_penalty(dynamics, x), mask)
        return make_posterior(x, z_chain, z.states, kl, potentials, mask, found.residual)

    def simulate(self, theta, length, *, key, start=None) -> Latents:
        key_z, key_first, key_rest = jax.random.split(key, 3)
        z = simulate_states(theta, length, key=key_z, start=start)
        one = jnp.ones(1, theta.first.W.dtype)

        def advance(x, inputs):
            k, key = inputs
            following = gaussian_step(select(theta.dynamics, k), jnp.append(x, one), key=key)
            return following, following

        if start is None:
            first = gaussian_step(select(theta.first, z[0]), one, key=key_first)
        else:
            first, _ = advance(start.x[-1], (z[0], key_first))
        _, rest = jax.lax.scan(advance, first, (z[1:], jax.random.split(key_rest, length - 1)))
        return Latents(jnp.concatenate([first[None], rest]), z)

    def log_prob(self, theta, x, mask):
        first = log_normal_by_state(theta.first, x[:1], ones(x[:1]))
        node = jnp.concatenate([first, log_normal_by_state(theta.dynamics, x[1:], previous(x))])
        return messages.hmm.filter(HMMChain(theta.init, theta.transitions, node, mask)).log_z

    def as_seen(self, q: SLDSGlobals) -> SLDSGlobals:
        return q._replace(
            transitions=as_seen(q.transitions, self.prior.transitions, q.dynamics.nu - self.prior.dynamics.nu)
        )

    def initialize(self, latents: list, states: list) -> SLDSGlobals:
        return SLDSGlobals(
            fit_dirichlet(self.prior.init, first_counts(states)),
            fit_dirichlet(self.prior.transitions, transition_counts(states)),
            fit_niw(self.prior.first, *first_frames(latents, states)),
            fit_mniw(self.prior.dynamics, *regressions(latents, states)),
        )


def tables(moments: SLDSGlobals) -> SLDSGlobals:
    """Expected statistics with the conditionals as the sweeps take them: made once for all of them."""
    return moments._replace(first=residuals(moments.first), dynamics=residuals(moments.dynamics))


def _factors(node, moments, potentials, mask):
    z_chain = state_chain(moments, node, mask)
    z = messages.hmm.smooth(z_chain)
    first, dynamics = mix(moments.first, z.states[:1]), mix(moments.dynamics, z.states[1:])
    return z_chain, z, first, dynamics, messages.gaussian.smooth(chain(first, dynamics, potentials, mask))


def _sweep(node, args):
    moments, potentials, mask = args
    x = _factors(node, moments, potentials, mask)[-1]
    first = log_prob_by_state(moments.first, joint_with_one(jax.tree.map(lambda a: a[:1], x)))
    later = log_prob_of_steps(moments.dynamics, x)
    return jnp.where(mask[:, None], jnp.concatenate([first, later]), 0)


def make(latent_dim: int, states: int, *, concentration: float, stickiness: float) -> SLDS:
    prior = SLDSGlobals(
        dirichlet_prior(states, concentration=concentration),
        sticky_prior(states, concentration=concentration, stickiness=stickiness),
        niw_prior(latent_dim, (states,)),
        mniw_prior(latent_dim, (states,)),
    )
    return SLDS(prior)
