"""What a model says of recordings, one at a time: the answer depends on the model and the recording alone."""

import contextlib
import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from svae._compiling import compiled
from svae.data import Recordings, Windows, batch, windows
from svae.data.recordings import recordings, safe_names, seconds, take
from svae.fitting.held_out import CONTEXT, window_and_batch
from svae.model import SVAE
from svae.queries.batches import bucket, posterior, prepare, require_finite
from svae.runs._folder import POSTERIOR, PROVENANCE, RunError, locked, writing
from svae.runs._names import Labels, write_labels
from svae.runs._posterior import Bout, Posterior, States, bouts, write_bouts, write_posterior
from svae.runs._quality import Quality, added, quality, write_quality


class Answer(NamedTuple):
    """What one window says of the frames that it counts."""

    shown: States
    mean: Any
    sd: Any
    error: Any
    seen: Any  # whether a frame has any observed entry
    blocks: dict[str, States]  # all discrete blocks, where there are several

    def posterior(self, time: np.ndarray, order: tuple[str, ...]) -> Posterior:
        """The posterior of frames at these times; the order is that of the blocks."""
        error, blocks = np.where(self.seen, self.error, np.nan), self.blocks
        return Posterior(time, *self.shown, self.mean, self.sd, error, {b: blocks[b] for b in order if b in blocks})


def apply(model: SVAE, data: Any, out: str | os.PathLike, labels: Labels | None = None) -> tuple[str, ...]:
    """Write posterior/<recording>.nc and bouts.csv for raw recordings into `out`; the names of the recordings.

    `labels` are the names and merges that people have given to states; they are kept beside the answers.

    Args:
        model: A fitted model.
        data: Raw recordings, as for `svae.segment`.
        out: The folder to write.
        labels: Names and merges of states, as `Run.labels()` gives them.

    Returns:
        The names of the recordings.
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


def _here(work: Iterator) -> Iterator:
    return work


def write_answers(model: SVAE, data: Recordings, folder: Path, attend: Callable = _here) -> Iterator[int]:
    """Write the answers of each recording in turn, and at the end all bouts; yields the frames labelled so far.

    `attend` passes on what is computed, and may do so in another thread; what is written is written in this one.
    """
    answers = attend(_answers(model, data))
    with writing(folder):
        os.makedirs(folder / POSTERIOR, exist_ok=True)
    files = [f"{name}.nc" for name in safe_names(data.names)]
    found: list[Bout] = []
    seen: dict[str, Quality] = {}
    for i, (name, file) in enumerate(zip(data.names, files, strict=True)):
        answer = yield from _until_whole(answers)
        write_posterior(folder / POSTERIOR / file, name, answer, clock=_has_clock(data, i))
        found += bouts(name, answer, clock=_has_clock(data, i))
        _count(seen, data.sequences[i], answer, model.preprocess.keep)
    _remove_others(folder / POSTERIOR, set(files))
    write_bouts(folder, found)
    if seen:
        write_quality(folder, seen)


def _count(seen: dict[str, Quality], sequence: Any, answer: Posterior, keep: tuple[int, ...]) -> None:
    """Add the frames of one recording to the sums of each block; one alone needs no name."""
    for block, (state, probability) in (answer.blocks or {"": States(answer.state, answer.probability)}).items():
        one = quality(sequence, state, probability.shape[1], keep)
        seen[block] = added(seen[block], one) if block in seen else one


def _answers(model: SVAE, data: Recordings) -> Iterator[int | Posterior]:
    """The frames labelled so far after each window, and the answer of each recording when it is whole."""
    scaled, before = prepare(model, data).scaled, 0
    for i, y in enumerate(scaled.sequences):
        for part in answer_parts(model, take(scaled, [i]), seconds(data, i)):
            yield part if isinstance(part, Posterior) else before + part
        before += len(y)


def _until_whole(answers: Iterator[int | Posterior]) -> Generator[int, None, Posterior]:
    """The frames labelled so far, until an answer is whole; gives the answer."""
    for part in answers:
        if isinstance(part, Posterior):
            return part
        yield part
    raise RunError("a recording got no answer")  # cannot be: there is one for each


def _has_clock(data: Recordings, i: int) -> bool:
    return data.fps is not None or bool(data.times and data.times[i] is not None)


def _remove_others(folder, files):
    for old in [*folder.glob("*.nc"), *folder.glob(".*.tmp")]:
        if old.name not in files:
            with contextlib.suppress(OSError):
                os.unlink(old)


def answer_of(model: SVAE, one: Recordings, time: np.ndarray) -> Posterior:
    """The posterior of one recording in model units."""
    *_, answer = answer_parts(model, one, time)
    return answer


def answer_parts(model: SVAE, one: Recordings, time: np.ndarray) -> Iterator[int | Posterior]:
    """The posterior of one recording in model units: whole where memory allows, else in windows with context.

    Yields the frames done after each window, and the posterior last.
    """
    table, parts = answer_windows(model, one), []
    for row in range(len(table.first)):
        parts.append(answer_window(model, one, table, row))
        yield sum(len(part.mean) for part in parts)
    whole = jax.tree.map(lambda *pieces: np.concatenate(pieces), *parts)
    require_finite(one.names[0], whole)
    yield whole.posterior(time, model.pgm.blocks)


def answer_windows(model: SVAE, one: Recordings) -> Windows:
    """The windows of one recording, of one of a few lengths: few shapes, few programs."""
    length, _ = window_and_batch(model, len(one.sequences[0]))
    table = windows(one, length, CONTEXT)
    return table._replace(length=bucket(table.length))


def answer_window(model: SVAE, one: Recordings, table: Windows, row: int) -> Answer:
    """What the model says of the frames that one window counts."""
    piece = batch(one, table, np.array([row]))
    y, beside = jnp.asarray(piece.y[0], jnp.result_type(float)), jax.tree.map(lambda a: a[0], piece.beside)
    found = _answer(model, y, jnp.asarray(piece.mask[0]), beside)
    return jax.tree.map(lambda a: np.asarray(a)[piece.counted[0]], found)


@compiled
def _answer(model, y, mask, beside):
    q = posterior(model, y, mask, beside)
    away = (model.observe.mean(q.mean()) - y) * jnp.asarray(model.scaling.scale)[None]
    seen = ~jnp.isnan(y)
    square = jnp.where(seen, away, 0).reshape(len(y), -1) ** 2
    count = seen.reshape(len(y), -1).sum(-1)
    error = jnp.sqrt(square.sum(-1) / jnp.maximum(count, 1))
    blocks = {name: States(factor.viterbi(), factor.states) for name, factor in q.discrete.items()}
    return Answer(States(q.viterbi(), q.states), q.mean(), q.sd(), error, count > 0, blocks if len(blocks) > 1 else {})
