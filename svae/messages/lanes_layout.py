"""Batches in blocks of steps, in lanes: the sequences, and beside them several steps of each, so that loops are long.

Arrays of a batch are (B, T, ...). A block of one is (M, ..., lanes), where lanes are G steps of B sequences; with its
steps as an axis it is (M, ..., G, B).
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from svae.messages.lanes import apart

LANES = 128
GROUPS = 2  # of steps in a block: with more, XLA would share its loops between threads, for more than they take


class Layout(NamedTuple):
    """B sequences of T steps: lanes hold G steps of each, a block M times as many."""

    B: int
    T: int
    G: int
    M: int

    @property
    def K(self) -> int:
        """Steps of a block."""
        return self.G * self.M

    @property
    def blocks(self) -> int:
        return -(-self.T // self.K)

    @property
    def last(self) -> int:
        """The first step of the last block."""
        return (self.blocks - 1) * self.K


class Blocks(NamedTuple):
    """An array of a batch to be read by blocks: all of it, and the last block by itself where its steps end inside."""

    every: Float[Array, "B n ..."]
    last: Float[Array, "B K ..."] | None


class Room(NamedTuple):
    """An array of a batch to be put together from blocks, the last one first; the entries of a step are one axis.

    Where steps end inside the last block, it is kept by itself (and `last` has a second place, for the others).
    """

    every: Float[Array, "B n entries"]
    last: Float[Array, "2 M entries lanes"] | None


class Same(NamedTuple):
    """What one entry for all steps is to a step, and to a block; of one lane where the batch shares it too."""

    step: Float[Array, "... B"]
    block: Float[Array, "1 ... lanes"]


def layout(B: int, T: int) -> Layout:
    """Lanes as full as the steps allow."""
    G = max(1, min(LANES // B, T))
    return Layout(B, T, G, min(GROUPS, -(-T // G)))


def blocks(x, to: Layout, fill=0, end=()) -> Blocks:
    """(B or 1, steps, ...) in blocks; after its steps come those of `end`, and then `fill`."""
    x = jnp.broadcast_to(x, (to.B, *x.shape[1:]))
    more = to.blocks * to.K - x.shape[1] - len(end)
    if not (more or end):
        return Blocks(x, None)
    fill = jnp.broadcast_to(jnp.asarray(fill, x.dtype), (to.B, more, *x.shape[2:]))
    last = jnp.concatenate([x[:, to.last :], *end, fill], 1)
    return Blocks(x, last) if to.last else Blocks(last, None)


def dynamics(x, to: Layout, fill=0):
    """A, b or Q_sqrt: in blocks, or the same at all steps."""
    if x.shape[1] > 1:
        return blocks(x, to, fill)
    if x.shape[1] == 0:
        x = jnp.broadcast_to(jnp.asarray(fill, x.dtype), (1, 1, *x.shape[2:]))
    step = jnp.moveaxis(x[:, 0], 0, -1)
    return Same(step, (step if step.shape[-1] == 1 else jnp.tile(step, to.G))[None])


@apart
def _sequences_last(x):
    return jnp.moveaxis(x, (2, 0), (-2, -1))


def block(x, i, to: Layout):
    """Block i of an array of a batch."""
    if isinstance(x, Same):
        return x.block
    found = lax.dynamic_slice_in_dim(x.every, i * to.K, to.K, 1)
    if x.last is not None:
        found = jnp.where(i == to.blocks - 1, x.last, found)
    return joined(_sequences_last(found.reshape(to.B, to.M, to.G, *found.shape[2:])))


def read(every, i, to: Layout):
    """Block i of each array, in one place: XLA gives another thread what is ready beyond a few operations."""
    return apart(lambda every, i: [block(x, i, to) for x in every])(list(every), i)


def room(shape, dtype, to: Layout) -> Room:
    """For an array of this shape: (B, steps, ...)."""
    entries = math.prod(shape[2:])
    if not to.last:
        return Room(jnp.zeros((to.B, to.K, entries), dtype), None)
    whole = shape[1] == to.blocks * to.K
    last = None if whole else jnp.zeros((2, to.M, entries, to.G * to.B), dtype)
    return Room(jnp.zeros((*shape[:2], entries), dtype), last)


def store(x: Room, i, value, to: Layout) -> Room:
    """x with block i put in its place; what the last one puts in the wrong place, the one before it puts right."""
    value = value.reshape(to.M, -1, to.G * to.B)
    every = lax.dynamic_update_slice_in_dim(x.every, _sequences_first(value, to), i * to.K, 1)
    if x.last is None:
        return Room(every, None)
    return Room(every, lax.dynamic_update_index_in_dim(x.last, value, jnp.where(i < to.blocks - 1, 1, 0), 0))


def _sequences_first(value, to: Layout):
    return value.reshape(to.M, -1, to.G, to.B).transpose(3, 0, 2, 1).reshape(to.B, to.K, -1)


def stored(x: Room, shape, to: Layout):
    """The array that the blocks make, of this shape."""
    every, ends = x.every, shape[1] - to.last
    if x.last is not None and ends:
        last = _sequences_first(x.last[0], to)[:, :ends]
        every = lax.dynamic_update_slice_in_dim(every, last, to.last, 1)
    return every[:, : shape[1]].reshape(shape)


def steps(x, to: Layout):
    """A block with its steps as an axis."""
    return x.reshape(*x.shape[:-1], to.G, to.B)


def joined(x):
    """Steps back into the lanes."""
    return x.reshape(*x.shape[:-2], -1)


def transitions(i, to: Layout, dtype):
    """1 for the steps of block i that have a transition, 0 for the last and for padding: (M, lanes)."""
    t = i * to.K + jnp.arange(to.K) < to.T - 1
    return jnp.repeat(t.astype(dtype).reshape(-1, to.G), to.B, -1)


def at(x, t):
    """Step t of a block."""
    if isinstance(x, Same):
        return x.step
    sizes = 1, *x.shape[1:-2], 1, x.shape[-1]
    return lax.dynamic_slice(x, _where(x, t), sizes).reshape(*x.shape[1:-2], x.shape[-1])


def put(x, t, value):
    """A block with `value` at step t."""
    return lax.dynamic_update_slice(x, value[None, ..., None, :], _where(x, t))


def _where(x, t):
    G = x.shape[-2]
    return lax.div(t, G), *[0] * (x.ndim - 3), lax.rem(t, G), 0
