"""The figures of the demo: video beside model and ethogram, the actions that were found, the training."""

import itertools
from pathlib import Path

import numpy as np

from svae.data.scores import IN_USE, matched
from svae.experiments import _figures
from svae.queries import reconstruct


def draw(out: Path, data, model, found, history, numbers) -> None:
    """demo, states and training, each as PNG and PDF."""
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
    states = [int(k) for k in np.argsort(-np.bincount(labels)) if np.mean(labels == k) > IN_USE]
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
