"""How the fit went: its bound and the parts of it, the held-out bound, the states in use, and how they settled."""

from typing import Any

import numpy as np

from svae.experiments._figures import BLUE, GREY, ORANGE, new_figure
from svae.report._material import Material
from svae.runs._names import roots

GREEN = "#2a9d5c"
COLUMNS = 1500  # of the picture of states over training
MOST = 100_000  # frames of one stretch


def training(material: Material):
    """Bound, its parts and states by step; what an older run did not keep is left out."""
    lines = material.run.metrics()
    panels: list[Any] = [_bounds]
    if any(line.get("log_likelihood") is not None for line in lines):
        panels.append(_parts)
    if material.pgm.discrete:
        panels.append(lambda axes, lines: _states(axes, lines, len(material.usage)))
    figure = new_figure(10.4, 3.1)
    axes = np.atleast_1d(figure.subplots(1, len(panels), width_ratios=(1.5, 1.2, 1)[: len(panels)]))
    for panel, place in zip(panels, axes, strict=True):
        panel(place, lines)
    return figure


def _fitted(lines):
    return [line for line in lines if line["phase"] == "fit"] or lines


def _bounds(axes, lines):
    fit = _fitted(lines)
    steps, bound, held = (_column(fit, name) for name in ("step", "bound", "held_out"))
    smooth = _running_mean(bound, max(1, len(bound) // 25))
    axes.plot(steps, bound, color=BLUE, lw=0.8, alpha=0.35)
    axes.plot(steps, smooth, color=BLUE, label="training batches")
    if np.isfinite(held).any():
        seen = np.isfinite(held)
        axes.plot(steps[seen], held[seen], "o-", color=ORANGE, ms=5, label="held out")
    known = np.concatenate([bound[np.isfinite(bound)], held[np.isfinite(held)]])
    if len(known) > 1:
        low, high = np.percentile(known, 3), known.max()
        axes.set_ylim(low - 0.3 * (high - low) - 1e-6, high + 0.1 * (high - low) + 1e-6)  # below is room for words
    axes.set(xlabel="step", ylabel="bound, nats per frame", title="Bound")
    axes.legend(loc="lower right", ncols=2, fontsize=9, columnspacing=1.2)


def _parts(axes, lines):
    """The log likelihood, and below it what each KL takes away: the last edge is the bound."""
    fit = _fitted(lines)
    steps, width = _column(fit, "step"), max(1, len(fit) // 25)
    top = _running_mean(_column(fit, "log_likelihood"), width)
    local = _running_mean(_column(fit, "local_kl"), width)
    rest = _running_mean(_column(fit, "global_kl") + _column(fit, "weights_kl"), width)
    axes.plot(steps, top, color=GREEN, label="log likelihood")
    axes.fill_between(steps, top - local, top, color=ORANGE, alpha=0.35, lw=0, label="− local KL")
    axes.fill_between(steps, top - local - rest, top - local, color=GREY, alpha=0.35, lw=0, label="− global KL")
    axes.plot(steps, top - local - rest, color=BLUE, label="bound")
    low, high = _range(np.concatenate([top, top - local - rest]))
    axes.set(xlabel="step", ylabel="nats per frame", title="Parts of the bound", ylim=(low, high))
    axes.legend(loc="lower right", ncols=2, fontsize=9, columnspacing=1.2)


def _range(values):
    """Limits that leave out the first steps, far below, and have room for words at the bottom."""
    known = values[np.isfinite(values)]
    if not len(known):
        return None, None
    low, high = np.percentile(known, 3), known.max()
    return low - 0.45 * (high - low) - 1e-6, high + 0.1 * (high - low) + 1e-6


def has_sequences(material: Material) -> bool:
    """Whether the run has kept states of a held-out stretch at two measurements or more."""
    return bool(material.pgm.discrete) and len(_labelled(material)) > 1


def _labelled(material):
    return [line for line in material.run.metrics() if _is_runs(line.get("labels"))]


def _is_runs(labels):
    """Pairs of a state and a number of frames, not too many."""
    pairs = isinstance(labels, list) and all(isinstance(run, list) and len(run) == 2 for run in labels)
    if not pairs or not all(isinstance(n, int) and n >= 0 for run in labels for n in run):
        return False
    return 0 < sum(frames for _, frames in labels) <= MOST


def sequences(material: Material):
    """The states of one held-out stretch (across) at every measurement (down)."""
    lines = _labelled(material)
    K = len(material.usage)
    rows = [roots(material.merged, K)[np.repeat(*np.array(line["labels"], int).T) % K] for line in lines]
    frames = max(map(len, rows))
    columns = np.linspace(0, frames - 1, min(frames, COLUMNS)).astype(int)
    image = np.ones((len(rows), len(columns), 3))
    for picture, row in zip(image, rows, strict=True):
        seen = columns < len(row)
        picture[seen] = material.colours[row[columns[seen]]]
    figure = new_figure(10.4, min(4.2, 1.3 + 0.16 * len(rows)))
    axes = figure.subplots()
    span = material.duration(frames)
    axes.imshow(image, aspect="auto", interpolation="nearest", extent=(0, span, len(rows), 0))
    ticks = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), 6)).astype(int))
    axes.set_yticks(ticks + 0.5, [str(lines[i]["step"]) for i in ticks])
    axes.set(xlabel=material.clock, ylabel="step")
    axes.spines[:].set_visible(False)
    return figure


def _states(axes, lines, K):
    steps, used = _column(lines, "step"), _column(lines, "states_in_use")
    warm = np.array([line["phase"] != "fit" for line in lines])
    used = np.where(warm, np.nan, used)
    axes.axhline(K, color=GREY, lw=1, ls=(0, (4, 3)))
    axes.annotate("at most", (0, K), (4, 3), textcoords="offset points", xycoords=("axes fraction", "data"), fontsize=9)
    axes.step(steps, used, where="post", color=BLUE, lw=1.3)
    axes.set(xlabel="step", ylabel="states", title="States in use in a batch", ylim=(0, K * 1.15))
    axes.set_xlim(np.nanmin(steps[~warm]) if (~warm).any() else None, steps.max())
    axes.yaxis.get_major_locator().set_params(integer=True)


def _column(lines, name):
    return np.array([np.nan if line.get(name) is None else line[name] for line in lines], float)


def _running_mean(values, width):
    """Over the last `width` steps; NaN counts for nothing."""
    known = np.isfinite(values)
    total, count = np.cumsum(np.where(known, values, 0)), np.cumsum(known)
    before = (
        np.r_[np.zeros(width), total[:-width]][: len(values)],
        np.r_[np.zeros(width), count[:-width]][: len(values)],
    )
    with np.errstate(invalid="ignore"):
        return (total - before[0]) / (count - before[1])
