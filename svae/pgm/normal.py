"""`Normal`: continuous, x_t | parents ~ N(mu, Sigma), each step on its own given them."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from svae.expfam import MNIW, NIW, ConditionalMoments, LinearGaussian
from svae.messages import GaussianSmoothed
from svae.pgm._additive import Additive
from svae.pgm._block import AbstractBlock, whole
from svae.pgm._conditional import Expected, expected_penalty, independent, joint_with_one
from svae.pgm._conditional_forms import Alone, Table
from svae.pgm._linear import gaussian_step, log_normal_by_state, ones


class NormalGlobals(NamedTuple):
    normal: NIW | MNIW  # MNIW where offsets add


class Local(NamedTuple):
    q: GaussianSmoothed
    expected: Expected


@dataclass(frozen=True)
class Normal(AbstractBlock):
    """`given` parents choose mu and Sigma, `add` parents add offsets to mu; `learned=False` is N(0, I), fixed."""

    size: int
    given: str | tuple[str, ...] = ()
    add: str | tuple[str, ...] = ()
    learned: bool = True
    continuous = True
    remembers = False  # whether a step depends on the one before

    def __post_init__(self):
        whole("Normal", "dimensions", self.size)

    @property
    def form(self):
        return form_of(self)

    def prior(self, sizes):
        return NormalGlobals(self.form.prior(self.size, sizes, chained=False)) if self.learned else ()

    def initialize(self, prior, sizes, own, said):
        if not self.learned:
            return prior
        x = np.concatenate(own).astype(float)
        every = tuple(np.concatenate(weights) for weights in zip(*said, strict=True))
        return NormalGlobals(self.form.fit(prior.normal, np.ones((len(x), 1)), x, every))

    def tables(self, moments):
        return self.form.tables(moments.normal) if self.learned else _unit_moments(self.size)

    def infer(self, tables, said, potential, mask):
        expected = self.form.forward(tables, said, len(mask))
        return Local(independent(expected, potential), expected)

    def factor(self, local):
        return local.q

    def back(self, tables, local, said, i):
        return self.form.back(tables, local.q, said, i)

    def kl(self, tables, local, mask):
        if not self.learned:
            return local.q.kl
        return local.q.kl + expected_penalty(local.expected, joint_with_one(local.q))

    def frames(self, prior, q, sizes, i):
        return self.form.frames(prior.normal, q.normal, sizes, i)

    def simulate(self, theta, sizes, paths, length, *, key, start):
        theta = self._known(theta)
        one = jnp.ones(1, theta.W.dtype)
        draw = lambda states, key: gaussian_step(self.form.at(theta, sizes, states), one, key=key)  # noqa: E731
        return jax.vmap(draw)(paths, jax.random.split(key, length))

    def log_prob_by_state(self, theta, sizes, x):
        """log p(x_t | past, parents) for every combination of the parents' states (T, N)."""
        return log_normal_by_state(self.form.by_state(self._known(theta), sizes), x, ones(x))

    def _known(self, theta):
        return theta.normal if self.learned else LinearGaussian(jnp.zeros((self.size, 1)), jnp.eye(self.size))


def _unit_moments(D: int) -> ConditionalMoments:
    return ConditionalMoments(jnp.zeros((D, 1)), jnp.eye(D), jnp.zeros((1, 1)), jnp.zeros(()))


def form_of(block: AbstractBlock) -> Any:
    """How the block's conditionals depend on its parents."""
    return Additive() if block.add else Table() if block.given else Alone()
