"""Observation networks p(y | x, γ): a sequence of latents to a likelihood of the frames, each given its own latent."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from svae.nets.images import conv_decoder, conv_head
from svae.nets.likelihoods import (
    LEAST_SD,
    Bernoulli,
    FixedScale,
    GaussianNoise,
    LearnedScale,
    Likelihood,
    NetworkScale,
    Poisson,
    Scale,
    StudentT,
)
from svae.nets.linear import Embed, partial_isometry
from svae.nets.recognition import Recognition, as_sure_as
from svae.nets.trunks import ACTIVATIONS, MLP, UNIT, apply_dense, choose, dense, mlp

START_SD = 0.3  # leaves a tenth of the variance of standardised data to noise: latents are worth using from the start
Noisy = TypeVar("Noisy", bound=eqx.Module)  # an Observation, or a posterior over its weights
MOST_NOISE_STEP = 0.5  # of log sd, in one step
START_SCALE = 0.01  # scale of the last layer of a correction, so that a network starts at its linear map


class Observation(eqx.Module):
    """p(y | x, γ) with location(x) = W x + b + head(trunk(x)); γ, the arrays of this module, is a point estimate."""

    trunk: eqx.Module
    head: eqx.Module | None
    linear: Embed | None
    likelihood: Likelihood
    event_shape: tuple[int, ...] = eqx.field(static=True)

    def log_prob(self, x: Float[Array, "T D"], y: Float[Array, "T *event"]) -> Float[Array, " T"]:
        """log p(y_t | x_t) (T,), the sum over the entries of y_t that are not NaN."""
        return jax.vmap(self._frame_log_prob)(x, y)

    def mean(self, x: Float[Array, "T D"]) -> Float[Array, "T *event"]:
        """E[y_t | x_t]."""
        return jax.vmap(lambda x_t: self.likelihood.mean(self._location(x_t, self.trunk(x_t))))(x)

    def simulate(self, x: Float[Array, "T D"], *, key: PRNGKeyArray) -> Float[Array, "T *event"]:
        """y_t ~ p(y_t | x_t)."""
        return jax.vmap(self._frame_simulate)(x, jax.random.split(key, len(x)))

    def draw(self, *, key: PRNGKeyArray) -> "Observation":
        """γ̂ ~ q(γ); a point estimate draws itself."""
        return self

    def kl(self) -> Float[Array, ""]:
        """KL(q(γ) ‖ p(γ)), which a point estimate leaves out."""
        return jnp.zeros(())

    def _location(self, x: Float[Array, " D"], features: Float[Array, "..."]) -> Float[Array, "*event"]:
        if self.linear is not None and isinstance(self.head, DenseHead):
            return self.head.beside(self.linear, x, features)
        linear = 0.0 if self.linear is None else self.linear(x).reshape(self.event_shape)
        return linear + (0.0 if self.head is None else self.head(features))

    def _frame_log_prob(self, x: Float[Array, " D"], y: Float[Array, "*event"]) -> Float[Array, ""]:
        features, y = self.trunk(x), y.reshape(-1)  # one long axis: loops over the rows of an image are slow
        return self.likelihood.log_prob(y, self._location(x, features).reshape(-1), features)

    def _frame_simulate(self, x: Float[Array, " D"], key: PRNGKeyArray) -> Float[Array, "*event"]:
        features = self.trunk(x)
        return self.likelihood.sample(self._location(x, features), features, key=key)


class DenseHead(eqx.Module):
    """Features (F,) to one number per entry of the event."""

    layer: eqx.nn.Linear
    event_shape: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, features: Float[Array, " F"]) -> Float[Array, "*event"]:
        return apply_dense(self.layer, features).reshape(self.event_shape)

    def beside(self, linear: Embed, x: Float[Array, " D"], features: Float[Array, " F"]) -> Float[Array, "*event"]:
        """linear(x) + head(features) by one product: the frame is what costs, and it is made once."""
        weight = jnp.concatenate([self.layer.weight, linear.W, (self.layer.bias + linear.b)[:, None]], -1)
        return (jnp.concatenate([features, x, jnp.ones_like(x[:1])]) @ weight.T).reshape(self.event_shape)


def dense_head(size: int, event_shape: tuple[int, ...], *, scale: float, key: PRNGKeyArray) -> DenseHead:
    """See `DenseHead`."""
    return DenseHead(dense(size, math.prod(event_shape), scale=scale, key=key), event_shape)


def mlp_decoder(
    latent_dim: int, event_shape: tuple[int, ...], hidden: tuple[int, ...], activation: Callable, *, key: PRNGKeyArray
) -> MLP:
    """An MLP on the latent."""
    return mlp(latent_dim, hidden, activation, key=key)


def affine_decoder(
    latent_dim: int, event_shape: tuple[int, ...], hidden: tuple[int, ...], activation: Callable, *, key: PRNGKeyArray
) -> MLP:
    """The latent itself as features, whatever the widths: a network variance is then log-linear in x."""
    return mlp(latent_dim, (), activation, key=key)


class ObservationNetwork(NamedTuple):
    """location(x) = linear map (if any) + correction by a head on the trunk's features (if any)."""

    trunk: Callable
    head: Callable
    linear: bool
    correction: bool


OBSERVATION_NETWORKS = {
    "affine": ObservationNetwork(affine_decoder, dense_head, linear=True, correction=False),
    "mlp": ObservationNetwork(mlp_decoder, dense_head, linear=False, correction=True),
    "residual": ObservationNetwork(mlp_decoder, dense_head, linear=True, correction=True),
    "conv": ObservationNetwork(conv_decoder, conv_head, linear=True, correction=True),
}


def fixed_scale(sd: float, event_shape: tuple[int, ...], head: Callable, *, key: PRNGKeyArray) -> FixedScale:
    """sd itself."""
    return FixedScale(sd)


def learned_scale(sd: float, event_shape: tuple[int, ...], head: Callable, *, key: PRNGKeyArray) -> LearnedScale:
    """A log sd per entry that starts at log sd."""
    return LearnedScale(jnp.full(event_shape, math.log(sd), jnp.result_type(float)))


def network_scale(sd: float, event_shape: tuple[int, ...], head: Callable, *, key: PRNGKeyArray) -> NetworkScale:
    """A log sd that is a function of the latent and starts near log sd."""
    return NetworkScale(head(scale=START_SCALE, key=key), sd)


VARIANCES = {"fixed": fixed_scale, "learned": learned_scale, "network": network_scale}
LIKELIHOODS = {
    "gaussian": GaussianNoise,
    "student_t": lambda scale: StudentT(scale, jnp.log(jnp.expm1(jnp.asarray(3.0)))),
    "bernoulli": lambda scale: Bernoulli(),
    "poisson": lambda scale: Poisson(),
}


def make_observation(
    event_shape: tuple[int, ...],
    latent_dim: int,
    *,
    network: str,
    hidden: tuple[int, ...],
    likelihood: str | Likelihood,
    variance: str,
    sd: float = START_SD,
    activation: str = "tanh",
    key: PRNGKeyArray,
) -> Observation:
    """An observation network, by the names in OBSERVATION_NETWORKS, LIKELIHOODS and VARIANCES, or a likelihood itself.

    `hidden` are widths (channels for conv; unused by affine). `sd` is the fixed or the initial sd. Bernoulli and
    Poisson have no variance of their own and pass it by.

    Args:
        event_shape: The shape of a frame.
        latent_dim: The number of latent dimensions D.
        network: The name of a network.
        hidden: Widths of its layers.
        likelihood: The name of a likelihood, or one of your own.
        variance: Whether the sd is fixed, learned, or given by the network.
        sd: The sd, or the first one.
        activation: The name of the function between layers.
        key: The random key of its weights.

    Returns:
        `Observation`.
    """
    key_trunk, key_head, key_linear, key_scale = jax.random.split(key, 4)
    kind = choose("observation network", network, OBSERVATION_NETWORKS)
    nonlinearity = choose("activation", activation, ACTIVATIONS)
    trunk = kind.trunk(latent_dim, event_shape, hidden, nonlinearity, key=key_trunk)

    def head(*, scale: float, key: PRNGKeyArray) -> eqx.Module:
        return kind.head(trunk.size, event_shape, scale=scale, key=key)

    correction = head(scale=START_SCALE if kind.linear else UNIT, key=key_head) if kind.correction else None
    P = math.prod(event_shape)
    linear = Embed(partial_isometry(P, latent_dim, key=key_linear), jnp.zeros(P)) if kind.linear else None
    scale: Scale = choose("variance", variance, VARIANCES)(sd, event_shape, head, key=key_scale)
    named = isinstance(likelihood, str)
    chosen = choose("likelihood", likelihood, LIKELIHOODS)(scale) if named else likelihood
    return Observation(trunk, correction, linear, chosen, event_shape)


def after_noise_step(old: Noisy, new: Noisy, slope: Noisy, rate: Float[Array, ""]) -> Noisy:
    """`new` with the noise of `old` after a natural step; other observations than a point estimate as they are.

    `slope` is the gradient of the bound per frame in log sd, whose Fisher information is 2 for each frame: Adam would
    take a thousand steps to shrink the noise of a pixel that never changes. No sd falls below LEAST_SD.

    Args:
        old: The observation before the step.
        new: The observation after the step of its other parameters.
        slope: The gradient, shaped like them.
        rate: The size of the step, in (0, 1].

    Returns:
        An observation.
    """
    if not isinstance(old, Observation) or not isinstance(getattr(old.likelihood, "scale", None), LearnedScale):
        return new
    log_sd = lambda o: o.likelihood.scale.log_sd  # noqa: E731
    step = jnp.clip(rate * log_sd(slope) / 2, -MOST_NOISE_STEP, MOST_NOISE_STEP)
    step = jnp.where(jnp.isfinite(step), step, 0)
    moved = jnp.maximum(log_sd(old) + step, jnp.minimum(log_sd(old), math.log(LEAST_SD)))
    return eqx.tree_at(log_sd, new, moved)


def bends(network: Any) -> tuple[list, list]:
    """The weights by which a network of ours departs from its linear map: those of its last layer, and all others.

    Where a recognition network sees which entries are missing, its certainty follows them from the first step.

    Args:
        network: A recognition or an observation network, or the same tree of other leaves.

    Returns:
        Two lists of arrays, empty where there is no linear map.
    """
    if isinstance(network, Observation) and network.linear is not None:
        return jax.tree.leaves(network.head), jax.tree.leaves(network.trunk)
    if isinstance(network, Recognition) and network.linear is not None and not network.missing:
        return jax.tree.leaves(network.head.guess), jax.tree.leaves((network.trunk, network.head.factor.weight))
    return [], []


def surer(old: Any, new: Any, recognize: Any) -> Any:
    """`recognize` after a step of the noise, surer of x by as much as the frames now say more of it.

    Where noise is learned by natural steps, the certainty that fits it would be far behind: Adam takes a thousand steps
    to double it. Networks of other kinds stay as they are.

    Args:
        old: The observation before the step.
        new: The observation after it.
        recognize: The recognition network.

    Returns:
        A recognition network.
    """
    if not isinstance(recognize, Recognition) or not isinstance(old, Observation) or old.linear is None:
        return recognize
    if not isinstance(getattr(old.likelihood, "scale", None), LearnedScale):
        return recognize
    said = lambda o: jnp.sum(old.linear.W**2 * jnp.exp(-2 * o.likelihood.scale.log_sd).reshape(-1, 1), 0)  # noqa: E731
    before = said(old)
    ratio = jnp.sqrt(said(new) / jnp.where(before > 0, before, 1))
    return as_sure_as(recognize, jnp.where(before > 0, ratio, 1))


def with_noise(observe: Noisy, sd: Float[Array, "*event"]) -> Noisy:
    """`observe` with its sd at sd where it is learned entry by entry; other observations as they are.

    Args:
        observe: An observation network.
        sd: Standard deviations (*event).

    Returns:
        The network with that noise.
    """
    if not isinstance(getattr(observe.likelihood, "scale", None), LearnedScale):
        return observe
    return eqx.tree_at(lambda o: o.likelihood.scale.log_sd, observe, jnp.log(sd))
