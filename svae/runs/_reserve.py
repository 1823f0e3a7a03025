"""The time that the answers of a fit will need, measured before the fit."""

import collections
import tempfile
import time
from pathlib import Path

import numpy as np

from svae.data import Recordings, Windows
from svae.data.recordings import take
from svae.model import SVAE
from svae.queries.batches import prepare
from svae.runs._apply import answer_window, answer_windows
from svae.runs._posterior import write_posterior
from svae.runs._restarts import COMPARED_FRAMES

MARGIN = 1.25  # a machine gets slower and faster
FIXED = 1.0  # second, for the model and the tables


def labelling_seconds(model: SVAE, data: Recordings, folder: Path) -> float:
    """Seconds from the end of a fit to the end of its answers, about.

    One window of each shape is labelled and written. Its program stays compiled, so nothing of this is lost.
    """
    began = time.monotonic()
    scaled = prepare(model, data).scaled
    total = time.monotonic() - began
    kinds: dict[int, tuple[Recordings, Windows]] = {}
    number: collections.Counter[int] = collections.Counter()
    for i in range(len(scaled.sequences)):
        one = take(scaled, [i])
        table = answer_windows(model, one)
        kinds.setdefault(table.length, (one, table))
        number[table.length] += len(table.first)
    total += sum(number[length] * _seconds(model, *kind, folder) for length, kind in kinds.items())
    config = model.config
    again = config.restarts * COMPARED_FRAMES if config.restarts > 1 and model.pgm.discrete else 0
    return FIXED + MARGIN * total * (1 + min(again, config.restarts * data.frames) / data.frames)


def _seconds(model: SVAE, one: Recordings, table: Windows, folder: Path) -> float:
    answer_window(model, one, table, 0)  # compiles
    began = time.monotonic()
    part = answer_window(model, one, table, 0)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".measured-") as temporary:
        found = part.posterior(np.arange(len(part.mean), dtype=float), model.pgm.blocks)
        write_posterior(Path(temporary) / "window.nc", one.names[0], found, clock=False)
    return time.monotonic() - began
