"""How a linear-Gaussian conditional depends on its discrete parents: not at all, or by a table over their states.

`_additive` is the third form. A form offers, of one conditional p(x | u, parents): what it says forward, given the
marginals of the parents, as an `Expected`; what it says back to a parent; and its densities.
"""

from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from svae.expfam import MNIW, NIW, ConditionalMoments, LinearGaussian
from svae.messages import GaussianSmoothed
from svae.pgm._block import Said, Sizes, combinations, index, joint, rows_of, summed, towards
from svae.pgm._conditional import (
    Expected,
    Residuals,
    expect,
    joint_with_one,
    log_prob_by_state,
    log_prob_of_bent,
    log_prob_of_driven,
    log_prob_of_steps,
    mix,
    residuals,
    shared_penalty,
    steps_penalty,
)
from svae.pgm._linear import select
from svae.pgm._priors import fit_mniw, fit_niw, mniw_prior, niw_prior


class Alone:
    """The same conditional for every step."""

    def prior(self, D: int, sizes: Sizes, *, chained: bool, inputs: int = 0) -> Any:
        return mniw_prior(D, inputs=inputs) if chained else niw_prior(D)

    def fit(self, prior: Any, u: np.ndarray, x: np.ndarray, said: Said) -> Any:
        batched = jax.tree.map(lambda a: a[None], prior)
        return jax.tree.map(lambda a: a[0], _fit(batched, u, x, np.ones((len(x), 1))))

    def tables(self, moments: ConditionalMoments) -> ConditionalMoments:
        return moments

    def forward(self, tables: ConditionalMoments, said: Said, steps: int) -> Expected:
        return expect(tables, steps)

    def penalty(self, tables: ConditionalMoments, expected: Expected, q: GaussianSmoothed) -> Float[Array, " N"]:
        """What the normalised conditional of every step after the first leaves out."""
        return shared_penalty(tables, q)

    def at(self, theta: LinearGaussian, sizes: Sizes, states: Said) -> LinearGaussian:
        """The conditional of one step, given the parents' states."""
        return theta

    def by_state(self, theta: LinearGaussian, sizes: Sizes) -> LinearGaussian:
        """The conditional of each combination of states, along a first axis."""
        return jax.tree.map(lambda a: a[None], theta)


class Table:
    """A conditional for every combination of the parents' states."""

    def prior(self, D: int, sizes: Sizes, *, chained: bool, inputs: int = 0) -> Any:
        batch = (combinations(sizes),)
        return mniw_prior(D, batch, inputs=inputs) if chained else niw_prior(D, batch)

    def fit(self, prior: Any, u: np.ndarray, x: np.ndarray, said: Said) -> Any:
        return _fit(prior, u, x, rows_of(said))

    def frames(self, prior: Any, q: Any, sizes: Sizes, i: int) -> Float[Array, " K"]:
        """Frames that q has seen in each state of parent i."""
        return summed(q.nu - prior.nu, sizes, i)

    def tables(self, moments: ConditionalMoments) -> Residuals:
        return residuals(moments)

    def forward(self, tables: Residuals, said: Said, steps: int) -> Expected:
        return mix(tables, joint(said))

    def back(self, tables: Residuals, q: GaussianSmoothed, said: Said, i: int) -> Float[Array, "T K"]:
        """E log p of independent steps, u = 1, for each state of parent i."""
        return towards(i, log_prob_by_state(tables, joint_with_one(q)), said)

    def back_of_steps(
        self,
        tables: Residuals,
        q: GaussianSmoothed,
        said: Said,
        i: int,
        inputs: Float[Array, "N n"] | None = None,
        bend: Float[Array, "N D D+1"] | None = None,
    ) -> Float[Array, "N K"]:
        """E log p of every step of a chain after the first, u = (x_t-1, inputs, 1), for each state of parent i.

        With `bend`, it is that of x_t less bend (x_t-1, 1).
        """
        if bend is not None:
            return towards(i, log_prob_of_bent(tables, q, inputs, bend), said)
        found = log_prob_of_steps(tables, q) if inputs is None else log_prob_of_driven(tables, q, inputs)
        return towards(i, found, said)

    def penalty(self, tables: Residuals, expected: Expected, q: GaussianSmoothed) -> Float[Array, " N"]:
        return steps_penalty(expected, q)

    def at(self, theta: LinearGaussian, sizes: Sizes, states: Said) -> LinearGaussian:
        return select(theta, index(states, sizes))

    def by_state(self, theta: LinearGaussian, sizes: Sizes) -> LinearGaussian:
        return theta


def _fit(prior: NIW | MNIW, u: np.ndarray, x: np.ndarray, weights: np.ndarray) -> NIW | MNIW:
    return fit_niw(prior, x, weights) if isinstance(prior, NIW) else fit_mniw(prior, u, x, weights)


def cut(said: Said, first: int | None, last: int | None) -> Said:
    """What the parents said of some frames."""
    return tuple(weights[first:last] for weights in said)
