"""`Markov`: discrete, a hidden chain; with parents, a table of transitions for each combination of their states.

Parents `after` are those of the frame before: discrete ones choose among tables like those of the same frame, and a
continuous one makes the transitions lean, as known inputs do (`_tilted`). `said` has the parents of the same frame,
then the discrete ones of the frame before, then R x of the continuous one.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from svae import messages
from svae._linalg import mm, mT
from svae.expfam import Dirichlet, TiltedDirichlet
from svae.messages import HMMChain, HMMSmoothed
from svae.pgm import _tilted, _tilted_start
from svae.pgm._block import AbstractBlock, Said, columns, index, joint, names, positive, rows_of, towards, whole
from svae.pgm._posterior import Hidden
from svae.pgm._priors import dirichlet_prior, first_counts, fit_dirichlet, stack, sticky_prior, transition_counts
from svae.pgm._tilted import TiltedLocal, TiltedTables


class MarkovGlobals(NamedTuple):
    init: Dirichlet
    transitions: Dirichlet


class Local(NamedTuple):
    chain: HMMChain
    smoothed: HMMSmoothed

    @property
    def states(self):
        return self.smoothed.states


@dataclass(frozen=True)
class Markov(AbstractBlock):
    """One of `size` states at every step, which depends on the one before; `stickiness` is extra counts on staying.

    `after` names blocks whose frame before has a say too, and `inputs` is the number of columns of known ones. `by` is
    what groups of recordings are called of which each has transitions of its own, around some that all share.
    """

    size: int
    given: str | tuple[str, ...] = ()
    concentration: float = 1.0
    stickiness: float = 0.0
    after: str | tuple[str, ...] = ()
    inputs: int = 0
    by: str = ""
    continuous = False
    remembers = True

    def __post_init__(self):
        whole("Markov", "states", self.size)
        positive("Markov", "concentration", self.concentration)
        columns("Markov", self.inputs)

    def prior(self, sizes, driver=0):
        init = dirichlet_prior(self.size, concentration=self.concentration)
        rows = sticky_prior(self.size, concentration=self.concentration, stickiness=self.stickiness)
        rows = TiltedDirichlet(rows.counts) if driver or self.inputs else rows
        return MarkovGlobals(stack(init, sizes[: self._within]), stack(rows, sizes))

    def ordinary(self, driver):
        return _tilted.no_tilt(self.size, driver, self.inputs) if driver or self.inputs else ()

    def initialize(self, prior, sizes, own, said, inputs=None):
        first, pairs = first_counts(own), transition_counts(own)
        if sizes[: self._within]:
            rows = [rows_of(weights[: self._within]) for weights in said]
            first = sum(np.outer(r[0], w[0]) for r, w in zip(rows, own, strict=True))
        if sizes:
            rows = [rows_of(self._of_steps(weights)) for weights in said]
            pairs = sum(np.einsum("tm,ti,tj->mij", r, w[:-1], w[1:]) for r, w in zip(rows, own, strict=True))
        return MarkovGlobals(fit_dirichlet(prior.init, first), fit_dirichlet(prior.transitions, pairs))

    def start(self, ordinary, q, own, said, x, inputs=None):
        if not ordinary:
            return ordinary
        alone = [np.ones((len(w) - 1, 1)) for w in own]
        weights = [rows_of(self._of_steps(w)) for w in said] if any(said) else alone
        counts = np.asarray(q.transitions.counts, float)
        return _tilted_start.fitted(ordinary, counts, own, weights, x, inputs)

    @property
    def _within(self) -> int:
        """How many parents of the same frame it has."""
        return len(names(self.given))

    def _of_steps(self, said: Said) -> Said:
        """The marginals of all discrete parents as the steps after the first take them."""
        return tuple(w[1:] for w in said[: self._within]) + tuple(w[:-1] for w in said[self._within :])

    def tables(self, moments, inputs=None, ordinary=()):
        return TiltedTables(*moments, ordinary, inputs) if ordinary else moments

    def infer(self, tables, said, potential, mask):
        init, rows = tables.init.log_prob, tables.transitions.log_prob
        tilted = isinstance(tables, TiltedTables)
        said, heard = (said[:-1], said[-1]) if tilted and tables.tilt.R is not None else (said, None)
        if self._within:
            init = mm(joint(said[: self._within])[:1], init)[0]
        weights = joint(self._of_steps(said)) if said else jnp.ones((len(mask) - 1, 1), init.dtype)
        if said:
            rows = mm(weights, rows.reshape(len(rows), -1)).reshape(-1, *rows.shape[1:])
        if not tilted:
            chain = HMMChain(init, rows, potential, mask)
            return Local(chain, messages.hmm.smooth(chain))
        lean = _tilted.score(tables.tilt, heard, tables.inputs)
        rows = rows if said else rows[None]
        chain = HMMChain(init, _tilted.transitions(tables, lean, rows, weights), potential, mask)
        return TiltedLocal(chain, messages.hmm.smooth_pairs(chain), heard, lean, weights)

    def factor(self, local):
        return Hidden(local.chain, local.smoothed.states)

    def back(self, tables, local, said, i):
        if i == self._discrete(said, local):
            return _tilted.to_x(tables, local, local.chain.mask)
        said = said[: self._discrete(said, local)]
        later = towards(i, self._scores(tables, local), self._of_steps(said))
        if i >= self._within:
            scores = jnp.pad(later, ((0, 1), (0, 0)))
        else:
            first = mm(local.smoothed.states[:1], mT(tables.init.log_prob))
            first = towards(i, first, tuple(w[:1] for w in said[: self._within]))
            scores = jnp.concatenate([first, later])
        return scores - jnp.max(scores, -1, keepdims=True)

    def _discrete(self, said: Said, local: Any) -> int:
        """How many of what was said are marginals."""
        return len(said) - (isinstance(local, TiltedLocal) and local.heard is not None)

    def _scores(self, tables, local):
        """E log p of every step under each table (steps, M); a constant of the step may be left out."""
        rows = tables.transitions.log_prob
        tilted = isinstance(local, TiltedLocal)
        pairs = local.smoothed.pairs if tilted else messages.hmm.smooth_pairs(local.chain).pairs
        scores = mm(pairs.reshape(len(pairs), self.size**2), mT(rows.reshape(-1, self.size**2)))
        if not tilted:
            return scores
        return scores - jnp.sum(jnp.sum(pairs, -1)[:, None] * _tilted.log_sizes(tables, local.score)[0], -1)

    def kl(self, tables, local, mask):
        return local.smoothed.kl

    def remainder(self, tables, local, said, now, x):
        """E score at q of all parents, less the score with what those of the frame before said; x: q(x), or None."""
        used, true = (joint(self._of_steps(w)) if w else None for w in (said, now))
        total = 0 if used is None else jnp.sum((true - used) * self._scores(tables, local), -1)
        if x is not None:
            total = total + _tilted.remainder(tables, local, x, local.weights if true is None else true)
        return jnp.pad(total, (1, 0))

    def surrogate(self, tables, local, now, columns):
        """What stands in for the conditional where it is not conjugate."""
        weights = joint(self._of_steps(now)) if now else local.weights
        return _tilted.surrogate(tables, local, weights, columns)

    def hear(self, tables, x):
        """What the mean of x says of the next state."""
        return _tilted.heard(tables.tilt, x)

    def simulate(
        self, theta, sizes, paths, length, *, key, start, inputs=None, ordinary: Any = (), before: Said = (), x=None
    ):
        """`before` and `x` are the states of the other discrete parents, and the latent, at the frames before."""
        every = (*paths, *before)
        row = index(every, sizes) if sizes else None
        rows = lambda t: theta.transitions if row is None else theta.transitions[row[t]]  # noqa: E731
        now = index(paths, sizes[: self._within]) if self._within else None
        init = theta.init if now is None else theta.init[now[0]]
        lean = _lean(ordinary, x, inputs, length, self.size)
        key_first, key_rest = jax.random.split(key)
        first = jax.random.categorical(key_first, init if start is None else rows(0)[start[-1]] + lean[0])

        def advance(z, step):
            t, key = step
            following = jax.random.categorical(key, rows(t)[z] + lean[t])
            return following, following

        steps = jnp.arange(1, length), jax.random.split(key_rest, length - 1)
        return jnp.concatenate([first[None], jax.lax.scan(advance, first, steps)[1]])

    def evidence(self, theta, node, mask):
        """log p(frame | past), the states summed over, of the only discrete block."""
        return messages.hmm.filter(HMMChain(theta.init, theta.transitions, node, mask)).log_z

    def log_rows(self, theta, sizes, ordinary: Any = (), inputs=None, x=None):
        """Logarithms of p(first | parents) (*sizes, K), and of p(next | parents, last) (1 or T-1, *sizes, K, K)."""
        K = self.size
        init, rows = theta.init.reshape(*sizes[: self._within], K), theta.transitions.reshape(1, *sizes, K, K)
        if not ordinary:
            return init, rows
        lean = _tilted.score(ordinary, None if x is None else _tilted.heard(ordinary, x), inputs)
        lean = lean.reshape(len(lean), *(1 for _ in sizes), 1, K)
        return init, jax.nn.log_softmax(rows + lean, -1)

    def as_seen(self, q, prior, frames):
        """q had the prior not been sticky; `frames` is the number of frames in each state."""
        return q._replace(transitions=without_stickiness(q.transitions, prior.transitions, frames))


def _lean(tilt: Any, x: Any, inputs: Any, length: int, K: int) -> Float[Array, "T K"]:
    """R x + S u of every step; x is that of the frame before it."""
    total = jnp.zeros((length, K))
    if not tilt:
        return total
    total = total if tilt.R is None or x is None else total + _tilted.heard(tilt, x)
    return total if tilt.S is None else total + mm(inputs, mT(tilt.S))


def without_stickiness(q: Dirichlet, prior: Dirichlet, frames: Float[Array, " K"]) -> Dirichlet:
    """q(transitions) had the prior not been sticky; `frames` is the number of frames in each state.

    Sticky counts drown those that were seen (1e20 of them leave float32 none), so a state's stays are its frames less
    its switches to others, and only these enter the rows of q.
    """
    K = len(frames)
    eye = jnp.eye(K, dtype=bool)
    plain = prior.counts[0, -1]  # of every other state
    out = jnp.sum(jnp.where(eye, 0, q.counts - plain), -1)
    stays = plain + jnp.maximum(frames - jnp.maximum(out, 0), 0)
    return Dirichlet(jnp.where(eye, stays[:, None], q.counts))
