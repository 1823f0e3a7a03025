"""`Choice`: discrete, each step on its own given the parents."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from svae._linalg import mm, mT
from svae.expfam import Dirichlet
from svae.pgm._block import AbstractBlock, index, joint, positive, rows_of, towards, whole
from svae.pgm._posterior import Independent
from svae.pgm._priors import dirichlet_prior, fit_dirichlet, stack


class ChoiceGlobals(NamedTuple):
    weights: Dirichlet


@dataclass(frozen=True)
class Choice(AbstractBlock):
    """One of `size` states at every step, with one row of probabilities for each combination of the parents' states."""

    size: int
    given: str | tuple[str, ...] = ()
    concentration: float = 1.0
    continuous = False
    remembers = False

    def __post_init__(self):
        whole("Choice", "states", self.size)
        positive("Choice", "concentration", self.concentration)

    def prior(self, sizes):
        return ChoiceGlobals(stack(dirichlet_prior(self.size, concentration=self.concentration), sizes))

    def initialize(self, prior, sizes, own, said):
        own = np.concatenate(own).astype(float)
        if not sizes:
            return ChoiceGlobals(fit_dirichlet(prior.weights, own.sum(0)))
        every = rows_of(tuple(np.concatenate(weights) for weights in zip(*said, strict=True)))
        return ChoiceGlobals(fit_dirichlet(prior.weights, every.T @ own))

    def infer(self, tables, said, potential, mask):
        log_pi = tables.weights.log_prob
        log_pi = mm(joint(said), log_pi) if said else log_pi[None]
        return Independent(log_pi, potential, jax.nn.softmax(log_pi + potential, -1))

    def factor(self, local):
        return local

    def back(self, tables, local, said, i):
        scores = mm(local.states, mT(tables.weights.log_prob))
        return towards(i, scores - jnp.max(scores, -1, keepdims=True), said)

    def kl(self, tables, local, mask):
        return jnp.sum(local.states * local.node, -1) - jax.nn.logsumexp(local.log_prior + local.node, -1)

    def simulate(self, theta, sizes, paths, length, *, key, start):
        logits = theta.weights[index(paths, sizes)] if sizes else theta.weights
        return jax.random.categorical(key, logits, shape=(length,))

    def evidence(self, theta, node, mask):
        """log p(frame | past), the states summed over, of the only discrete block."""
        return jnp.where(mask, jax.nn.logsumexp(theta.weights[None] + node, -1), 0)

    def log_rows(self, theta, sizes):
        """Logarithms of p(first | parents) (*sizes, K), and of p(next | parents) (1, *sizes, K): it has no last."""
        rows = theta.weights.reshape(*sizes, self.size)
        return rows, rows[None]
