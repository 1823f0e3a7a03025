"""Two kinds of steps in one update: natural steps for q(theta) and the noise, any optax chain for the networks."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int

from svae import expfam
from svae.bound import Gradient, with_parameters
from svae.config import Config
from svae.model import SVAE
from svae.nets import after_noise_step, bends, surer

HALVINGS = 30


class State(NamedTuple):
    """What the optimiser remembers, beside the model."""

    networks: Any  # of optax, for all weights in one vector
    damping: Float[Array, ""]  # shrinks all steps after a failure, and recovers
    step: Int[Array, ""]


class How(NamedTuple):
    """What a fit is free to choose: the gradient of the bound, and the optimiser of the networks; None for its own."""

    estimator: Callable
    optimizer: optax.GradientTransformation | None = None

    def of(self, config: Config) -> optax.GradientTransformation:
        """The optimiser of the networks."""
        return networks_optimizer(config) if self.optimizer is None else self.optimizer


class Update(NamedTuple):
    model: SVAE
    state: State
    good: Bool[Array, ""]  # False: the update was not finite, and nothing but the damping changed
    rho: Float[Array, ""]  # the natural step that was taken


def networks_optimizer(config: Config) -> optax.GradientTransformation:
    """Adam on clipped gradients, with a short linear start and a cosine end."""
    warm = min(50, max(1, config.steps // 10))
    schedule = optax.warmup_cosine_decay_schedule(
        0.1 * config.learning_rate, config.learning_rate, warm, max(config.steps, warm + 1), 0.05 * config.learning_rate
    )
    return optax.chain(optax.clip_by_global_norm(10.0), optax.adam(schedule))


def natural_schedule(config: Config, step: Int[Array, ""]) -> Float[Array, ""]:
    """rho: constant, then down to a tenth over the last third, so that minibatch noise averages out."""
    end = jnp.clip((step / max(config.steps, 1) - 2 / 3) * 3, 0, 1)
    return config.natural_step * (1 - 0.9 * end)


def networks(model: SVAE) -> tuple:
    """What the optimiser of the networks trains: their weights, and the graph's ordinary parameters."""
    return eqx.filter((model.recognize, model.observe, model.pgm.ordinary), eqx.is_inexact_array)


def init(model: SVAE, optimizer: optax.GradientTransformation) -> State:
    return State(optimizer.init(ravel_pytree(networks(model))[0]), jnp.ones(()), jnp.zeros((), int))


def held_straight(model: SVAE, step: Int[Array, ""]) -> Array:
    """1 for each weight of the networks that may change at this step, 0 for those that would bend a linear map."""
    config = model.config
    leaves, tree = jax.tree.flatten(networks(model))
    numbered = jax.tree.unflatten(tree, range(len(leaves)))
    bent = {i for network in numbered[:2] for part in bends(network) for i in part}
    if not config.linear or not bent:
        return jnp.ones(())
    begun = (step >= config.linear * config.steps).astype(jnp.result_type(float))
    return ravel_pytree([begun * jnp.ones_like(a) if i in bent else jnp.ones_like(a) for i, a in enumerate(leaves)])[0]


class Trial(NamedTuple):
    """A natural step that was tried: q after it, whether twice the step stays in the domain, and the next rho."""

    q: Any
    inside: Bool[Array, ""]
    rho: Float[Array, ""]
    halvings: Int[Array, ""]


def natural_step(q: Any, direction: Any, rho: Float[Array, ""]) -> tuple[Any, Float[Array, ""]]:
    """The guard: halve rho until twice the step stays in the domain.

    With the exact natural gradient a step is no convex combination and can leave the domain. The domain is convex in
    natural parameters, so a step that could be doubled keeps at least half of every scale matrix.
    """

    def attempt(last: Trial) -> Trial:
        once, twice = (expfam.step(q, direction, rho) for rho in (last.rho, 2 * last.rho))
        return Trial(once, expfam.in_domain(twice), last.rho / 2, last.halvings + 1)

    more = lambda trial: ~trial.inside & (trial.halvings < HALVINGS)  # noqa: E731
    trial = jax.lax.while_loop(more, attempt, Trial(q, jnp.array(False), rho, jnp.array(0)))
    keep = lambda new, old: jnp.where(trial.inside, new, old)  # noqa: E731
    return jax.tree.map(keep, trial.q, q), keep(2 * trial.rho, 0.0)


def update(model: SVAE, gradient: Gradient, state: State, optimizer: optax.GradientTransformation, scale) -> Update:
    """One step up the bound; `scale` brings the networks' gradients to nats per frame."""
    rate = state.damping * natural_schedule(model.config, state.step)
    q, rho = natural_step(model.q, gradient.q, rate.astype(jnp.result_type(float)))
    # All weights in one vector: a leaf at a time, each operation of the optimiser costs more than its numbers.
    weights, as_networks = ravel_pytree(networks(model))
    slope = ravel_pytree(eqx.filter(tuple(gradient)[1:], eqx.is_inexact_array))[0]
    changes, networks_state = optimizer.update(-slope * scale, state.networks, weights)
    moved = weights + state.damping * changes * held_straight(model, state.step)
    good = all_finite((gradient.q, slope, q, moved))
    damping = jnp.where(good, jnp.minimum(1.0, 1.05 * state.damping), state.damping / 2)
    keep = lambda new, old: jax.tree.map(lambda n, o: jnp.where(good, n, o), new, old)  # noqa: E731
    rest = (model.recognize, model.observe, model.pgm.ordinary)
    recognize, observe, ordinary = eqx.combine(as_networks(keep(moved, weights)), rest)
    if model.pgm.observed:  # an optimiser that shrinks weights would shrink the plane
        recognize, observe = model.recognize, model.observe
    observe = after_noise_step(model.observe, observe, gradient.observe, jnp.where(good, rate * scale, 0))
    recognize = surer(model.observe, observe, recognize)
    candidate = with_parameters(model, recognize, observe, ordinary)
    candidate = dataclasses.replace(candidate, q=keep(q, model.q))
    return Update(candidate, State(keep(networks_state, state.networks), damping, state.step + 1), good, rho)


def all_finite(tree: Any) -> Bool[Array, ""]:
    arrays = [leaf for leaf in jax.tree.leaves(tree) if eqx.is_inexact_array(leaf)]
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(a)) for a in arrays])) if arrays else jnp.array(True)
