"""Figure 5a: natural against standard gradients of q(theta), from one start, in the paper's setting of the dots.

A natural step moves the natural parameters by rho times the natural gradient of the bound (an SVI step). A standard
step moves the same parameters by s times the plain gradient of the bound per frame, the domain guard off, as in the
paper: a run ends where a matrix leaves the positive definite cone. Networks take the same steps of Adam in every run,
and every run sees the same sequences in the same order with the same noise.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from svae import expfam
from svae.bound import elbo, flat_gradient, value_and_grad, with_parameters
from svae.data import synthetic
from svae.experiments._curves import Curve, figure
from svae.experiments._figures import save_figure, save_numbers, style
from svae.fitting import updates
from svae.fitting.loop import Step
from svae.model import SVAE, make


@dataclass(frozen=True)
class Settings:
    sequences: int = 80
    length: int = 50
    width: int = 20
    hidden: tuple[int, ...] = (50,)
    latent_dim: int = 8
    iterations: int = 1000
    every: int = 20  # iterations between two measurements of the bound
    learning_rate: float = 1e-3  # of the networks
    natural_step: float = 0.1
    standard_steps: tuple[float, ...] = (0.1, 0.05, 0.01)


SETTINGS = Settings()


class Run(NamedTuple):
    """Where a run stands; once its q(theta) has left the domain it stays where it was."""

    q: Any
    networks: Any  # the arrays of recognize and observe
    state: Any  # of the networks' optimiser
    alive: jax.Array


def run(out: Path, *, seed: int, progress: Callable) -> dict:
    """Fit every curve, write gradients.png, gradients.pdf and numbers.json to `out`, and return the numbers."""
    started = time.monotonic()
    s = SETTINGS
    data = synthetic.dots(sequences=s.sequences, length=s.length, width=s.width, seed=seed)
    y = jnp.asarray((data.y - data.y.mean()) / data.y.std())
    log_volume = s.width * float(np.log(data.y.std()))  # nats per frame that standardised units add
    model = first_model(s, seed)
    names, steps = ["natural"] + ["standard"] * len(s.standard_steps), [s.natural_step, *s.standard_steps]
    alive, bounds = race(model, y, np.array(names) == "natural", np.array(steps), log_volume, seed, progress)
    curves = [curve(*row, s) for row in zip(names, steps, alive.T, bounds.T, strict=True)]
    with style():
        save_figure(figure(curves), Path(out), "gradients")
    return save_numbers(numbers(curves, s, seed, time.monotonic() - started), Path(out))


def first_model(s: Settings, seed: int) -> SVAE:
    """The one start of all runs: q(theta) near the prior, networks at random, no warm-up."""
    return make(
        (s.width,),
        model="lds",
        latent_dim=s.latent_dim,
        network="residual",
        hidden=s.hidden,
        batch_size=1,
        steps=s.iterations,
        learning_rate=s.learning_rate,
        seed=seed,
    )


# --- one iteration ------------------------------------------------------------------------------------------------


def move(model: SVAE, y, natural, step, num_data: int, key):
    """q(theta) after one step of either kind, and the gradient; natural steps are guarded as in every fit."""
    _, gradient = value_and_grad(model, y[None], jnp.ones((1, len(y)), bool), num_data=num_data, key=key)
    guarded, _ = updates.natural_step(model.q, gradient.q, step)
    standard = expfam.step(model.q, flat_gradient(model.q, gradient.q), step / (num_data * len(y)))
    return jax.tree.map(partial(jnp.where, natural), guarded, standard), gradient


def advance(model: SVAE, run: Run, y, natural, step, num_data: int, optimizer, key) -> Run:
    """One sequence, one update of q(theta) and of the networks; a run that leaves the domain stays as it was."""
    q, gradient = move(with_parts(model, run), y, natural, step, num_data, key)
    networks = eqx.filter(tuple(gradient)[1:], eqx.is_inexact_array)
    descent = jax.tree.map(lambda g: -g / (num_data * len(y)), networks)
    changes, state = optimizer.update(descent, run.state, run.networks)
    alive = run.alive & expfam.in_domain(q)
    found = Run(q, optax.apply_updates(run.networks, changes), state, alive)
    return jax.tree.map(partial(jnp.where, alive), found, run._replace(alive=alive))


def with_parts(model: SVAE, run: Run) -> SVAE:
    """The model with the q(theta) and the networks of a run."""
    every = model.recognize, model.observe, model.pgm.ordinary
    fixed = eqx.filter(every, eqx.is_inexact_array, inverse=True)
    return with_parameters(eqx.tree_at(lambda m: m.q, model, run.q), *eqx.combine(run.networks, fixed))


def race(model: SVAE, y, natural: np.ndarray, steps: np.ndarray, log_volume: float, seed: int, progress: Callable):
    """All R runs at once: whether each lives after every iteration (I, R), and bounds per frame (I/every + 1, R).

    Bounds are of all sequences, by one draw each from a key that never changes, in the units of the data.
    """
    s, optimizer = SETTINGS, updates.networks_optimizer(model.config)
    key_order, key_noise, key_measure = jax.random.split(jax.random.key(seed), 3)
    order, keys = jax.random.randint(key_order, (s.iterations,), 0, len(y)), jax.random.split(key_noise, s.iterations)

    def one_run(run, natural, step, order, keys):
        def body(run, now):
            run = advance(model, run, y[now[0]], natural, step, len(y), optimizer, now[1])
            return run, run.alive

        return jax.lax.scan(body, run, (order, keys))

    def bound(run):
        return elbo(with_parts(model, run), y, jnp.ones(y.shape[:2], bool), num_data=len(y), key=key_measure).bound

    take = jax.jit(jax.vmap(one_run, (0, 0, 0, None, None), (0, 1)))
    measure = jax.jit(lambda runs: jax.lax.map(bound, runs) / (len(y) * s.length) - log_volume)
    networks = updates.networks(model)
    first = Run(model.q, networks, optimizer.init(networks), jnp.array(True))
    runs = jax.tree.map(lambda a: jnp.broadcast_to(a, (len(steps), *a.shape)), first)
    kinds, sizes = jnp.asarray(natural), jnp.asarray(steps, y.dtype)
    alive, bounds = [], [np.asarray(measure(runs))]

    def iterate() -> Iterator[Step]:
        nonlocal runs
        for i in range(0, s.iterations, s.every):
            before = time.monotonic()
            runs, living = take(runs, kinds, sizes, order[i : i + s.every], keys[i : i + s.every])
            alive.append(np.asarray(living))
            bounds.append(np.asarray(measure(runs)))
            speed = s.every * s.length * len(steps) / (time.monotonic() - before)
            yield Step(i + s.every, s.iterations, "fit", model, float(bounds[-1][0]), np.nan, 1, speed, "")

    for _ in progress(iterate(), "gradients"):
        pass
    return np.concatenate(alive), np.stack(bounds)


# --- what is shown ------------------------------------------------------------------------------------------------


def curve(name: str, step: float, alive: np.ndarray, bound: np.ndarray, s: Settings) -> Curve:
    """A run's curve ends with the last bound that was measured while all its matrices were proper."""
    indefinite = None if alive.all() else int(np.argmin(alive)) + 1
    measured = np.arange(0, s.iterations + 1, s.every)
    kept = measured < (indefinite or np.inf)
    return Curve(name, step, measured[kept].tolist(), bound[kept].tolist(), indefinite)


def numbers(curves: list[Curve], s: Settings, seed: int, seconds: float) -> dict:
    best = max((c for c in curves if c.name == "standard"), key=lambda c: (c.indefinite is None, c.bound[-1]))
    natural = next(c for c in curves if c.name == "natural")
    passed = [i for i, b in zip(natural.iterations, natural.bound, strict=True) if b >= best.bound[-1]]
    return {
        "natural": {"step": natural.step, "final_bound_per_frame": natural.bound[-1]},
        "standard": {
            str(c.step): {"final_bound_per_frame": c.bound[-1], "iteration_of_indefinite_matrix": c.indefinite}
            for c in curves
            if c.name == "standard"
        },
        "start_bound_per_frame": natural.bound[0],
        "best_standard_step": best.step,
        "iterations_natural_needs_for_best_standard_bound": passed[0] if passed else None,
        "iterations": s.iterations,
        "sequences": s.sequences,
        "frames": s.length,
        "seed": seed,
        "seconds": round(seconds, 1),
        "curves": [c._asdict() for c in curves],
    }
