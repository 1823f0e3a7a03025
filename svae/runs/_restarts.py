"""How far the restarts of a fit agree: each segments the recordings, and every pair is compared."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from svae.data import DataError, Recordings, stretches, take
from svae.data.carried import without_labels
from svae.data.scores import adjusted_rand_index, found_again
from svae.fitting.loop import FitState
from svae.fitting.program import pick
from svae.fitting.steps import IN_USE
from svae.model import SVAE
from svae.queries.batches import prepare
from svae.runs._apply import answer_of
from svae.runs._folder import RESTARTS, write_json, writing
from svae.runs._posterior import read_states
from svae.runs._run import Run
from svae.runs._stability import plain

COMPARED_FRAMES = 20_000  # that each restart segments, about


def write_restarts(run: Run, state: FitState, data: Recordings, attend: Callable) -> Iterator[int]:
    """restarts.json, from the last model of every restart; yields the number of those that are done."""
    asked = _leading(data, COMPARED_FRAMES)
    paths: list[np.ndarray | None] = []
    for path in attend(_paths(state.models, asked)):
        paths.append(path)
        yield len(paths)
    found = _again(run, asked, paths, state.models.pgm.states) if paths else {}
    with writing(run.path):
        write_json(run.path / RESTARTS, {"frames": asked.frames} | _last_bounds(run) | agreement(paths) | found)


def _paths(models: SVAE, asked: Recordings) -> Iterator[np.ndarray | None]:
    for r in range(models.config.restarts if models.pgm.discrete else 0):
        yield _path(pick(models, r), asked)


def _leading(data: Recordings, most: int) -> Recordings:
    """The first part of every recording, `most` frames in all about; all of them where they are fewer."""
    share, data = most / data.frames, without_labels(data)
    if share >= 1:
        return data
    return stretches(data, [(i, 0, max(1, int(share * len(y)))) for i, y in enumerate(data.sequences)])


def _path(model: SVAE, data: Recordings) -> np.ndarray | None:
    """The most probable states of all frames (N,); None where a restart has gone astray."""
    scaled = prepare(model, data).scaled
    parts = []
    for i, y in enumerate(scaled.sequences):
        try:
            parts.append(answer_of(model, take(scaled, [i]), np.arange(len(y), dtype=float)).state)
        except DataError:
            return None
    return np.concatenate(parts)


def _last_bounds(run: Run) -> dict[str, Any]:
    """The held-out bound of every restart at the last measurement."""
    lines = [line for line in run.metrics() if line.get("restarts")]
    return {"step": lines[-1]["step"], "held_out": lines[-1]["restarts"]} if lines else {"step": None, "held_out": []}


def _again(run: Run, asked: Recordings, paths: list[np.ndarray | None], K: int) -> dict[str, Any]:
    """How well each state of the run's answers is found again by the other restarts."""
    answers = zip(asked.names, asked.sequences, strict=True)
    return again(np.concatenate([read_states(run.answers(name))[: len(y)] for name, y in answers]), paths, K)


def again(own: np.ndarray, paths: list[np.ndarray | None], K: int) -> dict[str, Any]:
    """How well each state is found again by restarts, that one left out which the answers come from."""
    known = sorted((path for path in paths if path is not None), key=lambda path: -adjusted_rand_index(own, path))
    return {"others": len(known[1:]), "found_again": plain(found_again(own, known[1:], K)) if known[1:] else None}


def agreement(paths: list[np.ndarray | None]) -> dict[str, Any]:
    """States in use of every restart, the adjusted Rand index of every pair, and its mean over the pairs."""
    R = len(paths)
    table: list[list[float | None]] = [[1.0 if i == j else None for j in range(R)] for i in range(R)]
    for i, j in itertools.combinations(range(R), 2):
        if paths[i] is not None and paths[j] is not None:
            table[i][j] = table[j][i] = adjusted_rand_index(paths[i], paths[j])
    known = [table[i][j] for i, j in itertools.combinations(range(R), 2) if table[i][j] is not None]
    used = [None if path is None else int(np.sum(np.bincount(path) > IN_USE * len(path))) for path in paths]
    return {"states_in_use": used, "ari": table, "mean_ari": float(np.mean(known)) if known else None}
