"""`Dynamics`: continuous, x_1 ~ N(mu, Sigma), x_t = A x_{t-1} + B u_t + b + noise, all of them given the parents.

The inputs u are known and have no effect on the first frame. Once they are known, the conditional is one on x_{t-1}
alone, whose offset changes from step to step. With hidden layers, a network of (x_{t-1}, u_t) is added (`_nonlinear`);
`said` then has, after the marginals of the parents, the mean about which it is expanded.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from svae import messages
from svae._linalg import spectral_radius
from svae.expfam import MNIW, NIW
from svae.messages import GaussianChain, GaussianSmoothed
from svae.pgm import _nonlinear
from svae.pgm._block import AbstractBlock, columns, whole, widths
from svae.pgm._conditional import Expected, chain, chain_kl, driven, steps_penalty
from svae.pgm._conditional_forms import cut
from svae.pgm._linear import gaussian_step, log_normal_by_state, ones, previous
from svae.pgm._nonlinear import Bend, Network, Surrogate
from svae.pgm._priors import regressions
from svae.pgm.normal import form_of

# Steps up to which padding follows the dynamics, unseen: in float32 a mode may grow by 1.4 a step for so long.
LONGEST_SHARED = 256


class DynamicsGlobals(NamedTuple):
    first: NIW | MNIW  # MNIW where offsets add
    dynamics: MNIW


class DrivenTables(NamedTuple):
    """Tables of a block with inputs, and the inputs of the steps after the first."""

    first: Any
    dynamics: Any
    inputs: Float[Array, "N n"]


class BentTables(NamedTuple):
    """Tables of a block with a network g."""

    first: Any
    dynamics: Any
    inputs: Float[Array, "N n"] | None
    g: Network


class Local(NamedTuple):
    q: GaussianSmoothed
    first: Expected
    dynamics: Expected
    bend: Bend | None = None  # where there is a network


@dataclass(frozen=True)
class Dynamics(AbstractBlock):
    """`given` parents choose A, B, b and the noise; `add` parents each add an offset to x_t, whose A they share.

    `inputs` is the number of columns of u, known at every frame. An `observed` x is the frame itself or its projection.
    `hidden` are widths of the layers of a network that adds g(x_{t-1}, u_t) to the mean of x_t, the same for all states
    of the parents; () leaves the linear map alone.
    """

    size: int
    given: str | tuple[str, ...] = ()
    add: str | tuple[str, ...] = ()
    inputs: int = 0
    observed: bool = False
    hidden: tuple[int, ...] = ()
    continuous = True
    remembers = True

    def __post_init__(self):
        whole("Dynamics", "dimensions", self.size)
        columns("Dynamics", self.inputs)
        widths("Dynamics", self.hidden)

    @property
    def form(self):
        return form_of(self)

    @property
    def _shares(self) -> bool:
        """Whether all steps have one conditional."""
        return not (self.given or self.add or self.inputs or self.hidden)

    @property
    def nonlinear(self) -> bool:
        return bool(self.hidden)

    def prior(self, sizes):
        first = self.form.prior(self.size, sizes, chained=False)
        return DynamicsGlobals(first, self.form.prior(self.size, sizes, chained=True, inputs=self.inputs))

    def initialize(self, prior, sizes, own, said, inputs=None):
        start, one = np.stack([x[0] for x in own]).astype(float), np.ones((len(own), 1))
        at_start = tuple(np.stack([w[0] for w in weights]) for weights in zip(*said, strict=True))
        first = self.form.fit(prior.first, one, start, at_start)
        later = tuple(np.concatenate([w[1:] for w in weights]) for weights in zip(*said, strict=True))
        return DynamicsGlobals(first, self.form.fit(prior.dynamics, *regressions(own, inputs), later))

    def ordinary(self, driver):
        return _nonlinear.network(self.size, self.inputs, self.hidden) if self.hidden else ()

    def tables(self, moments, inputs=None, ordinary=()):
        first, dynamics = (self.form.tables(table) for table in moments)
        known = None if inputs is None else inputs[1:]
        if self.hidden:
            return BentTables(first, dynamics, known, ordinary)
        return DynamicsGlobals(first, dynamics) if known is None else DrivenTables(first, dynamics, known)

    def infer(self, tables, said, potential, mask):
        T = len(mask)
        said, about = (said[:-1], said[-1]) if self.hidden else (said, None)
        first = self.form.forward(tables.first, cut(said, None, 1), 1)
        dynamics = self.form.forward(tables.dynamics, cut(said, 1, None), 1 if self._shares else T - 1)
        dynamics = driven(dynamics, tables.inputs) if self.inputs else dynamics
        if self.hidden:
            expansion = _nonlinear.expansion(tables.g, about[:-1], tables.inputs)
            every = chain(first, _nonlinear.bent(dynamics, expansion), potential, mask)
            bend = Bend(tables.g, tables.inputs, expansion, every, mask)
            return Local(messages.gaussian.smooth(every), first, dynamics, bend)
        every = chain(first, dynamics, potential, mask)
        every = _shared(every, dynamics, mask) if self._shares and T <= LONGEST_SHARED else every
        return Local(messages.gaussian.smooth(every), first, dynamics)

    def factor(self, local):
        return local.q

    def back(self, tables, local, said, i):
        said = said[:-1] if self.hidden else said
        start = jax.tree.map(lambda a: a[:1], local.q)
        first = self.form.back(tables.first, start, cut(said, None, 1), i)
        known = tables.inputs if self.inputs else None
        bend = None if local.bend is None else local.bend.expansion.map
        later = self.form.back_of_steps(tables.dynamics, local.q, cut(said, 1, None), i, known, bend)
        return jnp.concatenate([first, later])

    def kl(self, tables, local, mask):
        if self.inputs:
            penalty = steps_penalty(local.dynamics, local.q)
        else:
            penalty = self.form.penalty(tables.dynamics, local.dynamics, local.q)
        return chain_kl(local.q, local.first, penalty, mask)

    def surrogate(self, tables, local, now, columns):
        """What stands in for the conditional where a network is added."""
        return Surrogate(local.bend, local.bend.root, columns)

    def expand(self, local, about):
        """The mean about which the next sweep expands the network."""
        return _nonlinear.moved(local.bend, about, local.q.mean)

    def frames(self, prior, q, sizes, i):
        return self.form.frames(prior.dynamics, q.dynamics, sizes, i)

    def simulate(self, theta, sizes, paths, length, *, key, start, inputs=None, ordinary: Any = ()):
        key_first, key_rest = jax.random.split(key)
        one = jnp.ones(1, theta.first.W.dtype)
        known = jnp.zeros((length, 0), one.dtype) if inputs is None else inputs
        at = lambda form, states: self.form.at(form, sizes, states)  # noqa: E731

        def advance(x, step):
            states, u, key = step
            following = gaussian_step(at(theta.dynamics, states), jnp.concatenate([x, u, one]), key=key)
            if ordinary:
                following = following + _nonlinear.value(ordinary, x[None], u[None])[0]
            return following, following

        now, later = tuple(path[0] for path in paths), tuple(path[1:] for path in paths)
        if start is None:
            first = gaussian_step(at(theta.first, now), one, key=key_first)
        else:
            first, _ = advance(start[-1], (now, known[0], key_first))
        _, rest = jax.lax.scan(advance, first, (later, known[1:], jax.random.split(key_rest, length - 1)))
        return jnp.concatenate([first[None], rest])

    def log_prob_by_state(self, theta, sizes, x, inputs=None, ordinary: Any = ()):
        """log p(x_t | past, parents) for every combination of the parents' states (T, N)."""
        first, dynamics = (self.form.by_state(t, sizes) for t in theta)
        start = log_normal_by_state(first, x[:1], ones(x[:1]))
        later = x[1:]
        if ordinary:
            later = later - _nonlinear.value(ordinary, x[:-1], None if inputs is None else inputs[1:])
        return jnp.concatenate([start, log_normal_by_state(dynamics, later, previous(x, inputs))])


def _shared(chain: GaussianChain, dynamics: Expected, mask: Bool[Array, " T"]) -> GaussianChain:
    """The chain with one transition for all steps, into padding too, whose potentials are nothing."""
    D = chain.h.shape[1]
    J, h = jnp.where(mask[:, None, None], chain.J, 0), jnp.where(mask[:, None], chain.h, 0)
    return GaussianChain(*chain[:2], dynamics.M[:, :, :D], dynamics.M[:, :, D], dynamics.sqrt, J, h)


def tamed(theta: Any) -> Any:
    """Parameters of a graph whose dynamics do not grow: every A with a spectral radius above 1 is divided by it."""
    is_part = lambda part: isinstance(part, DynamicsGlobals)  # noqa: E731
    return jax.tree.map(lambda part: _held(part) if is_part(part) else part, theta, is_leaf=is_part)


def _held(part: DynamicsGlobals) -> DynamicsGlobals:
    W = part.dynamics.W
    A, rest = W[..., : W.shape[-2]], W[..., W.shape[-2] :]
    A = A / jnp.maximum(1, spectral_radius(A))[..., None, None]
    return part._replace(dynamics=part.dynamics._replace(W=jnp.concatenate([A, rest], -1)))
