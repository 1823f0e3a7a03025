"""Algorithm 1: one stochastic estimate of the variational bound, and its gradients.

The natural gradient of the bound in q(theta) is its plain gradient in the expected statistics of q(theta). `pgm.infer`
takes those statistics (the moments) as an argument, so one backward pass gives the exact natural gradient of every
model: with one local factor or many, and with the last term of Prop. 4.2 that Algorithm 1 abbreviates.

A variant of the estimator is another function with the same signature.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from svae import expfam
from svae.data.beside import NOTHING, Beside
from svae.devices import by_rows, is_shared
from svae.messages import compensated_sum
from svae.model import SVAE


class Evidence(NamedTuple):
    """The parts of the bound that depend on data, summed over the counted frames of a batch."""

    log_likelihood: Float[Array, ""]  # E log p(y | x, gamma), by sampling
    kl: Float[Array, ""]  # E_q(theta) KL(q*(x) || p(x | theta))
    log_normalizer: Float[Array, ""]  # the surrogate bound; its derivative in the moments is E t_x(x)
    usage: Float[Array, " K"]  # expected frames in each state
    residual: Float[Array, ""]  # of the worst mean field fixed point
    labels: Int[Array, " T"]  # the likeliest state of each frame of the first sequence
    each: Float[Array, "B T"]  # log likelihood - kl of every counted frame, 0 elsewhere


class Bound(NamedTuple):
    """The bound = log_likelihood - local_kl - global_kl - weights_kl, in nats for the whole data set."""

    bound: Float[Array, ""]
    log_likelihood: Float[Array, ""]
    local_kl: Float[Array, ""]
    global_kl: Float[Array, ""]
    weights_kl: Float[Array, ""]
    usage: Float[Array, " K"]
    residual: Float[Array, ""]


class Gradient(NamedTuple):
    """Directions of ascent, one for each trainable part of an SVAE."""

    q: Any  # natural gradient, in natural coordinates centred at q
    recognize: Any
    observe: Any
    ordinary: Any  # of the latent graph's parameters without a conjugate prior


def evidence(
    model: SVAE,
    moments: Any,
    y: Array,
    mask: Bool[Array, "B T"],
    counted: Bool[Array, "B T"],
    key: PRNGKeyArray,
    beside: Beside = NOTHING,
    infer: Callable = SVAE.posterior,
) -> Evidence:
    """Lines 1 to 4 of Algorithm 1 for a batch of sequences; on several devices, each takes its own of them.

    `infer` gives q*(x, z) of one sequence: the model's posterior, or another whose bound is asked for.
    """
    key_x, key_gamma = (jax.random.split(k, model.config.samples) for k in jax.random.split(key))
    keys = jax.vmap(lambda k: jax.random.split(k, len(y)), out_axes=1)(key_x)  # (B, samples), whatever the devices
    if not is_shared():
        return _evidence(infer, model, moments, y, mask, counted, keys, beside, key_gamma)
    arrays, static = eqx.partition((model, moments, key_gamma), eqx.is_array)

    def one(arrays, rows):
        model, moments, key_gamma = eqx.combine(arrays, static)
        return _evidence(infer, model, moments, *rows, key_gamma)

    found = by_rows(one, arrays, (y, mask, counted, keys, beside))
    sums = jax.tree.map(lambda x: jnp.sum(x, 0), found)
    each = found.each.reshape(mask.shape)
    return sums._replace(residual=jnp.max(found.residual), labels=found.labels[0], each=each)


def _evidence(infer, model, moments, y, mask, counted, keys, beside, keys_gamma) -> Evidence:
    """The evidence of the sequences of one device; keys (B, samples)."""
    each = jax.vmap(functools.partial(infer, model), (None, 0, 0, None, 0))
    posterior = each(moments, y, mask, None, beside)  # psi <- r(y; phi), and q*(x) from it

    def at_a_draw(keys_x, key_gamma):
        x = jax.vmap(lambda q, k: q.sample(key=k))(posterior, keys_x)  # x ~ q*(x)
        gamma = model.observe.draw(key=key_gamma)  # gamma ~ q(gamma)
        gap = jax.vmap(lambda q, x: q.gap(x))(posterior, x)  # of conditionals that are not conjugate, or None
        if model.pgm.observed:  # then x is all but a point, and a draw of it would be all noise
            (q,) = posterior.continuous
            return gamma.expected_log_prob(frames(q.mean), frames(q.sqrt), frames(y)).reshape(mask.shape), gap
        return gamma.log_prob(frames(x), frames(y)).reshape(mask.shape), gap

    # All frames on one axis: where rows have two, the compiler transposes a batch of frames to add up derivatives.
    frames = lambda a: a.reshape(-1, *a.shape[2:])  # noqa: E731
    log_prob, gap = _mean_over(at_a_draw, keys, keys_gamma)
    kl = posterior.kl if gap is None else posterior.kl - gap
    total = lambda terms: compensated_sum(jnp.where(counted, terms, 0).reshape(-1))  # noqa: E731
    usage = jnp.sum(jnp.where(counted[..., None], posterior.states, 0), (0, 1))
    sums = total(log_prob), total(kl), total(posterior.log_normalizer)
    each = jnp.where(counted, log_prob - kl, 0)
    return Evidence(*sums, usage, jnp.max(posterior.residual), jnp.argmax(posterior.states[0], -1), each)


def _mean_over(function: Callable, keys: Array, keys_gamma: Array) -> Any:
    """The mean of function(keys (B,), key) over samples; one sample is taken without an axis for it."""
    if len(keys_gamma) == 1:
        return function(keys[:, 0], keys_gamma[0])
    return jax.tree.map(lambda each: jnp.mean(each, 0), jax.vmap(function, (1, 0))(keys, keys_gamma))


def with_parameters(model: SVAE, recognize: Any, observe: Any, ordinary: Any) -> SVAE:
    """The model with other networks and ordinary parameters of its graph."""
    pgm = dataclasses.replace(model.pgm, ordinary=ordinary)
    return dataclasses.replace(model, pgm=pgm, recognize=recognize, observe=observe)


def _weights_kl(observe: Any, pgm: Any) -> Float[Array, ""]:
    """What is not scaled by N: the KL of q(gamma), and the prior of parameters that are points."""
    return observe.kl() if pgm.conjugate else observe.kl() + pgm.penalty()


def _unscaled(q: Any, pgm: Any) -> Float[Array, ""]:
    """What ordinary parameters pay that is not scaled by N: their own prior, and the KL to a prior that they make."""
    return pgm.penalty() + expfam.kl(q, pgm.believed) if pgm.by else pgm.penalty()


def _bound(model: SVAE, found: Evidence, scale: float | Float[Array, ""]) -> Bound:
    global_kl, weights_kl = expfam.kl(model.q, model.pgm.believed), _weights_kl(model.observe, model.pgm)
    log_likelihood, local_kl = scale * found.log_likelihood, scale * found.kl
    bound = log_likelihood - local_kl - global_kl - weights_kl
    return Bound(bound, log_likelihood, local_kl, global_kl, weights_kl, scale * found.usage, found.residual)


def elbo(
    model: SVAE, y: Array, mask: Bool[Array, "B T"], *, num_data, key: PRNGKeyArray, counted=None, beside=NOTHING
) -> Bound:
    """Estimate of the bound for `num_data` sequences from a batch of them.

    Args:
        model: A model.
        y: A batch of sequences (B, T, *event) in the model's units.
        mask: Which frames are real (B, T); the others are padding.
        num_data: The number of sequences in the data set.
        key: The random key of the draws.
        counted: The frames whose likelihood and KL count (default: all real frames); the others serve as context.
        beside: What the sequences carry beside y, each array with a leading axis B (default: nothing).

    Returns:
        `Bound`: the bound and its parts, in nats for the whole data set.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import svae
        >>> model = svae.make((2,), model="lds", latent_dim=2, hidden=())
        >>> y, mask = jnp.zeros((3, 5, 2)), jnp.ones((3, 5), bool)
        >>> svae.elbo(model, y, mask, num_data=3, key=jax.random.key(0)).bound.shape
        ()
    """
    counted = mask if counted is None else counted
    return _bound(model, evidence(model, expfam.moments(model.q), y, mask, counted, key, beside), num_data / len(y))


def value_and_grad(
    model: SVAE, y: Array, mask: Bool[Array, "B T"], *, num_data, key: PRNGKeyArray, counted=None, beside=NOTHING
):
    """Algorithm 1 with the unbiased natural gradient.

    Args:
        model: A model.
        y: A batch of sequences (B, T, *event) in the model's units.
        mask: Which frames are real (B, T); the others are padding.
        num_data: The number of sequences in the data set.
        key: The random key of the draws.
        counted: The frames whose likelihood and KL count (default: all real frames); the others serve as context.
        beside: What the sequences carry beside y, each array with a leading axis B (default: nothing).

    Returns:
        `(Bound, Gradient)`: the estimate, and a direction of ascent for each trainable part.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import svae
        >>> model = svae.make((2,), model="lds", latent_dim=2, hidden=())
        >>> y, mask = jnp.zeros((3, 5, 2)), jnp.ones((3, 5), bool)
        >>> bound, gradient = svae.value_and_grad(model, y, mask, num_data=3, key=jax.random.key(0))
        >>> bound.bound.shape
        ()
    """
    counted = mask if counted is None else counted
    scale = num_data / len(y)

    def objective(parts):
        moments, *parameters = parts
        found = evidence(with_parameters(model, *parameters), moments, y, mask, counted, key, beside)
        return scale * (found.log_likelihood - found.kl), found

    parts = (expfam.moments(model.q), model.recognize, model.observe, model.pgm.ordinary)
    (d_moments, d_recognize, d_observe, d_ordinary), found = eqx.filter_grad(objective, has_aux=True)(parts)
    natural = expfam.natural_gradient(model.q, model.pgm.believed, d_moments)  # prior - q + d_moments, in the dual
    d_kl = eqx.filter_grad(lambda observe: observe.kl())(model.observe)  # not scaled by N
    d_observe = jax.tree.map(jnp.subtract, d_observe, d_kl)
    d_penalty = eqx.filter_grad(lambda pgm: _unscaled(model.q, pgm))(model.pgm).ordinary
    d_ordinary = jax.tree.map(jnp.subtract, d_ordinary, d_penalty)
    return _bound(model, found, scale), Gradient(natural, d_recognize, d_observe, d_ordinary)


def value_and_grad_2016(
    model: SVAE, y: Array, mask: Bool[Array, "B T"], *, num_data, key: PRNGKeyArray, counted=None, beside=NOTHING
):
    """The estimator of the code published with the paper: `prior - q + N (E t_x(x), 1)`, the last term dropped.

    Args:
        model: A model.
        y: A batch of sequences (B, T, *event) in the model's units.
        mask: Which frames are real (B, T); the others are padding.
        num_data: The number of sequences in the data set.
        key: The random key of the draws.
        counted: The frames whose likelihood and KL count (default: all real frames); the others serve as context.
        beside: What the sequences carry beside y, each array with a leading axis B (default: nothing).

    Returns:
        `(Bound, Gradient)`: the estimate, and a direction of ascent for each trainable part.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import svae
        >>> model = svae.make((2,), model="lds", latent_dim=2, hidden=())
        >>> y, mask = jnp.zeros((3, 5, 2)), jnp.ones((3, 5), bool)
        >>> bound, gradient = svae.value_and_grad_2016(model, y, mask, num_data=3, key=jax.random.key(0))
        >>> bound.bound.shape
        ()
    """
    surrogate = lambda found: found.log_normalizer  # noqa: E731
    return _with_natural(surrogate, model, y, mask, num_data, key, counted, beside)


def value_and_grad_printed(
    model: SVAE, y: Array, mask: Bool[Array, "B T"], *, num_data, key: PRNGKeyArray, counted=None, beside=NOTHING
):
    """Algorithm 1 as the paper prints it: the last term keeps the gradient of log p(y | x, gamma) only.

    Args:
        model: A model.
        y: A batch of sequences (B, T, *event) in the model's units.
        mask: Which frames are real (B, T); the others are padding.
        num_data: The number of sequences in the data set.
        key: The random key of the draws.
        counted: The frames whose likelihood and KL count (default: all real frames); the others serve as context.
        beside: What the sequences carry beside y, each array with a leading axis B (default: nothing).

    Returns:
        `(Bound, Gradient)`: the estimate, and a direction of ascent for each trainable part.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import svae
        >>> model = svae.make((2,), model="lds", latent_dim=2, hidden=())
        >>> y, mask = jnp.zeros((3, 5, 2)), jnp.ones((3, 5), bool)
        >>> bound, gradient = svae.value_and_grad_printed(model, y, mask, num_data=3, key=jax.random.key(0))
        >>> bound.bound.shape
        ()
    """
    surrogate = lambda found: found.log_normalizer + found.log_likelihood  # noqa: E731
    return _with_natural(surrogate, model, y, mask, num_data, key, counted, beside)


def value_and_grad_flat(
    model: SVAE, y: Array, mask: Bool[Array, "B T"], *, num_data, key: PRNGKeyArray, counted=None, beside=NOTHING
):
    """Standard gradients in plain natural parameters: the Fisher information times the natural gradient.

    Args:
        model: A model.
        y: A batch of sequences (B, T, *event) in the model's units.
        mask: Which frames are real (B, T); the others are padding.
        num_data: The number of sequences in the data set.
        key: The random key of the draws.
        counted: The frames whose likelihood and KL count (default: all real frames); the others serve as context.
        beside: What the sequences carry beside y, each array with a leading axis B (default: nothing).

    Returns:
        `(Bound, Gradient)`: the estimate, and a direction of ascent for each trainable part.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import svae
        >>> model = svae.make((2,), model="lds", latent_dim=2, hidden=())
        >>> y, mask = jnp.zeros((3, 5, 2)), jnp.ones((3, 5), bool)
        >>> bound, gradient = svae.value_and_grad_flat(model, y, mask, num_data=3, key=jax.random.key(0))
        >>> bound.bound.shape
        ()
    """
    bound, gradient = value_and_grad(model, y, mask, num_data=num_data, key=key, counted=counted, beside=beside)
    return bound, gradient._replace(q=flat_gradient(model.q, gradient.q))


def flat_gradient(q: Any, natural: Any) -> Any:
    """Fisher(q) times a natural gradient, by one Hessian-vector product; both in coordinates centred at q."""
    stats = lambda eta: expfam.expected_stats(expfam.from_natural(q, eta))  # noqa: E731
    _, flat = jax.jvp(stats, (expfam.natural(q),), (expfam.uncentre(q, natural),))
    return expfam.centre(q, flat)


def _with_natural(objective: Callable, model, y, mask, num_data, key, counted, beside) -> tuple[Bound, Gradient]:
    """The unbiased estimate with the natural gradient of another objective in place of its own."""
    if not model.pgm.conjugate:
        raise ValueError("this estimator is for graphs whose conditionals are all conjugate: use value_and_grad")
    frames = mask if counted is None else counted
    bound, gradient = value_and_grad(model, y, mask, num_data=num_data, key=key, counted=counted, beside=beside)
    parts = lambda moments: evidence(model, moments, y, mask, frames, key, beside)  # noqa: E731
    scaled = lambda moments: num_data / len(y) * objective(parts(moments))  # noqa: E731
    natural = expfam.natural_gradient(model.q, model.pgm.believed, jax.grad(scaled)(expfam.moments(model.q)))
    return bound, gradient._replace(q=natural)
