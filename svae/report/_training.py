"""How the fit went: its bound, the held-out bound, and the states in use."""

import numpy as np

from svae.experiments._figures import BLUE, GREY, ORANGE, new_figure
from svae.report._material import SWITCHING, Material


def training(material: Material):
    """Bound and states by step; the warm-up, whose bound is another one, in grey."""
    lines = material.run.metrics()
    switching = material.config.model in SWITCHING
    figure = new_figure(9.6, 3.1)
    axes = figure.subplots(1, 2, width_ratios=(2, 1)) if switching else [figure.subplots()]
    _bounds(axes[0], lines)
    if switching:
        _states(axes[1], lines, len(material.usage))
    return figure


def _bounds(axes, lines):
    fit = [line for line in lines if line["phase"] == "fit"] or lines
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
        axes.set_ylim(low - 0.08 * (high - low) - 1e-6, high + 0.1 * (high - low) + 1e-6)
    axes.set(xlabel="step", ylabel="bound, nats per frame", title="Bound")
    axes.legend(loc="lower right")


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
