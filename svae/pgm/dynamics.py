"""`Dynamics`: continuous, x_1 ~ N(mu, Sigma), x_t = A x_{t-1} + b + noise, all of them given the parents."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from svae import messages
from svae.expfam import MNIW, NIW
from svae.messages import GaussianChain, GaussianSmoothed
from svae.pgm._block import AbstractBlock, whole
from svae.pgm._conditional import Expected, chain, chain_kl
from svae.pgm._forms import cut
from svae.pgm._linear import gaussian_step, log_normal_by_state, ones, previous
from svae.pgm._priors import regressions
from svae.pgm.normal import form_of

# Steps up to which padding follows the dynamics, unseen: in float32 a mode may grow by 1.4 a step for so long.
LONGEST = 256


class DynamicsGlobals(NamedTuple):
    first: NIW | MNIW  # MNIW where offsets add
    dynamics: MNIW


class Local(NamedTuple):
    q: GaussianSmoothed
    first: Expected
    dynamics: Expected


@dataclass(frozen=True)
class Dynamics(AbstractBlock):
    """`given` parents choose A, b and the noise; `add` parents each add an offset to x_t, whose A they share."""

    size: int
    given: str | tuple[str, ...] = ()
    add: str | tuple[str, ...] = ()
    continuous = True
    remembers = True

    def __post_init__(self):
        whole("Dynamics", "dimensions", self.size)

    @property
    def form(self):
        return form_of(self)

    @property
    def _shares(self) -> bool:
        """Whether all steps have one conditional."""
        return not (self.given or self.add)

    def prior(self, sizes):
        prior = lambda chained: self.form.prior(self.size, sizes, chained=chained)  # noqa: E731
        return DynamicsGlobals(prior(False), prior(True))

    def initialize(self, prior, sizes, own, said):
        start, one = np.stack([x[0] for x in own]).astype(float), np.ones((len(own), 1))
        at_start = tuple(np.stack([w[0] for w in weights]) for weights in zip(*said, strict=True))
        first = self.form.fit(prior.first, one, start, at_start)
        later = tuple(np.concatenate([w[1:] for w in weights]) for weights in zip(*said, strict=True))
        return DynamicsGlobals(first, self.form.fit(prior.dynamics, *regressions(own), later))

    def tables(self, moments):
        return DynamicsGlobals(self.form.tables(moments.first), self.form.tables(moments.dynamics))

    def infer(self, tables, said, potential, mask):
        T = len(mask)
        first = self.form.forward(tables.first, cut(said, None, 1), 1)
        dynamics = self.form.forward(tables.dynamics, cut(said, 1, None), 1 if self._shares else T - 1)
        every = chain(first, dynamics, potential, mask)
        every = _shared(every, dynamics, mask) if self._shares and T <= LONGEST else every
        return Local(messages.gaussian.smooth(every), first, dynamics)

    def factor(self, local):
        return local.q

    def back(self, tables, local, said, i):
        start = jax.tree.map(lambda a: a[:1], local.q)
        first = self.form.back(tables.first, start, cut(said, None, 1), i)
        later = self.form.back_of_steps(tables.dynamics, local.q, cut(said, 1, None), i)
        return jnp.concatenate([first, later])

    def kl(self, tables, local, mask):
        penalty = self.form.penalty(tables.dynamics, local.dynamics, local.q)
        return chain_kl(local.q, local.first, penalty, mask)

    def frames(self, prior, q, sizes, i):
        return self.form.frames(prior.dynamics, q.dynamics, sizes, i)

    def simulate(self, theta, sizes, paths, length, *, key, start):
        key_first, key_rest = jax.random.split(key)
        one = jnp.ones(1, theta.first.W.dtype)
        at = lambda form, states: self.form.at(form, sizes, states)  # noqa: E731

        def advance(x, inputs):
            states, key = inputs
            following = gaussian_step(at(theta.dynamics, states), jnp.append(x, one), key=key)
            return following, following

        now, later = tuple(path[0] for path in paths), tuple(path[1:] for path in paths)
        if start is None:
            first = gaussian_step(at(theta.first, now), one, key=key_first)
        else:
            first, _ = advance(start[-1], (now, key_first))
        _, rest = jax.lax.scan(advance, first, (later, jax.random.split(key_rest, length - 1)))
        return jnp.concatenate([first[None], rest])

    def log_prob_by_state(self, theta, sizes, x):
        """log p(x_t | past, parents) for every combination of the parents' states (T, N)."""
        first, dynamics = (self.form.by_state(t, sizes) for t in theta)
        start = log_normal_by_state(first, x[:1], ones(x[:1]))
        return jnp.concatenate([start, log_normal_by_state(dynamics, x[1:], previous(x))])


def _shared(chain: GaussianChain, dynamics: Expected, mask: Bool[Array, " T"]) -> GaussianChain:
    """The chain with one transition for all steps, into padding too, whose potentials are nothing."""
    D = chain.h.shape[1]
    J, h = jnp.where(mask[:, None, None], chain.J, 0), jnp.where(mask[:, None], chain.h, 0)
    return GaussianChain(*chain[:2], dynamics.M[:, :, :D], dynamics.M[:, :, D], dynamics.sqrt, J, h)
