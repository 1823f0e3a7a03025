"""The demo: an SLDS SVAE finds the actions of a synthetic mouse in raw video, without a label."""

import csv
import io
import shutil
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from svae import runs
from svae.config import Config
from svae.data import mouse
from svae.data.scores import IN_USE, adjusted_rand_index, bout_lengths, purity
from svae.experiments import _demo_figures, _figures
from svae.experiments._videos import kept
from svae.queries.inference import Segmentation


class Settings(NamedTuple):
    """Chosen to fit in 3 minutes on 2 cores."""

    sequences: int = 32
    length: int = 250
    states: int = 12  # an upper bound; the mouse has 8 actions
    latent_dim: int = 8
    hidden: tuple[int, ...] = (128, 128)
    target_duration: float = 20.0  # frames, two thirds of a second
    warmup_steps: int = 200
    steps: int = 110
    batch_size: int = 8
    window: int = 50
    overlap: int = 10


SETTINGS = Settings()
COMMAND = ["svae", "demo", "mouse"]


def run(out: Path, *, seed: int, progress, settings: Settings = SETTINGS) -> dict:
    """Fit in OUT/run, then write segmentation.csv, numbers.json and figures into `out`."""
    data = mouse(sequences=settings.sequences, length=settings.length, seed=seed)
    raw = kept(out / "mouse.npz", data.y, data.fps)
    started = time.monotonic()
    config = Config.make(_options(settings, seed))
    begun = runs.start(_fresh(out / "run"), raw, config, source=out / "mouse.npz", command=COMMAND)
    fitted = runs.train(begun, raw, progress=progress)
    seconds = time.monotonic() - started
    runs.write_baselines(fitted, raw)
    answers = [fitted.posterior(name) for name in raw.names]
    found = Segmentation(raw.names, [a.state for a in answers], [a.probability for a in answers])
    history = _history(fitted)
    numbers = _numbers(data, found, history, seconds, settings) | _others(fitted)
    _write_segmentation(out, data, found)
    with _figures.style():
        _demo_figures.draw(out, data, fitted.model(), found, history, numbers)
    return _figures.save_numbers(numbers, out)


def _fresh(folder: Path) -> Path:
    """The folder without the run that an earlier demo has left there; a run of anybody else is refused by `start`."""
    if runs.is_run(folder) and runs.Run(folder).provenance()["command"] == COMMAND:
        shutil.rmtree(folder)
    return folder


def _options(settings: Settings, seed: int) -> dict:
    fitted = {k: v for k, v in settings._asdict().items() if k not in ("sequences", "length")}
    # as many prior counts as there are states: a transition never seen must stay possible
    return fitted | {"model": "slds", "concentration": float(settings.states), "learning_rate": 2e-3, "seed": seed}


def _history(run: runs.Run) -> list[tuple]:
    """(step, bound, held-out bound, states in use) of every step; NaN where one is not known."""
    names = ("step", "bound", "held_out", "states_in_use")
    return [tuple(np.nan if line[name] is None else line[name] for name in names) for line in run.metrics()]


def _others(run: runs.Run) -> dict:
    """The held-out log likelihood of plain models, by name."""
    return {"held_out_of_others": (run.baselines() or {}).get("baselines", {})}


def _numbers(data, found, history, seconds, settings) -> dict:
    truth, labels = data.labels.reshape(-1), np.concatenate(found.labels)
    held = [h for _, _, h, _ in history if np.isfinite(h)]
    share = np.bincount(labels) / len(labels)
    return {
        "ari": adjusted_rand_index(truth, labels),
        "purity": purity(truth, labels),
        "held_out_bound_per_frame": held[-1] if held else float("nan"),
        "states_in_use": int(np.sum(share > IN_USE)),
        "median_bout_frames": float(np.median(bout_lengths(found.labels))),
        "median_bout_frames_true": float(np.median(bout_lengths(list(data.labels)))),
        "fit_seconds": seconds,
        "settings": settings._asdict(),
    }


def _write_segmentation(out: Path, data, found) -> None:
    """One line a frame: what was found, how surely, and the truth."""
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["recording", "frame", "time_s", "state", "probability", "true_action"])
    for b, (labels, marginals) in enumerate(zip(found.labels, found.marginals, strict=True)):
        for t, k in enumerate(labels):
            action = data.action_names[data.labels[b, t]]
            rows.writerow([b, t, f"{t / data.fps:.4f}", int(k), f"{marginals[t, k]:.4f}", action])
    _figures.write_atomically(out / "segmentation.csv", lambda file: file.write(text.getvalue().encode()))
