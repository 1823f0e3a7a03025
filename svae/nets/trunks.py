"""Trunks: from one frame, or a sequence of frames, to features. Heads turn features into potentials or likelihoods.

A recognition trunk is called on `inputs` (T, *event, n) and `mask` (T,) and returns features (T, size). The last axis
holds the frame with missing entries at 0 and, where the network takes a mask of them, 1 for observed, 0 for not.
"""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

# tanh is the default: bounded features cannot make the potentials of a frame unlike the training data explode.
ACTIVATIONS = {"tanh": jnp.tanh, "gelu": jax.nn.gelu, "relu": jax.nn.relu}
UNIT = math.sqrt(3)  # equinox draws weights from U(-1, 1)/√inputs; times this they keep the variance of what they see


def choose(kind: str, name: str, table: dict):
    """The entry `name` of a table, or one sentence that lists the names there are."""
    if name not in table:
        raise ValueError(f"unknown {kind} {name!r}; choose one of {', '.join(sorted(table))}")
    return table[name]


def dense(inputs: int, outputs: int, *, scale: float, key: PRNGKeyArray) -> eqx.nn.Linear:
    """A linear layer whose initial weights and biases are `scale` times U(-1, 1)/√inputs."""
    return jax.tree.map(lambda w: scale * w, eqx.nn.Linear(inputs, outputs, key=key))


def apply_dense(layer: eqx.nn.Linear, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
    """x W' + b with the vector first: frames under vmap are then rows of one product, and nothing is transposed."""
    return x @ layer.weight.T + layer.bias


class MLP(eqx.Module):
    """One vector (P,) to features (size,): x ← activation(W x + b), once per width."""

    layers: tuple[eqx.nn.Linear, ...]
    activation: Callable = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, " size"]:
        x = x.reshape(-1)
        for layer in self.layers:
            x = self.activation(apply_dense(layer, x))
        return x


def mlp(inputs: int, hidden: tuple[int, ...], activation: Callable, *, key: PRNGKeyArray) -> MLP:
    """An MLP of the widths `hidden` that reads `inputs` numbers; with no widths it is the identity."""
    sizes = (inputs, *hidden)
    keys = jax.random.split(key, len(sizes))
    layers = tuple(dense(m, n, scale=UNIT, key=k) for m, n, k in zip(sizes, hidden, keys, strict=False))
    return MLP(layers, activation, sizes[-1])


class Pattern(eqx.Module):
    """The trunk of an affine recognition: which entries were observed, never their values.

    So the precision may depend on what is missing (size P), or is constant (size 0) where that is not shown, and
    the potentials stay linear in y.
    """

    size: int = eqx.field(static=True)

    def __call__(self, frame: Float[Array, "*event n"]) -> Float[Array, " size"]:
        return frame[..., 1:].reshape(-1)


class PerFrame(eqx.Module):
    """A trunk for one frame, lifted to a sequence of independent frames: one batched matmul per layer."""

    trunk: eqx.Module

    @property
    def size(self) -> int:
        return self.trunk.size

    def __call__(self, inputs: Float[Array, "T *frame"], mask: Bool[Array, " T"]) -> Float[Array, "T size"]:
        return jax.vmap(self.trunk)(inputs)


def affine_trunk(
    event_shape: tuple[int, ...], channels: int, hidden: tuple[int, ...], activation: Callable, *, key: PRNGKeyArray
) -> PerFrame:
    """See `Pattern`; takes no widths, so `hidden`, `activation` and `key` go unused."""
    return PerFrame(Pattern(math.prod(event_shape) * (channels - 1)))


def mlp_trunk(
    event_shape: tuple[int, ...], channels: int, hidden: tuple[int, ...], activation: Callable, *, key: PRNGKeyArray
) -> PerFrame:
    """An MLP on the flattened frame."""
    return PerFrame(mlp(math.prod(event_shape) * channels, hidden, activation, key=key))
