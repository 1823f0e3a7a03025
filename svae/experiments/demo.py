"""The demo: an SLDS SVAE finds the actions of a synthetic mouse in raw video, without a label."""

import csv
import io
import itertools
import shutil
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from svae import runs
from svae._queries import reconstruct
from svae._queries.inference import Segmentation
from svae.config import Config
from svae.data import mouse
from svae.data.scores import adjusted_rand_index, bout_lengths, matched, purity
from svae.experiments import _figures
from svae.experiments._recorded import kept


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
        _draw(out, data, fitted.model(), found, history, numbers)
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
        "states_in_use": int(np.sum(share > 0.01)),
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


def _draw(out: Path, data, model, found, history, numbers) -> None:
    names = matched(data.labels.reshape(-1), np.concatenate(found.labels))
    _figures.save_figure(_overview(data, model, found, names, numbers), out, "demo")
    _figures.save_figure(_actions(data, found, names), out, "states")
    _figures.save_figure(_training(history), out, "training")


def _colours(count: int):
    import matplotlib

    return matplotlib.colormaps["tab10"](np.arange(count) % 10)


def _overview(data, model, found, names, numbers):
    """Real frames, their reconstruction, and the ethogram against the truth, on one clock."""
    seconds = min(6.0, data.labels.shape[1] / data.fps)
    frames = np.arange(0, int(seconds * data.fps), int(data.fps * seconds / 15))
    again = reconstruct(model, [data.y[0]]).frames[0]
    figure = _figures.new_figure(11.0, 5.6)
    grid = figure.add_gridspec(4, 1, height_ratios=[1.1, 1.1, 0.55, 2.6])
    for row, (title, video) in enumerate((("video", data.y[0]), ("model", again))):
        axes = figure.add_subplot(grid[row])
        axes.imshow(np.concatenate(list(video[frames]), 1), cmap="magma", vmin=0, vmax=0.9, aspect="auto")
        _figures.bare(axes)
        axes.set_ylabel(title, rotation=0, ha="right", va="center")
    colours = _colours(len(data.action_names))
    axes = figure.add_subplot(grid[2])
    window = slice(0, int(seconds * data.fps))
    axes.imshow(
        colours[np.stack([data.labels[0][window], names[found.labels[0][window]]])],
        aspect="auto",
        extent=(0, seconds, 2, 0),
        interpolation="nearest",
    )
    axes.set(yticks=[0.5, 1.5], yticklabels=["truth", "found"], xlabel="seconds")
    axes.spines[:].set_visible(False)
    _ethogram(figure.add_subplot(grid[3]), data, found, names, colours)
    figure.suptitle(f"A mouse, segmented without a label: ARI {numbers['ari']:.2f} in {numbers['fit_seconds']:.0f} s")
    return figure


def _ethogram(axes, data, found, names, colours) -> None:
    """Truth above what was found, for the first recordings."""
    shown = min(8, len(found.labels))
    rows = []
    for b in range(shown):
        rows += [colours[data.labels[b]], colours[names[found.labels[b]]], np.ones((data.labels.shape[1], 4))]
    image = np.repeat(np.stack(rows[:-1]), [3, 3, 1] * (shown - 1) + [3, 3], 0)
    axes.imshow(image, aspect="auto", interpolation="nearest", extent=(0, data.labels.shape[1] / data.fps, shown, 0))
    axes.set(yticks=[], xlabel="seconds", ylabel="recordings\n(truth above found)")
    axes.spines[:].set_visible(False)
    for k, name in enumerate(data.action_names):
        axes.plot([], [], "s", color=colours[k], label=name)
    title = "actions\n(a found state has the\ncolour of the action\nthat it meets most)"
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title=title, title_fontsize=9)


def _actions(data, found, names):
    """For every state in use, frames of its longest bouts, one of every two."""
    labels = np.concatenate(found.labels)
    states = [int(k) for k in np.argsort(-np.bincount(labels)) if np.mean(labels == k) > 0.01]
    figure = _figures.new_figure(10.0, 0.75 * len(states) + 0.6)
    for row, k in enumerate(states):
        b, start, length = _longest_bout(found.labels, k)
        frames = data.y[b, start : min(start + 28, start + length) : 2]
        strip = np.full((data.y.shape[2], 14 * data.y.shape[3]), np.nan)
        strip[:, : len(frames) * data.y.shape[3]] = np.concatenate(list(frames), 1)
        axes = figure.add_subplot(len(states), 1, row + 1)
        axes.imshow(strip, cmap="magma", vmin=0, vmax=0.9, aspect="equal")
        _figures.bare(axes)
        label = f"state {k}\n{100 * np.mean(labels == k):.0f} % of frames\nmostly {data.action_names[names[k]]}"
        axes.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=9)
    return figure


def _longest_bout(paths, k: int) -> tuple[int, int, int]:
    """(recording, first frame, length) of the longest run of state k."""
    best = (0, 0, 1)
    for b, z in enumerate(paths):
        edges = np.flatnonzero(np.r_[True, z[1:] != z[:-1], True])
        for start, stop in itertools.pairwise(edges):
            if z[start] == k and stop - start > best[2]:
                best = (b, int(start), int(stop - start))
    return best


def _training(history):
    steps, bound, held, states = (np.array(column, float) for column in zip(*history, strict=True))
    figure = _figures.new_figure(8.0, 3.2)
    left, right = figure.subplots(1, 2)
    seen = np.isfinite(bound)
    left.plot(steps[seen], bound[seen], color=_figures.BLUE, label="training batch")
    left.plot(steps[np.isfinite(held)], held[np.isfinite(held)], "o-", color=_figures.ORANGE, label="held out")
    low = np.nanpercentile(bound, 10)
    left.set(xlabel="step", ylabel="bound, nats per frame", ylim=(low, None))
    left.legend()
    right.plot(steps[states > 0], states[states > 0], color=_figures.BLUE)
    right.set(xlabel="step", ylabel="states in use")
    return figure
