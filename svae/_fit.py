"""Fitting: a generator of steps. Progress bars, plots, run folders and whoever stops it consume what it yields.

Each step is a function of the state before it, the seed and the number of the step: `fit` goes on from a `FitState` bit
for bit as if it had never stopped. The warm-up has no state; it is short, and begins again.
"""

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from svae import _optimizer
from svae._duration import adapted, due, settled
from svae._elbo import Bound, value_and_grad
from svae._held_out import HeldOut, held_out_bound
from svae._model import SVAE
from svae._prepare import FitError, Prepared, prepare, sizes
from svae._program import Taken, keys_of_step, pick, stack, take, take_all
from svae._sharding import agreed, local, replicated
from svae._steps import Step, batch_at, failure, give_up, mesh_for, report
from svae._warm_up import warm_up
from svae.data import Batch

__all__ = ["FitError", "FitState", "Step", "final_model", "finished", "fit", "held_out_bound", "start"]


class FitState(NamedTuple):
    """All that a fit remembers between two steps."""

    models: SVAE  # all restarts: a leading axis in every array
    optimizer: _optimizer.State  # of each restart
    done: Array  # steps taken after the warm-up
    restart: Array  # the best at the last measurement
    best: SVAE  # the model with the highest held-out bound
    best_bound: Array
    best_done: Array  # the steps that it had taken
    waited: Array  # measurements since then


def start(models: SVAE) -> FitState:
    """The state before the first step, from warm models with a leading axis for restarts."""
    optimizer = _optimizer.networks_optimizer(models.config)
    states = eqx.filter_vmap(lambda m: _optimizer.init(m, optimizer))(models)
    zero = jnp.zeros((), jnp.int32)
    return FitState(models, states, zero, zero, pick(models, 0), jnp.full((), -jnp.inf, jnp.float32), zero, zero)


def finished(state: FitState) -> bool:
    """No more steps to take: all are taken, or the held-out bound has not improved for `patience` measurements."""
    config = state.models.config
    return int(state.done) >= config.steps or (config.patience is not None and int(state.waited) >= config.patience)


def final_model(state: FitState) -> SVAE:
    """What the fit gives if it ends here: with patience the best model by held-out bound, else the last one."""
    return pick(state.models, int(state.restart)) if state.models.config.patience is None else state.best


def fit(
    model: SVAE,
    data: Any,
    *,
    key: PRNGKeyArray | None = None,
    estimator: Callable = value_and_grad,
    resume: FitState | None = None,
) -> Iterator[Step]:
    """Fit `model` to recordings (an array (T, *event), a list or a dict of them); its config has the settings.

    `estimator` is `value_and_grad` or another function of its signature. `resume` is the state of an earlier step, and
    the steps after it come out as they would have then; data, key and estimator must be the same.
    """
    config = model.config
    key_warm, key_fit = jax.random.split(jax.random.key(config.seed) if key is None else key)
    model, prepared, notes = prepare(model, data)
    if resume is None:
        models = []
        for restart, restart_key in enumerate(jax.random.split(key_warm, config.restarts)):
            warm = model
            for step in warm_up(model, prepared, restart_key, restart):
                warm = step.model
                yield step._replace(note=" ".join([*notes, step.note]).strip())
                notes = []
            models.append(warm)
        resume = start(settled(agreed(stack(models)), prepared))
    yield from _train(resume, prepared, key_fit, estimator)


def _train(state: FitState, data: Prepared, key: PRNGKeyArray, estimator: Callable) -> Iterator[Step]:
    config, mesh, told_at = state.models.config, mesh_for(data, state.models.config), time.monotonic()
    ready = functools.partial(_ahead, data, sizes(data), key, estimator, mesh)
    i = int(state.done)
    running = None
    while not finished(state):
        piece, taken = running or ready(i, replicated((state.models, state.optimizer), mesh), state.restart)
        measures, moves = _measures(config, i + 1), due(config, i + 1)
        # The next step runs while this one is told, unless what it begins with may change.
        alone = measures or moves or jax.process_count() > 1
        running = None if alone else ready(i + 1, (taken.model, taken.state), state.restart)
        taken = taken if mesh is None else local(taken)
        state = state._replace(models=taken.model, optimizer=taken.state, done=taken.done)
        note, held, model = failure(taken, i, data, config), np.nan, taken.shown
        give_up(taken.state.damping, i, note)
        if measures:
            measured = _held_out(state.models, data, keys_of_step(key, i)[1], taken)
            state, held = _measured(state, agreed(np.array([m.bound for m in measured])))
        if moves:
            state = state._replace(models=adapted(state.models, data))
        if measures or moves:
            model = pick(state.models, int(state.restart))
        seconds, told_at = time.monotonic() - told_at, time.monotonic()
        step = report(i, model, _of_restart(taken.bound, state), data, seconds, piece, "fit")
        step = step._replace(held_out=held, note=note, state=state)
        yield _ended(_with_measurement(step, measured) if measures else step)
        i += 1


def _ahead(data: Prepared, totals, key, estimator, mesh, i: int, placed: tuple, restart) -> tuple[Batch, Taken]:
    """Step i on its way: its batch, and what will be there when it is done."""
    piece = batch_at(data, placed[0].config, i)
    return piece, take(take_all, placed, piece, (key, restart), totals, estimator, mesh)


def _measures(config, done: int) -> bool:
    """Whether the held-out bound is measured after so many steps."""
    return done % max(1, min(100, config.steps // 10)) == 0 or done == config.steps


def _of_restart(bound: Bound, state: FitState) -> Bound:
    return jax.tree.map(lambda a: np.asarray(a)[int(state.restart)], bound)


def _with_measurement(step: Step, measured: list[HeldOut]) -> Step:
    """What was found of every restart, and the states of the best."""
    best = measured[int(step.state.restart)]
    return step._replace(restarts=tuple(float(m.bound) for m in measured), labels=best.labels)


def _ended(step: Step) -> Step:
    """The last step carries the model that the fit returns."""
    state = step.state
    if not finished(state):
        return step
    early = int(state.done) < state.models.config.steps
    why = f"stopped early: the held-out bound has not improved since step {int(state.best_done)}." if early else ""
    return step._replace(model=final_model(state), note=" ".join(filter(None, [step.note, why])))


def _measured(state: FitState, held: np.ndarray) -> tuple[FitState, float]:
    """The state after a measurement of every restart (R,), and the bound of the best."""
    held = np.nan_to_num(np.asarray(held, np.float32), nan=-np.inf)
    restart = int(np.argmax(held))
    state = state._replace(restart=jnp.asarray(restart, jnp.int32), waited=state.waited + 1)
    if held[restart] > np.asarray(state.best_bound):
        zero, bound = jnp.zeros((), jnp.int32), jnp.asarray(held[restart])
        state = state._replace(best=pick(state.models, restart), best_bound=bound, best_done=state.done, waited=zero)
    return state, float(held[restart])


def _held_out(models: SVAE, data: Prepared, key: PRNGKeyArray, taken: Taken) -> list[HeldOut]:
    """Every restart in the units of the data; without held-out data, the training estimate and no labels."""
    if data.held is None:
        bounds = np.atleast_1d(np.asarray(taken.bound.bound)) / data.train.frames - data.log_volume
        return [HeldOut(float(bound), np.zeros(0, int)) for bound in bounds]
    found = [held_out_bound(pick(models, r), data.held, key=key) for r in range(models.config.restarts)]
    return [one._replace(bound=one.bound - data.held_volume) for one in found]
