"""Recognition networks r(y; φ): a sequence of frames to conjugate potentials exp(-x'J x/2 + h'x), one per frame.

The network says where it thinks the latent is, μ(y), and how sure it is, J(y); the potential is (J, h = J μ). Guess
and certainty then separate: μ lives in the units of the latent whatever J does, so a linear map that (nearly) inverts
the observation model is right from the first step, W'(y - b), and learning a precision does not move the guess. With
h as a free output every change of J would rescale the guess.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from svae._batched_cond import everywhere
from svae.expfam import Gaussian
from svae.nets.images import conv_trunk
from svae.nets.linear import Project, partial_isometry
from svae.nets.temporal import recurrent_trunk, temporal_trunk
from svae.nets.trunks import ACTIVATIONS, UNIT, affine_trunk, apply_dense, choose, dense, mlp_trunk

FLOOR = 1e-4  # J ≥ FLOOR: even a frame the network makes nothing of keeps its guess
LIMIT = 1e4  # entries of the factor of J saturate here, J ≲ 1e8: beyond it float32 messages lose the prior
START_SCALE = 0.01  # scale of the last layer of a correction, so that a network starts at its linear map


class RecognitionNetwork(NamedTuple):
    """μ(y) = linear map (if any) + correction from the trunk's features (if any)."""

    trunk: Callable
    linear: bool
    correction: bool


RECOGNITION_NETWORKS = {
    "affine": RecognitionNetwork(affine_trunk, linear=True, correction=False),
    "mlp": RecognitionNetwork(mlp_trunk, linear=False, correction=True),
    "residual": RecognitionNetwork(mlp_trunk, linear=True, correction=True),
    "conv": RecognitionNetwork(conv_trunk, linear=True, correction=True),
    "temporal": RecognitionNetwork(temporal_trunk, linear=True, correction=True),
    "recurrent": RecognitionNetwork(recurrent_trunk, linear=True, correction=True),
}
PRECISIONS = {"diagonal": lambda D: D, "full": lambda D: D * (D + 1) // 2}  # free entries of the factor of J


def factor(raw: Float[Array, " n"], D: int) -> Float[Array, "D D"]:
    """Lower-triangular L (D, D) from n = D entries (diagonal) or D (D + 1)/2 (full): softplus on the diagonal."""
    L = jnp.diag(diagonal(raw[:D]))
    return L if len(raw) == D else L.at[np.tril_indices(D, -1)].set(_limited(raw[D:]))


def diagonal(raw: Float[Array, " D"]) -> Float[Array, " D"]:
    """The diagonal of `factor`."""
    return jax.nn.softplus(_limited(raw))


def _limited(raw: Float[Array, " n"]) -> Float[Array, " n"]:
    return LIMIT * jnp.tanh(raw / LIMIT)


def unfactor(L: Float[Array, "D D"]) -> Float[Array, " n"]:
    """The entries (D (D + 1)/2,) that `factor` turns into L; the first D suffice if L is diagonal."""
    diagonal = jnp.diag(L)
    raw = jnp.concatenate([diagonal + jnp.log(-jnp.expm1(-diagonal)), L[np.tril_indices(len(L), -1)]])
    return LIMIT * jnp.arctanh(jnp.clip(raw / LIMIT, -0.999, 0.999))


def _as_matrix(diagonal: Float[Array, " D"]) -> Float[Array, "D D"]:
    """diag(diagonal): D zeros between two entries. Backward it is a slice; `jnp.diag` would add up all D D entries."""
    D = len(diagonal)
    return jax.lax.pad(diagonal, jnp.zeros((), diagonal.dtype), [(0, 0, D)]).reshape(D, D)


class PotentialHead(eqx.Module):
    """Features (F,) to a correction of the guess (D,) and the precision J = L L' + FLOOR I (D, D)."""

    guess: eqx.nn.Linear | None
    factor: eqx.nn.Linear
    latent_dim: int = eqx.field(static=True)

    def mean(self, features: Float[Array, " F"]) -> Float[Array, " D"] | float:
        """What the features add to the guess; 0 in an affine network."""
        return 0.0 if self.guess is None else apply_dense(self.guess, features)

    def potential(self, mu: Float[Array, " D"], features: Float[Array, " F"]) -> Gaussian:
        """J (D, D), symmetric positive definite, and h = J mu."""
        raw = apply_dense(self.factor, features)
        if len(raw) == self.latent_dim:
            J = jnp.square(diagonal(raw)) + FLOOR
            return Gaussian(_as_matrix(J), J * mu)
        L = factor(raw, self.latent_dim)
        J = jnp.matmul(L, L.T, precision="highest") + FLOOR * jnp.eye(len(L), dtype=L.dtype)
        return Gaussian(J, jnp.sum(J * mu[None], -1))


class Recognition(eqx.Module):
    """r(y; φ): frames (T, *event) with NaN for missing, mask (T,) → Gaussian(J (T, D, D), h (T, D)).

    J = L L' + εI and h = J μ with μ = W⁺(y - b) + correction; exactly 0 at padding and where a whole frame is missing.
    """

    trunk: eqx.Module
    head: PotentialHead
    linear: Project | None
    missing: bool = eqx.field(static=True)

    def __call__(self, y: Float[Array, "T *event"], mask: Bool[Array, " T"]) -> Gaussian:
        event, y = y.shape[1:], y.reshape(len(y), -1)  # one long axis: loops over the rows of an image are slow
        observed, whole = ~jnp.isnan(y) & mask[:, None], _whole(y, mask)
        shown = jnp.where(observed, y, 0)
        inputs = jnp.stack([shown, observed.astype(y.dtype)] if self.missing else [shown], axis=-1)
        features = self.trunk(inputs.reshape(len(y), *event, -1), mask)
        linear = jnp.zeros((len(y), 1), y.dtype) if self.linear is None else self.linear(shown, y, whole)
        seen = mask & jax.lax.cond(whole, lambda: mask, lambda: ~jnp.all(jnp.isnan(y), -1))
        return jax.vmap(self.potential)(linear, seen, features)

    def potential(self, linear: Float[Array, " D"], seen: Bool[Array, ""], features: Float[Array, " F"]) -> Gaussian:
        """The potential of one frame, zero if nothing of it is observed."""
        psi = self.head.potential(linear + self.head.mean(features), features)
        return Gaussian(jnp.where(seen, psi.J, 0), jnp.where(seen, psi.h, 0))


def _whole(y: Float[Array, "T P"], mask: Bool[Array, " T"]) -> Bool[Array, ""]:
    """Whether nothing is missing in the real frames of a whole batch: a sum is NaN where an entry is."""
    return everywhere(jnp.all(~jnp.isnan(jnp.sum(y, -1)) | ~mask))


def potential_head(
    features: int, latent_dim: int, entries: int, *, guess_scale: float | None, key: PRNGKeyArray
) -> PotentialHead:
    """A head whose precision starts at about 1; `guess_scale` None leaves the guess to the linear map."""
    key_guess, key_factor = jax.random.split(key)
    guess = None if guess_scale is None else dense(features, latent_dim, scale=guess_scale, key=key_guess)
    layer = dense(features, entries, scale=START_SCALE, key=key_factor)
    bias = unfactor(jnp.eye(latent_dim))[:entries]
    return PotentialHead(guess, eqx.tree_at(lambda m: m.bias, layer, bias), latent_dim)


def make_recognition(
    event_shape: tuple[int, ...],
    latent_dim: int,
    *,
    network: str | RecognitionNetwork,
    hidden: tuple[int, ...],
    precision: str,
    missing: bool,
    activation: str = "tanh",
    key: PRNGKeyArray,
) -> Recognition:
    """A recognition network for frames of `event_shape`, by the names in RECOGNITION_NETWORKS and PRECISIONS.

    `hidden` are widths (channels for conv; unused by affine); `missing` shows the network which entries are observed.

    Args:
        event_shape: The shape of a frame.
        latent_dim: The number of latent dimensions D.
        network: The name of a network, or one itself.
        hidden: Widths of its layers.
        precision: Whether potentials have a diagonal or a full precision.
        missing: Whether the network is shown which entries are there.
        activation: The name of the function between layers.
        key: The random key of its weights.

    Returns:
        `Recognition`.
    """
    key_trunk, key_head, key_linear = jax.random.split(key, 3)
    named = isinstance(network, str)
    kind = choose("recognition network", network, RECOGNITION_NETWORKS) if named else network
    entries = choose("precision", precision, PRECISIONS)(latent_dim)
    trunk = kind.trunk(event_shape, 1 + missing, hidden, choose("activation", activation, ACTIVATIONS), key=key_trunk)
    scale = (START_SCALE if kind.linear else UNIT) if kind.correction else None
    head = potential_head(trunk.size, latent_dim, entries, guess_scale=scale, key=key_head)
    P = math.prod(event_shape)
    linear = Project(partial_isometry(P, latent_dim, key=key_linear).T, jnp.zeros(P)) if kind.linear else None
    return Recognition(trunk, head, linear, missing)


def with_precision(recognize: Recognition, J: Float[Array, "D D"]) -> Recognition:
    """`recognize` with the precision J (D, D) at every frame (its diagonal, for a diagonal head), free to learn on.

    Eigenvalues below 2 FLOOR are raised to it.

    Args:
        recognize: A recognition network.
        J: The precision (D, D).

    Returns:
        The network with that precision.
    """
    layer = recognize.head.factor
    J = J if layer.out_features > len(J) else jnp.diag(jnp.diag(J))
    values, vectors = jnp.linalg.eigh(J)
    L = jnp.linalg.cholesky((vectors * jnp.maximum(values - FLOOR, FLOOR)[None]) @ vectors.T)
    values = jnp.zeros_like(layer.weight), unfactor(L)[: layer.out_features]
    return eqx.tree_at(lambda m: (m.head.factor.weight, m.head.factor.bias), recognize, values)


def as_sure_as(recognize: Recognition, ratio: Float[Array, " D"]) -> Recognition:
    """`recognize` with every standard deviation that it states divided by `ratio`, frame by frame.

    Args:
        recognize: A recognition network.
        ratio: Of each latent dimension (D,).

    Returns:
        The network that is so much surer.
    """
    layer = recognize.head.factor
    D = recognize.head.latent_dim
    bias = layer.bias[:D]
    sized = jnp.maximum(jax.nn.softplus(bias) * ratio, FLOOR)
    moved = sized + jnp.log(-jnp.expm1(-sized))  # softplus(moved) = sized
    moved = jnp.where(ratio == 1, bias, moved)  # after a step that was not taken, to the last bit
    below = ratio[np.tril_indices(D, -1)[0]] if layer.out_features > D else jnp.zeros(0)
    slope = jnp.concatenate([ratio * jax.nn.sigmoid(bias) / jax.nn.sigmoid(moved), below])
    values = slope[:, None] * layer.weight, jnp.concatenate([moved, layer.bias[D:] * below])
    return eqx.tree_at(lambda m: (m.head.factor.weight, m.head.factor.bias), recognize, values)
