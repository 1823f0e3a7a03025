"""A run of several processes: the first has the run folder; the others take the same steps and write nothing."""

import contextlib
import math
import zlib
from typing import Any

import jax

from svae.config import Config
from svae.data import Recordings, recordings
from svae.devices import ProcessError, agreed, largest, part, text_of_first
from svae.fitting import loop, program
from svae.fitting.defaults import new_model
from svae.fitting.loop import FitState
from svae.fitting.steps import Step
from svae.model import SVAE
from svae.runs._attended import Watch, attended, watching
from svae.runs._signals import leave


def gathered(data: Recordings, config: Config, model: SVAE, state: FitState | None) -> FitState | None:
    """The state that all processes begin with; the first tells the others its configuration and its state."""
    text_of_first(config.to_toml())
    return _shared(data, model, state)


def assist(data: Any) -> None:
    """Take part in the fit of the first process, with the same recordings, to its end; writes nothing.

    Args:
        data: The recordings of the first process.
    """
    data = recordings(data)
    config = Config.from_toml(text_of_first(""))
    model = new_model(data, config)
    state = _shared(data, model, None)
    with watching(None) as watch:
        fit = loop.fit(model, data, resume=state, is_over=lambda: watch.over)
        with contextlib.closing(attended(fit, watch, math.inf)) as steps:
            for step in steps:
                decide(watch, step)
                leave(watch.agreed)
                if watch.over and step.state is None:
                    break
    part()


def _shared(data: Recordings, model: SVAE, state: FitState | None) -> FitState | None:
    """The first process's state in every process, once they have found that they read the same recordings."""
    shapes = [tuple(y.shape) for y in data.sequences]
    own = zlib.crc32(repr([data.names, shapes]).encode()) >> 1
    if largest([own, -own]).sum() != 0:
        raise ProcessError("the processes read different recordings; give every one of them the same data")
    if not largest([int(state is not None)])[0]:
        return None
    return agreed(loop.start(program.stack([model] * model.config.restarts)) if state is None else state)


def decide(watch: Watch, step: Step) -> None:
    """Agree with the other processes, so that all leave after the same step: is time up, was one asked to stop?"""
    if jax.process_count() > 1 and step.share is not None and 0 < step.share < 1:
        return  # in the middle of a search, which each does at its own pace
    asked, over = largest([watch.stop.asked or 0, int(watch.is_over())])
    watch.over, watch.agreed = bool(over), int(asked) or None
