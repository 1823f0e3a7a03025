"""Recognition trunks that read a whole sequence: a convolution over time, and a GRU in both directions.

Both look ahead as well as back. To recognise from frames up to t only, mask out the later ones: padding is never read.
"""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from svae.nets.trunks import MLP, UNIT, mlp

WINDOW = 5  # frames that one convolution over time sees


def first_width(hidden: tuple[int, ...]) -> int:
    """The width of the frame features, or one sentence if there is none."""
    if not hidden:
        raise ValueError("a temporal or recurrent network needs at least one width in hidden")
    return hidden[0]


class TemporalConv(eqx.Module):
    """Frame features, then convolutions over time: x_t ← activation(Σ_s W_s x_{t+s} + b), |s| ≤ 2; x = 0 at padding."""

    frame: MLP
    layers: tuple[eqx.nn.Conv1d, ...]
    activation: Callable = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def __call__(self, inputs: Float[Array, "T *frame"], mask: Bool[Array, " T"]) -> Float[Array, "T size"]:
        x = jnp.where(mask[:, None], jax.vmap(self.frame)(inputs), 0)
        for layer in self.layers:  # padding goes back to 0 after every layer: a bias would leak out of it
            x = jnp.where(mask[:, None], self.activation(layer(x.T)).T, 0)
        return x


def temporal_trunk(
    event_shape: tuple[int, ...], channels: int, hidden: tuple[int, ...], activation: Callable, *, key: PRNGKeyArray
) -> TemporalConv:
    """Frame features of the first width, then one convolution over time per width."""
    sizes = (first_width(hidden), *hidden)
    key_frame, *keys = jax.random.split(key, len(sizes))
    frame = mlp(math.prod(event_shape) * channels, sizes[:1], activation, key=key_frame)
    layers = tuple(
        jax.tree.map(lambda w: UNIT * w, eqx.nn.Conv1d(m, n, WINDOW, padding=WINDOW // 2, key=k))
        for m, n, k in zip(sizes[:-1], hidden, keys, strict=True)
    )
    return TemporalConv(frame, layers, activation, sizes[-1])


def recur(
    cell: eqx.nn.GRUCell, x: Float[Array, "T F"], mask: Bool[Array, " T"], *, reverse: bool
) -> Float[Array, "T size"]:
    """The states (T, size) of a recurrent cell that stands still at padding."""

    def step(state, frame):
        x_t, real = frame
        state = jnp.where(real, cell(x_t, state), state)
        return state, state

    start = jnp.zeros(cell.hidden_size, x.dtype)
    return jax.lax.scan(step, start, (x, mask), reverse=reverse)[1]


class BidirectionalGRU(eqx.Module):
    """Frame features, then a GRU forward and one backward over time; their states side by side."""

    frame: MLP
    forward: eqx.nn.GRUCell
    backward: eqx.nn.GRUCell
    size: int = eqx.field(static=True)

    def __call__(self, inputs: Float[Array, "T *frame"], mask: Bool[Array, " T"]) -> Float[Array, "T size"]:
        x = jax.vmap(self.frame)(inputs)
        states = recur(self.forward, x, mask, reverse=False), recur(self.backward, x, mask, reverse=True)
        return jnp.concatenate(states, axis=1)


def recurrent_trunk(
    event_shape: tuple[int, ...], channels: int, hidden: tuple[int, ...], activation: Callable, *, key: PRNGKeyArray
) -> BidirectionalGRU:
    """An MLP of the widths `hidden` on each frame, then GRUs of the last width."""
    first_width(hidden)
    key_frame, key_forward, key_backward = jax.random.split(key, 3)
    frame = mlp(math.prod(event_shape) * channels, hidden, activation, key=key_frame)
    forward = eqx.nn.GRUCell(hidden[-1], hidden[-1], key=key_forward)
    backward = eqx.nn.GRUCell(hidden[-1], hidden[-1], key=key_backward)
    return BidirectionalGRU(frame, forward, backward, 2 * hidden[-1])
