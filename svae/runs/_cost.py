"""A forecast of the memory and the time of a fit: a few of its steps are taken, and part of its search for states."""

import dataclasses
import math
import time
from typing import NamedTuple

import jax
import numpy as np

from svae._one_thread import in_one_thread
from svae.bound import value_and_grad
from svae.config import Config
from svae.data import Recordings, sample_frames
from svae.devices import replicated
from svae.fitting.defaults import new_model
from svae.fitting.initialize import at_pca, one_hot, pca_for
from svae.fitting.loop import between_measurements, start
from svae.fitting.prepare import Prepared, prepare, sizes
from svae.fitting.program import stack, take, take_all
from svae.fitting.steps import batch_at, mesh_for
from svae.fitting.updates import How
from svae.fitting.warm_up import STATE_FRAMES
from svae.model import SVAE
from svae.starting import effort, search

BASE_GB = 0.55  # a process with jax and its compiled programs
KEPT = 10  # numbers that a step keeps for each that inference holds, for its gradient
STEPPING, SEARCHING = 3.0, 0.5  # seconds that are measured at most
STEPS = 5  # that are taken at most
SAMPLE = 2**11  # frames that the measured search looks at
PLAIN_FRAMES, PLAIN_SEARCHES = (
    12_000,
    3,
)  # of the baselines: each search has one start, and is followed by as much again
FORWARD = 0.35  # of a step: inference without its gradient
WARM = 0.3  # of a step: one of the warm-up
COMPILED = 0.7  # of the time that the program of a step takes to compile: all others
PROGRAMS = 3.0  # seconds for all of them where they were compiled before
LEAST = 0.5  # of the steps that a fit with an early stop takes; fewer where it is measured more often


class Forecast(NamedTuple):
    """The forecast of a fit: what it holds, and the seconds of its parts."""

    frames: int
    frames_in_a_step: int
    memory_gb: float
    step: float
    compiling: float
    reading: float
    warm_up: float
    states: float
    fit: float  # all steps
    answers: float
    baselines: float
    least: float
    most: float

    @property
    def before(self) -> float:
        """Seconds until the first step of the fit."""
        return self.compiling + self.reading + self.warm_up + self.states


def forecast(recordings: Recordings, config: Config) -> Forecast:
    """Measured here and now, within a few seconds besides compiling: a machine that is busy now is forecast as busy.

    Args:
        recordings: The recordings.
        config: The options of the fit.

    Returns:
        `Forecast`: memory in GB, and the seconds of the parts of the fit.
    """
    began = time.perf_counter()
    model, data, _ = prepare(new_model(recordings, config), recordings)
    reading = time.perf_counter() - began
    compiling, step = _step(model, data, config)
    each = _search(model) if model.pgm.chained else 0.0
    K, searched = model.pgm.states, min(data.train.frames, STATE_FRAMES)
    plain, batch = min(data.train.frames, PLAIN_FRAMES), _batch_frames(config, data)
    held = 0 if data.held is None else data.held.frames
    often = between_measurements(config, data)
    looks = (1 + config.steps / often) * held  # frames of measurements
    fit = config.steps * step + looks / batch * step * FORWARD / config.restarts
    answers = reading + recordings.frames / batch * step * FORWARD / config.restarts + 1.0
    parts = {
        "compiling": COMPILED * compiling + PROGRAMS,
        "reading": reading,
        "warm_up": config.warmup_steps * step * WARM,
        "states": config.restarts * each * effort(searched, K, places=model.places is not None),
        "answers": answers,
        "baselines": 2.0 + reading + PLAIN_SEARCHES * each * effort(plain, K, places=False, starts=1),
    }
    around = sum(parts.values())
    least = around + fit * (1.0 if config.patience is None else min(LEAST, config.patience * often / config.steps))
    memory = round(BASE_GB + 4e-9 * KEPT * batch * _numbers(model) * config.restarts, 2)
    found = {"step": step, "fit": fit, "least": least, "most": around + fit} | parts
    return Forecast(recordings.frames, batch, memory, **{name: round(s, 3) for name, s in found.items()})


def _step(model: SVAE, data: Prepared, config: Config) -> tuple[float, float]:
    """Seconds that the program of a step takes to compile, and to run, from a start that nobody has searched for."""
    mesh, state = mesh_for(data, config), start(stack([_roughly_started(model, data, config)] * config.restarts))
    placed, keys = replicated((state.models, state.optimizer), mesh), (jax.random.key(0), state.restart)
    seconds, began = [], time.perf_counter()
    while len(seconds) < 3 or (len(seconds) < STEPS and sum(seconds[1:]) < STEPPING):
        started = time.perf_counter()
        piece = batch_at(data, config, len(seconds))
        taken = take(take_all, placed, piece, keys, sizes(data), How(value_and_grad), mesh)
        jax.block_until_ready(taken.bound)
        placed = taken.model, taken.state
        seconds.append(time.perf_counter() - started)
        if sum(seconds) > 2 * STEPPING and len(seconds) > 1 and time.perf_counter() - began > seconds[0] + STEPPING:
            break
    each = sorted(seconds[1:])
    return max(0.0, seconds[0] - each[0]), each[len(each) // 2]


def _roughly_started(model: SVAE, data: Prepared, config: Config) -> SVAE:
    """The networks at PCA, and states that take turns: as much work as the states that a search finds."""
    model, K = at_pca(model, pca_for(model, sample_frames(data.train, 1000, 0))), model.pgm.states
    x = np.random.default_rng(0).normal(size=(2000, config.latent_dim))
    turns = np.arange(2000) // max(1, round(config.target_duration or 10)) % K
    return dataclasses.replace(model, q=model.pgm.initialize([x], one_hot(turns, K, [x])))


def _search(model: SVAE) -> float:
    """Seconds of a search for states for one of its `effort`, from sweeps on SAMPLE frames that are done in a while.

    What comes before the first sweep is left out: it takes no longer than a few of them.
    """
    config = model.config
    x = np.random.default_rng(0).normal(size=(SAMPLE, config.latent_dim)).cumsum(0)
    latents = [x[first : first + 500] - x[first : first + 500].mean(0) for first in range(0, SAMPLE, 500)]
    K, places = model.pgm.states, None if model.places is None else latents
    asked = {"dynamic": model.pgm.dynamic, "duration": config.target_duration, "seed": 0, "places": places}
    began, seen = time.perf_counter(), []
    for share in in_one_thread(search(latents, K, **asked)):
        seen.append((share, time.perf_counter()))
        if len(seen) > 2 and seen[-1][1] - began > SEARCHING:
            break
    (first, at), (last, now) = seen[0], seen[-1]
    return (now - at) / max(last - first, 1e-9) / effort(SAMPLE, K, places=places is not None)


def _batch_frames(config: Config, data: Prepared) -> int:
    """Frames that a step looks at."""
    table = data.table
    return min(config.batch_size, len(table.first)) * table.length


def _numbers(model: SVAE) -> int:
    """Numbers that inference holds for one frame."""
    P, K = math.prod(model.shape), model.pgm.states
    D, widths = model.config.latent_dim, model.config.hidden or (1,)
    return 2 * P + 2 * sum(widths) + K * D * (D + 1)
