"""A run of several processes: the first has the run folder; the others take the same steps and write nothing."""

import contextlib
import zlib
from typing import Any

from svae import _fit, _program
from svae._fit import FitState
from svae._model import SVAE, make
from svae._sharding import ProcessError, agreed, largest, part, text_of_first
from svae.config import Config
from svae.data import Recordings, find_preprocess, recordings
from svae.runs._signals import Stop, stopping


def new_model(data: Recordings, config: Config) -> SVAE:
    """The model before its fit, with the preprocessing that these recordings need."""
    preprocess = find_preprocess(data, config)
    return make(preprocess.shape(tuple(data.sequences[0].shape[1:])), config, preprocess=preprocess)


def gathered(data: Recordings, config: Config, model: SVAE, state: FitState | None) -> FitState | None:
    """The state that all processes begin with; the first tells the others its configuration and its state."""
    text_of_first(config.to_toml())
    return _shared(data, model, state)


def assist(data: Any) -> None:
    """Take part in the fit of the first process, with the same recordings, to its end; writes nothing."""
    data = recordings(data)
    config = Config.from_toml(text_of_first(""))
    model = new_model(data, config)
    state = _shared(data, model, None)
    with stopping() as stop, contextlib.closing(_fit.fit(model, data, resume=state)) as steps:
        for _ in steps:
            over = decided(stop, False)
            stop.leave()
            if over:
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
    return agreed(_fit.start(_program.stack([model] * model.config.restarts)) if state is None else state)


def decided(stop: Stop, over: bool) -> bool:
    """Whether the time is over for all; `stop` learns of a signal that any process has got, so that all leave here."""
    asked, ended = largest([stop.asked or 0, int(over)])
    if asked:
        stop.asked = int(asked)
    return bool(ended)
