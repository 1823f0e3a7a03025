"""What a model says of recordings, one at a time: the answer depends on the model and the recording alone."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from svae._held_out import CONTEXT, window_and_batch
from svae._model import SVAE
from svae._queries.batches import bucket, posterior, prepare, require_finite
from svae.data import Recordings, batch, windows
from svae.data.recordings import recordings, safe_names, seconds, take
from svae.pgm import Posterior as Local
from svae.runs._folder import POSTERIOR, PROVENANCE, RunError, locked, writing
from svae.runs._names import Labels, write_labels
from svae.runs._posterior import Bout, Posterior, bouts, write_bouts, write_posterior


def apply(model: SVAE, data: Any, out: str | os.PathLike, labels: Labels | None = None) -> tuple[str, ...]:
    """Write posterior/<recording>.nc and bouts.csv for raw recordings into `out`; the names of the recordings.

    `labels` are the names and merges that people have given to states; they are kept beside the answers.
    """
    folder, data = Path(out), recordings(data)
    if (folder / PROVENANCE).exists():
        raise RunError(f"{folder} is a run folder with answers of its own; choose another folder")
    with writing(folder):
        os.makedirs(folder, exist_ok=True)
    with locked(folder):
        for _ in write_answers(model, data, folder):
            pass
        if labels and any(labels):
            write_labels(folder, labels)
    return data.names


def write_answers(model: SVAE, data: Recordings, folder: Path) -> Iterator[str]:
    """Write the answers of each recording in turn, yielding its name, and at the end all bouts."""
    scaled = prepare(model, data).scaled
    with writing(folder):
        os.makedirs(folder / POSTERIOR, exist_ok=True)
    files = [f"{name}.nc" for name in safe_names(data.names)]
    found: list[Bout] = []
    for i, (name, file) in enumerate(zip(data.names, files, strict=True)):
        answer = answer_of(model, take(scaled, [i]), seconds(data, i))
        write_posterior(folder / POSTERIOR / file, name, answer, clock=_has_clock(data, i))
        found += bouts(name, answer)
        yield name
    _remove_others(folder / POSTERIOR, set(files))
    write_bouts(folder, found)


def _has_clock(data: Recordings, i: int) -> bool:
    return data.fps is not None or bool(data.times and data.times[i] is not None)


def _remove_others(folder, files):
    for old in [*folder.glob("*.nc"), *folder.glob(".*.tmp")]:
        if old.name not in files:
            with contextlib.suppress(OSError):
                os.unlink(old)


def answer_of(model: SVAE, one: Recordings, time: np.ndarray) -> Posterior:
    """The posterior of one recording in model units: whole where memory allows, else in windows with context."""
    T = len(one.sequences[0])
    length, _ = window_and_batch(model, T)
    table = windows(one, length, CONTEXT)
    table = table._replace(length=bucket(table.length))  # few shapes, few programs
    parts = []
    for row in range(len(table.first)):
        piece = batch(one, table, np.array([row]))
        y = jnp.asarray(piece.y[0], jnp.result_type(float))
        found = jax.tree.map(np.asarray, _answer(model, y, jnp.asarray(piece.mask[0])))
        parts.append([a[piece.counted[0]] for a in found])
    state, probability, mean, sd, error, seen = (np.concatenate(column) for column in zip(*parts, strict=True))
    require_finite(one.names[0], (probability, mean, sd, error))
    return Posterior(time, state, probability, mean, sd, np.where(seen, error, np.nan))


@eqx.filter_jit
def _answer(model, y, mask):
    q = posterior(model, y, mask)
    away = (model.observe.mean(q.x.mean) - y) * jnp.asarray(model.scaling.scale)[None]
    seen = ~jnp.isnan(y)
    square = jnp.where(seen, away, 0).reshape(len(y), -1) ** 2
    count = seen.reshape(len(y), -1).sum(-1)
    error = jnp.sqrt(square.sum(-1) / jnp.maximum(count, 1))
    return Local.viterbi(q), q.states, q.x.mean, Local.sd(q), error, count > 0
