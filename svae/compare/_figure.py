"""Each animal as a dot, and beside it the effect with its interval."""

import warnings
from pathlib import Path

import numpy as np

from svae.compare._groups import Study
from svae.compare._measures import Measure
from svae.compare._statistics import SURE
from svae.compare._tables import LEVEL, Row
from svae.experiments import _figures
from svae.report._palette import ink, palette

COLOURS = ("#6b7280", "#d9480f", "#1864ab", "#2b8a3e", "#862e9c", "#a37200", "#0b7285", "#c2255c")  # of groups
MOST_ROWS = 30  # rows in a figure
OF_MEASURE = {"usage": "Usage", "duration": "Duration of bouts", "transitions": "What follows what"}


def save(measure: Measure, rows: list[Row], study: Study, names: dict[int, str], out: Path, before: int = 0) -> None:
    """Write `out/usage.png` and `.pdf`, or those of another measure; none where there is no effect.

    `before` is how many colours the states of other blocks have taken.
    """
    if not any(np.isfinite(row.effect.value) for row in rows):
        return
    matplotlib = _figures.require_matplotlib()
    with _figures.style(), matplotlib.rc_context({"text.parse_math": False}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a name in letters the font has not
        _figures.save_figure(forest(measure, rows, study, names, before), out, measure.name)


def forest(measure: Measure, rows: list[Row], study: Study, names: dict[int, str], before: int = 0):
    """Rows by effect: animals on the left, effects against the first group on the right."""
    shown = _shown(measure, [row for row in rows if row.a == 0])
    figure = _figures.new_figure(10.0, 1.75 + max(2, len(shown)) * max(0.36, 0.14 * len(study.groups)))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.25, 1))
    for place, k in enumerate(shown):
        _animals(left, place, measure, k, study)
        _effects(right, place, [row for row in rows if row.key == measure.keys[k] and row.a == 0], study)
    left.set_yticks(range(len(shown)), [_label(measure.keys[k], names) for k in shown])
    _colour_labels(left, [measure.keys[k] for k in shown], before)
    left.set_ylim(len(shown) - 0.5, -0.5)
    _dress(left, right, measure, study)
    _legend(figure, study)
    figure.suptitle(_title(measure, rows, shown, study), x=0.01, ha="left", fontsize=13)
    return figure


def _shown(measure, rows):
    """Keys by number, from the largest increase to the largest decrease; those with the largest |g| if too many."""
    g = dict.fromkeys(measure.keys, np.nan)
    for row in rows:  # of several groups the one that is furthest away
        if not abs(row.g.value) <= abs(g[row.key]):
            g[row.key] = row.g.value
    size = np.nan_to_num([g[key] for key in measure.keys], nan=0.0)
    chosen = np.argsort(-np.abs(size), kind="stable")[:MOST_ROWS]
    return [int(k) for k in chosen[np.argsort(-size[chosen], kind="stable")]]


def _label(key, names):
    return " → ".join(name if len(name := names[k]) <= 18 else f"{name[:17]}…" for k in key)


def _colour_labels(axes, keys, before):
    """States as they are coloured in every figure."""
    for tick, key in zip(axes.get_yticklabels(), keys, strict=True):
        if len(key) == 1:
            tick.set(color=ink(palette(key[0] + 1, before))[key[0]], fontweight="bold")


def _offsets(count, width=0.42):
    return (np.arange(count) - (count - 1) / 2) * width / max(count - 1, 1)


def _colour(g):
    return COLOURS[g % len(COLOURS)]


def _animals(axes, place, measure, k, study):
    """One dot an animal, one line a mean."""
    group, half = np.array(study.group), min(0.15, 0.19 / (len(study.groups) - 1))
    for g, offset in enumerate(_offsets(len(study.groups))):
        known = measure.values[group == g, k]
        known = known[np.isfinite(known)]
        y = place + offset
        axes.scatter(
            measure.shown(known),
            np.full(len(known), y),
            s=20,
            color=_colour(g),
            alpha=0.6,
            lw=0,
            zorder=2,
            clip_on=False,
        )
        if len(known):
            mean = measure.shown(known.mean())
            axes.plot([mean, mean], [y - half, y + half], color=_colour(g), lw=2.4, zorder=3, solid_capstyle="butt")


def _effects(axes, place, rows, study):
    """A full marker is called different, an empty one is not."""
    for row, offset in zip(rows, _offsets(len(rows)), strict=True):
        if np.isfinite(row.effect.value):
            colour, y = _colour(row.b), place + (offset if len(rows) > 1 else 0.0)
            axes.plot([row.effect.low, row.effect.high], [y, y], color=colour, lw=1.8, zorder=2)
            face = colour if row.differs else "white"
            axes.plot(row.effect.value, y, "o", ms=6.5, mfc=face, mec=colour, mew=1.6, zorder=3)


def _dress(left, right, measure, study):
    for axes in (left, right):
        axes.tick_params(axis="y", length=0)
        for place in range(0, len(axes.get_yticks()), 2):
            axes.axhspan(place - 0.5, place + 0.5, color="#f4f4f6", lw=0, zorder=0)
    right.axvline(1.0 if measure.logarithmic else 0.0, color="#444444", lw=0.9, zorder=1)
    first = study.groups[0]
    others = study.groups[1] if len(study.groups) == 2 else "each group"
    left.set(xlabel=f"{measure.name} of each animal, {measure.unit}")
    if measure.logarithmic:
        for axes in (left, right):
            _logarithmic(axes)
        right.set(xlabel=f"{others} / {first}\nratio with {100 * SURE:g} % interval")
    else:
        left.set_xlim(left=0)
        right.set(xlabel=f"{others} − {first}\npercentage points with {100 * SURE:g} % interval")


def _logarithmic(axes):
    """A logarithmic axis with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    many = high / low > 8
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if many else (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _legend(figure, study):
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="o", ls="", color=_colour(g), label=f"{group} (n = {n})")
        for g, (group, n) in enumerate(zip(study.groups, study.sizes, strict=True))
    ]
    grey = {"marker": "o", "ls": "", "mec": "#333333", "mew": 1.4}
    handles += [
        Line2D([], [], mfc="#333333", label=f"different (q ≤ {LEVEL:g})", **grey),
        Line2D([], [], mfc="white", label="not called different", **grey),
    ]
    many = sum(len(handle.get_label()) for handle in handles) > 80
    figure.legend(handles=handles, loc="outside lower center", ncols=3 if many else len(handles))


def _title(measure, rows, shown, study):
    count = sum(row.differs for row in rows)
    rest = f"; the {len(shown)} largest effects" if len(shown) < len(measure.keys) else ""
    return f"{OF_MEASURE[measure.name]} by {study.by}: {count} of {len(rows)} differ{rest}"
