"""Convolutional trunks for frames (H, W) or (H, W, C), H, W ≥ 8: encoder for recognition, decoder for observation."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from svae.nets.trunks import MLP, UNIT, PerFrame, mlp


def image_shape(event_shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(H, W, C) of an image event, or one sentence that says why it is none."""
    if len(event_shape) not in (2, 3) or min(event_shape[:2]) < 8:
        raise ValueError(f"network='conv' needs frames (H, W) or (H, W, C) with H, W >= 8, not {event_shape}")
    return (*event_shape, 1)[:3]


def pyramid(height: int, width: int, stages: int) -> tuple[tuple[int, int], ...]:
    """The sizes of the image after 0, 1, … stages, each halving and rounding up; stages ≥ 1."""
    if stages < 1:
        raise ValueError("network='conv' needs at least one number of channels in hidden")
    sizes = [(height, width)]
    for _ in range(stages):
        sizes.append((-(-sizes[-1][0] // 2), -(-sizes[-1][1] // 2)))
    return tuple(sizes)


def conv(inputs: int, outputs: int, stride: int, *, scale: float, key: PRNGKeyArray) -> eqx.nn.Conv2d:
    """A 3 × 3 convolution (C, H, W) → (outputs, ⌈H/stride⌉, ⌈W/stride⌉), initial weights scaled as in `dense`."""
    layer = eqx.nn.Conv2d(inputs, outputs, 3, stride, padding=1, key=key)
    return jax.tree.map(lambda w: scale * w, layer)


class Encoder(eqx.Module):
    """One image (H, W, …) to features (size,): strided convolutions, each halving the image, flattened at the end."""

    layers: tuple[eqx.nn.Conv2d, ...]
    activation: Callable = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def __call__(self, image: Float[Array, "H W *channels"]) -> Float[Array, " size"]:
        x = jnp.moveaxis(image.reshape(*image.shape[:2], -1), -1, 0)
        for layer in self.layers:
            x = self.activation(layer(x))
        return x.reshape(-1)


def conv_trunk(
    event_shape: tuple[int, ...], channels: int, hidden: tuple[int, ...], activation: Callable, *, key: PRNGKeyArray
) -> PerFrame:
    """An encoder with one stage per entry of `hidden`, which counts channels."""
    H, W, C = image_shape(event_shape)
    height, width = pyramid(H, W, len(hidden))[-1]
    sizes = (C * channels, *hidden)
    keys = jax.random.split(key, len(hidden))
    layers = tuple(conv(m, n, 2, scale=UNIT, key=k) for m, n, k in zip(sizes[:-1], hidden, keys, strict=True))
    return PerFrame(Encoder(layers, activation, hidden[-1] * height * width))


def enlarge(x: Float[Array, "C h w"], size: tuple[int, int]) -> Float[Array, "C H W"]:
    """Nearest-neighbour doubling of an image, cropped to `size`."""
    return jnp.repeat(jnp.repeat(x, 2, axis=1), 2, axis=2)[:, : size[0], : size[1]]


class Decoder(eqx.Module):
    """One latent (D,) to a feature image (size, H, W): a coarse image, then doubled and convolved once per stage."""

    coarse: MLP
    layers: tuple[eqx.nn.Conv2d, ...]
    activation: Callable = eqx.field(static=True)
    sizes: tuple[tuple[int, int], ...] = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def __call__(self, x: Float[Array, " D"]) -> Float[Array, "size H W"]:
        x = self.coarse(x).reshape(-1, *self.sizes[0])
        for layer, size in zip(self.layers, self.sizes[1:], strict=True):
            x = self.activation(layer(enlarge(x, size)))
        return x


def conv_decoder(
    latent_dim: int, event_shape: tuple[int, ...], hidden: tuple[int, ...], activation: Callable, *, key: PRNGKeyArray
) -> Decoder:
    """The mirror image of `conv_trunk`: the same sizes and channels from the last to the first."""
    H, W, _ = image_shape(event_shape)
    sizes = pyramid(H, W, len(hidden))[::-1]
    widths = (*hidden[::-1], hidden[0])
    key_coarse, *keys = jax.random.split(key, len(widths))
    coarse = mlp(latent_dim, (widths[0] * sizes[0][0] * sizes[0][1],), activation, key=key_coarse)
    layers = tuple(conv(m, n, 1, scale=UNIT, key=k) for m, n, k in zip(widths[:-1], widths[1:], keys, strict=True))
    return Decoder(coarse, layers, activation, sizes, hidden[0])


class ConvHead(eqx.Module):
    """A feature image (size, H, W) to one number per entry of the event, by a last convolution."""

    layer: eqx.nn.Conv2d
    event_shape: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, features: Float[Array, "size H W"]) -> Float[Array, "*event"]:
        return jnp.moveaxis(self.layer(features), 0, -1).reshape(self.event_shape)


def conv_head(size: int, event_shape: tuple[int, ...], *, scale: float, key: PRNGKeyArray) -> ConvHead:
    """See `ConvHead`."""
    return ConvHead(conv(size, image_shape(event_shape)[2], 1, scale=scale, key=key), event_shape)
