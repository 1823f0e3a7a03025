"""What a block offers a graph: a conjugate conditional given its parents, exact inference, simulation, a start.

`said` are the marginals (T, K) of the parents, in their order; a table over several parents has one row for each
combination of their states, the last parent's changing fastest.
"""

from abc import ABC, abstractmethod
from collections import namedtuple
from functools import cache
from math import prod
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

Sizes = tuple[int, ...]  # numbers of states of the parents
Said = tuple[Any, ...]


class GraphError(ValueError):
    """A graph that cannot be inferred, and what is allowed, in one sentence."""


@cache
def record(names: tuple[str, ...]) -> type:
    """A named tuple with a field for each block."""
    return namedtuple("Blocks", names)


class AbstractBlock(ABC):
    """A variable of a sequence, with the exact inference that its own structure allows; a frozen dataclass."""

    size: int  # states, or dimensions
    given: str | tuple[str, ...]  # parents at the same frame: one conditional for each combination of their states
    after: str | tuple[str, ...] = ()  # parents at the frame before, whom `Markov` alone can have
    observed: bool = False  # whether it is the frame itself, or the frame's projection, and no network is between
    nonlinear: bool = False  # whether q takes its conditional expanded about the mean of the last sweep, `said` last
    by: str = ""  # what groups of recordings are called that have tables of their own, as `Markov` alone can have
    inputs: int = 0  # columns of known inputs that it takes: as `inputs` of tables, initialize, simulate and densities

    # --- parameters -----------------------------------------------------------------------------------------------

    @abstractmethod
    def prior(self, sizes: Sizes) -> Any:
        """A tree of conjugate priors."""

    @abstractmethod
    def initialize(self, prior: Any, sizes: Sizes, own: list, said: list) -> Any:
        """The prior plus the statistics of complete data, in numpy float64: by recording, `own` values and `said`."""

    def ordinary(self, driver: int) -> Any:
        """The start of parameters without a conjugate prior; `driver` is the size of the continuous parent `after`."""
        return ()

    def start(self, ordinary: Any, q: Any, own: list, said: list, x: list | None, inputs: list | None = None) -> Any:
        """Ordinary parameters after complete data and its q(theta); `x` are paths of the continuous parent `after`."""
        return ordinary

    # --- inference ------------------------------------------------------------------------------------------------

    def tables(self, moments: Any) -> Any:
        """Expected statistics as the sweeps take them, made once for all of them."""
        return moments

    @abstractmethod
    def infer(self, tables: Any, said: Said, potential: Any, mask: Bool[Array, " T"]) -> Any:
        """q of this block given the others: with its factor, whatever `back` and `kl` need."""

    @abstractmethod
    def factor(self, local: Any) -> Any:
        """q of this block, as a posterior keeps it."""

    @abstractmethod
    def back(self, tables: Any, local: Any, said: Said, i: int) -> Float[Array, "T K"]:
        """E log p(this | parents) for each state of parent i, all others averaged over; a constant may be left out."""

    @abstractmethod
    def kl(self, tables: Any, local: Any, mask: Bool[Array, " T"]) -> Float[Array, " T"]:
        """E log q - E log p(this | parents), step by step; padding is cut by the graph."""

    # --- simulation -----------------------------------------------------------------------------------------------

    @abstractmethod
    def simulate(self, theta: Any, sizes: Sizes, paths: Said, length: int, *, key: PRNGKeyArray, start: Any) -> Any:
        """A path of `length` steps given the `paths` (T,) of the parents; those after `start`, a path."""


def parents(block: AbstractBlock) -> tuple[str, ...]:
    """The names in `given`, or in `add`, of which a block has one at most."""
    return names(block.given) or names(getattr(block, "add", ()))


def names(given: str | tuple[str, ...]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


# --- several parents as one ---------------------------------------------------------------------------------------


def joint(said: Said) -> Any:
    """q of every combination of the parents' states (T, K1 K2 ...), in JAX or in numpy."""
    together = said[0]
    for weights in said[1:]:
        pairs = together[:, :, None] * weights[:, None, :]
        together = pairs.reshape(len(pairs), pairs.shape[1] * pairs.shape[2])  # there may be no rows
    return together


def towards(i: int, scores: Float[Array, "T N"], said: Said) -> Float[Array, "T K"]:
    """Scores of every combination of states, averaged over all parents but parent i."""
    if len(said) == 1:
        return scores
    scores = scores.reshape(len(scores), *(weights.shape[1] for weights in said))
    for j, weights in reversed(list(enumerate(said))):
        if j != i:
            shape = [len(weights), *(weights.shape[1] if axis == j else 1 for axis in range(scores.ndim - 1))]
            scores = jnp.sum(scores * jnp.broadcast_to(weights.reshape(shape), scores.shape), j + 1)
    return scores


def index(paths: Said, sizes: Sizes) -> Int[Array, "*T"]:
    """The row of a table over the parents' states, frame by frame or of one frame."""
    row = jnp.zeros_like(paths[0])
    for path, size in zip(paths, sizes, strict=True):
        row = row * size + path
    return row


def summed(counts: Any, sizes: Sizes, i: int) -> Any:
    """Counts (K1 K2 ...,) of combinations as counts (K_i,) of the states of parent i."""
    others = tuple(axis for axis in range(len(sizes)) if axis != i)
    return counts.reshape(sizes).sum(others)


def rows_of(said: Said) -> np.ndarray:
    """`joint` of responsibilities, in float64."""
    return np.asarray(joint(tuple(np.asarray(weights, float) for weights in said)))


def combinations(sizes: Sizes) -> int:
    """How many combinations of the parents' states there are."""
    return prod(sizes)


# --- arguments ----------------------------------------------------------------------------------------------------


def whole(block: str, what: str, size: Any) -> None:
    """Raise unless a size is an integer of at least 1."""
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise GraphError(f"{block} needs a number of {what} that is an integer of at least 1, not {size!r}")


def columns(block: str, number: Any) -> None:
    """Raise unless a number of input columns is an integer of at least 0."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 0:
        raise GraphError(f"inputs of {block} is how many columns it takes, an integer of at least 0, not {number!r}")


def widths(block: str, hidden: Any) -> None:
    """Raise unless hidden layers are a tuple of widths."""
    whole = lambda n: isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 1  # noqa: E731
    if not isinstance(hidden, tuple) or not all(map(whole, hidden)):
        raise GraphError(f"hidden of {block} must be a tuple of layer widths such as (32,), not {hidden!r}")


def positive(block: str, what: str, value: Any) -> None:
    """Raise unless a number is finite and above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise GraphError(f"the {what} of {block} must be a number above 0, not {value!r}")
