"""Fitting: a generator of steps. Progress bars, plots, run folders and whoever stops it consume what it yields.

Each step is a function of the state before it, the seed and the number of the step: `fit` goes on from a `FitState` bit
for bit as if it had never stopped. The warm-up has no state; it is short, and begins again.
"""

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, PRNGKeyArray

from svae import _reprs
from svae.bound import Bound, value_and_grad
from svae.data import Batch
from svae.devices import agreed, local, replicated
from svae.fitting import updates
from svae.fitting.held_out import HeldOut, held_out_bound
from svae.fitting.initialize import cold
from svae.fitting.prepare import FitError, Prepared, prepare, sizes
from svae.fitting.program import Taken, keys_of_step, pick, stack, take, take_all
from svae.fitting.steps import Step, batch_at, failure, give_up, mesh_for, report
from svae.fitting.warm_up import Warm, warm_up
from svae.model import SVAE
from svae.starting import never

MOST_BETWEEN = 100  # steps between two measurements of the held-out bound
SEEN = 25  # steps between two measurements where each step sees all frames
LEAST_GAIN = 0.02  # nats per held-out frame; a smaller gain is kept, but gives a fit no more patience

__all__ = ["FitError", "FitState", "Step", "Warm", "final_model", "finished", "fit", "held_out_bound", "start"]


class FitState(NamedTuple):
    """All that a fit remembers between two steps."""

    models: SVAE  # all restarts: a leading axis in every array
    optimizer: updates.State  # of each restart
    done: Array  # steps taken after the warm-up
    restart: Array  # the best at the last measurement
    best: SVAE  # the model with the highest held-out bound
    best_bound: Array
    best_done: Array  # the steps that it had taken
    waited: Array  # measurements without a gain since it last rose by more than LEAST_GAIN

    def __repr__(self) -> str:
        return _reprs.state_text(self)


def start(models: SVAE, optimizer: optax.GradientTransformation | None = None) -> FitState:
    """The state before the first step, from warm models with a leading axis for restarts."""
    optimizer = updates.networks_optimizer(models.config) if optimizer is None else optimizer
    states = eqx.filter_vmap(lambda m: updates.init(m, optimizer))(models)
    zero = jnp.zeros((), jnp.int32)
    return FitState(models, states, zero, zero, pick(models, 0), jnp.full((), -jnp.inf, jnp.float32), zero, zero)


def finished(state: FitState) -> bool:
    """No more steps to take: all are taken, or `patience` measurements had no gain since one above LEAST_GAIN."""
    config = state.models.config
    return int(state.done) >= config.steps or (config.patience is not None and int(state.waited) >= config.patience)


def final_model(state: FitState) -> SVAE:
    """What the fit gives if it ends here: with patience the best model by held-out bound, else the last one."""
    last = state.models.config.patience is None or not _is_measured(state)
    return pick(state.models, int(state.restart)) if last else state.best


def _is_measured(state: FitState) -> bool:
    return bool(np.isfinite(np.asarray(state.best_bound)))


def fit(
    model: SVAE,
    data: Any,
    *,
    key: PRNGKeyArray | None = None,
    estimator: Callable = value_and_grad,
    optimizer: optax.GradientTransformation | None = None,
    resume: FitState | None = None,
    warm: Sequence[Warm] = (),
    is_over: Callable[[], bool] = never,
    hurries: Callable[[], bool] = never,
) -> Iterator[Step]:
    """Fit `model` to recordings, step by step; its config has the settings.

    The generator yields a `Step` after each step: log it, plot it, or stop when you like. Nothing else happens.

    Args:
        model: A model from `model_for` or `make`, or a fitted one that is to go on from its weights.
        data: Recordings: an array (T, *event), a list or a dict of such, or what `load` returns. NaN is missing.
        key: The random key of the fit; without one, `config.seed` gives it.
        estimator: The gradient of the bound: `value_and_grad`, or another function of its signature.
        optimizer: Of the networks: any optax chain, whose steps descend; None for Adam with `config.learning_rate`.
        resume: The `state` of an earlier step; the steps after it come out as they would have then. Data, key,
            estimator and optimizer must be the same.
        warm: Restarts whose warm-up an earlier fit has done.
        is_over: Asked before each step. Once it says so, the model that there is is measured, and one last step, of
            the phase "end", carries the better one of it and the best before.
        hurries: Asked in the search for states, before the first step. Once it says so, what is left of the search is
            done in few sweeps, and the states are rougher.

    Returns:
        An iterator of `Step`. The last one carries the fitted model.

    Raises:
        DataError: The data cannot be used; the sentence says where and what to do.
        FitError: The fit cannot go on; the sentence says why.

    Examples:
        >>> import svae
        >>> data = svae.data.switching_rotations(bouts=3, bout_length=20, seed=0)
        >>> model = svae.make((2,), model="hmm", states=2, latent_dim=2, hidden=(), steps=2, warmup_steps=1)
        >>> for step in svae.fit(model, data.y):
        ...     model = step.model
        >>> step.total
        3
    """
    config = model.config
    key_warm, key_fit = jax.random.split(jax.random.key(config.seed) if key is None else key)
    model, prepared, notes = prepare(model, data)
    how = updates.How(estimator, optimizer)
    notes = [*notes, *filter(None, [cold(model)])]
    if resume is None:
        models = []
        for restart, restart_key in enumerate(jax.random.split(key_warm, config.restarts)):
            found = model
            before = warm[restart] if restart < len(warm) else None
            for step in warm_up(model, prepared, restart_key, restart, before, how, hurries):
                found = step.model
                yield step._replace(note=" ".join([*notes, step.note]).strip())
                notes = []
            models.append(found)
        first = _started(start(agreed(stack(models)), optimizer), prepared, key_fit)
        yield first
        resume = first.state
    yield from _train(resume, prepared, key_fit, how, is_over)


def _train(
    state: FitState, data: Prepared, key: PRNGKeyArray, how: updates.How, is_over: Callable[[], bool]
) -> Iterator[Step]:
    config, mesh, told_at = state.models.config, mesh_for(data, state.models.config), time.monotonic()
    ready = functools.partial(_ahead, data, sizes(data), key, how, mesh)
    i = int(state.done)
    running = taken = None
    while not finished(state):
        if is_over():
            yield _cut(state, data, key, taken)
            return
        piece, taken = running or ready(i, replicated((state.models, state.optimizer), mesh), state.restart)
        measures = _measures(config, data, i + 1)
        # The next step runs while this one is reported, unless what it begins with may change.
        alone = measures or jax.process_count() > 1
        running = None if alone else ready(i + 1, (taken.model, taken.state), state.restart)
        taken = taken if mesh is None else local(taken)
        state = state._replace(models=taken.model, optimizer=taken.state, done=taken.done)
        note, held, model = failure(taken, i, data, config), np.nan, taken.shown
        give_up(taken.state.damping, i, note)
        if measures:
            measured = _held_out(state.models, data, key, taken)
            state, held = _measured(state, agreed(np.array([m.bound for m in measured])))
            model = pick(state.models, int(state.restart))
        seconds, told_at = time.monotonic() - told_at, time.monotonic()
        step = report(i, model, _of_restart(taken.bound, state), data, seconds, piece, "fit")
        step = step._replace(held_out=held, note=note, state=state)
        yield _ended(_with_measurement(step, measured) if measures else step)
        i += 1


def _started(state: FitState, data: Prepared, key: PRNGKeyArray) -> Step:
    """The state before the first step, measured: a fit that is cut knows whether it has come further."""
    held, blocks = np.nan, ()
    if data.held is not None:
        measured = _held_out(state.models, data, key, None)
        state, held = _measured(state, agreed(np.array([m.bound for m in measured])))
        state, blocks = state._replace(waited=jnp.zeros((), jnp.int32)), _blocks(measured[int(state.restart)])
    return _between(state, "start", held)._replace(blocks=blocks)


def _cut(state: FitState, data: Prepared, key: PRNGKeyArray, taken: Taken | None) -> Step:
    """The end of a fit whose time is over: the better of the model that there is and the best before."""
    config, done, held, after, blocks = state.models.config, int(state.done), np.nan, state, ()
    if done and not _measures(config, data, done) and (taken is not None or data.held is not None):
        measured = _held_out(state.models, data, key, taken)
        after, held = _measured(state, agreed(np.array([m.bound for m in measured])))
        blocks = _blocks(measured[int(after.restart)])
    note = f"the time is over after {done} of {config.steps} steps."
    if config.patience is not None and int(after.best_done) < done:
        note += f" The model of {_moment(after)} is kept: no later one has a higher held-out bound."
    return _between(state, "end", held)._replace(model=final_model(after), note=note, blocks=blocks)


def _moment(state: FitState) -> str:
    """When the best model was found, in words."""
    return f"step {int(state.best_done)}" if int(state.best_done) else "the start"


def _between(state: FitState, phase: str, held: float) -> Step:
    """What is told where no step is taken."""
    config = state.models.config
    warm, model = config.warmup_steps * config.restarts, final_model(state)
    return Step(warm + int(state.done), warm + config.steps, phase, model, np.nan, held, 0, np.nan, "", state=state)


def _ahead(data: Prepared, totals, key, how, mesh, i: int, placed: tuple, restart) -> tuple[Batch, Taken]:
    """Step i on its way: its batch, and what will be there when it is done."""
    piece = batch_at(data, placed[0].config, i)
    return piece, take(take_all, placed, piece, (key, restart), totals, how, mesh)


def _measures(config, data: Prepared, done: int) -> bool:
    """Whether the held-out bound is measured after so many steps."""
    return done % between_measurements(config, data) == 0 or done == config.steps


def between_measurements(config, data: Prepared) -> int:
    """Steps between two measurements of the held-out bound: a tenth of a fit, fewer where a batch holds all frames.

    With several batches the bound may fall before it rises, and a fit that was measured sooner would end there. So
    would one without held-out frames, whose measure is the bound of a single step.
    """
    sees_all = data.held is not None and len(data.table.first) <= config.batch_size
    most = SEEN if sees_all else MOST_BETWEEN
    return max(1, min(most, config.steps // 10))


def _of_restart(bound: Bound, state: FitState) -> Bound:
    return jax.tree.map(lambda a: np.asarray(a)[int(state.restart)], bound)


def _with_measurement(step: Step, measured: list[HeldOut]) -> Step:
    """What was found of every restart, and the states of the best."""
    best = measured[int(step.state.restart)]
    restarts = tuple(float(m.bound) for m in measured)
    return step._replace(restarts=restarts, labels=best.labels, blocks=_blocks(best))


def _blocks(measured: HeldOut) -> tuple[float, ...]:
    return tuple(map(float, measured.blocks))


def _ended(step: Step) -> Step:
    """The last step carries the model that the fit returns."""
    state = step.state
    if not finished(state):
        return step
    early = int(state.done) < state.models.config.steps
    why = f"stopped early: the held-out bound has not improved since {_moment(state)}." if early else ""
    return step._replace(model=final_model(state), note=" ".join(filter(None, [step.note, why])))


def _measured(state: FitState, held: np.ndarray) -> tuple[FitState, float]:
    """The state after a measurement of every restart (R,), and the bound of the best.

    A gain starts the waiting anew; one below LEAST_GAIN is kept, and the waiting goes on from where it was.
    """
    held = np.nan_to_num(np.asarray(held, np.float32), nan=-np.inf)
    restart = int(np.argmax(held))
    gain, waited = float(held[restart]) - float(state.best_bound), int(state.waited)
    if gain > 0:
        best, bound = pick(state.models, restart), jnp.asarray(held[restart])
        state = state._replace(best=best, best_bound=bound, best_done=state.done)
    waited = 0 if gain > LEAST_GAIN else waited if gain > 0 else waited + 1
    restart, waited = (jnp.asarray(number, jnp.int32) for number in (restart, waited))
    return state._replace(restart=restart, waited=waited), float(held[int(restart)])


def _held_out(models: SVAE, data: Prepared, key: PRNGKeyArray, taken: Taken | None) -> list[HeldOut]:
    """Every restart in the units of the data; without held-out data, the training estimate and no labels.

    `key` is that of the fit: all its measurements are at the same draws, so that they differ as the models do. Each at
    draws of its own, they would differ by more than a hundred steps change.
    """
    if data.held is None:
        bounds = np.atleast_1d(np.asarray(taken.bound.bound)) / data.train.frames - data.log_volume
        return [HeldOut(float(bound), np.zeros(0, int)) for bound in bounds]
    draws = keys_of_step(key, models.config.steps)[1]
    found = [held_out_bound(pick(models, r), data.held, key=draws) for r in range(models.config.restarts)]
    units = data.held_volume
    return [one._replace(bound=one.bound - units, blocks=one.blocks - units) for one in found]
