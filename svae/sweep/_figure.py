"""A sweep to be looked at: the bound, how long bouts last against the target, and how much neighbours agree."""

from pathlib import Path
from typing import Any

from svae.experiments import _figures
from svae.sweep._grid import Plan, grid

WORDS = {"states": "states at most", "latent_dim": "latent dimensions", "target_duration": "target duration"}
SHORT = {"states": "{} states", "latent_dim": "{}-D", "target_duration": "{}"}
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")


def draw(out: Path, plan: Plan, rows: list[dict[str, Any]]) -> None:
    """Write `out/sweep.png` and `.pdf`."""
    with _figures.style():
        _figures.save_figure(panels(plan, rows), out, "sweep")


def panels(plan: Plan, rows: list[dict[str, Any]]):
    """The first axis with several values lies along x; every other setting is a line of its own."""
    along = next((axis for axis, values in plan.axes.items() if len(values) > 1), next(iter(plan.axes)))
    figure = _figures.new_figure(12.0, 4.4)
    bound, length, agreement = figure.subplots(1, 3)
    for number, (words, line) in enumerate(_lines(plan, rows, along).items()):
        mark = {"marker": MARKS[number % len(MARKS)], "color": _figures.ARMS[number % len(_figures.ARMS)], "ms": 6}
        _line(bound, line, "held_out", mark, words)
        _line(agreement, line, "agreement", mark, words)
        both = [_durations(row) for _, row in line if all(_durations(row))]
        length.plot([wanted for wanted, _ in both], [median for _, median in both], ls="", alpha=0.8, **mark)
    _dress(bound, plan, along, "held-out bound, nats per frame", "Bound: higher is better")
    _dress(agreement, plan, along, "mean ARI with neighbours", "Agreement of segmentations")
    agreement.set_ylim(min(0.0, agreement.get_ylim()[0]), 1.02)
    _lengths(length, "s" if not rows or "target_s" in rows[0] else "frames")
    if sum(len(values) > 1 for values in plan.axes.values()) > 1:
        figure.legend(*bound.get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return figure


def _lines(plan, rows, along):
    """Words of a line -> its (place on x, row), from left to right."""
    others = [axis for axis, values in plan.axes.items() if axis != along and len(values) > 1]
    done, found = {row["run"]: row for row in rows}, {}
    for name, point in grid(plan).items():
        words = ", ".join(SHORT[axis].format(value) for axis, value in point.items() if axis in others)
        if name in done:
            found.setdefault(words, []).append((plan.axes[along].index(point[along]), done[name]))
    return found


def _durations(row):
    """Target and median duration, in seconds, or in frames where no rate is known."""
    unit = "s" if "target_s" in row else "frames"
    return row[f"target_{unit}"], row[f"median_bout_{unit}"]


def _line(axes, line, column, mark, words):
    known = [(x, row[column]) for x, row in line if row[column] is not None]
    axes.plot([x for x, _ in known], [y for _, y in known], lw=1.4, label=words, **mark)


def _dress(axes, plan, along, words, title):
    axes.set_xticks(range(len(plan.axes[along])), [str(value) for value in plan.axes[along]])
    axes.set(xlabel=WORDS[along], ylabel=words, title=title)
    axes.margins(x=0.12)


def _lengths(axes, unit):
    """On the dashed line half of the bouts are shorter than the target."""
    most = 1.08 * max(axes.get_xlim()[1], axes.get_ylim()[1], 1e-9)
    axes.plot([0, most], [0, most], color=_figures.GREY, lw=1, ls=(0, (4, 3)), zorder=0)
    axes.set(
        xlabel=f"target duration, {unit}",
        ylabel=f"median bout, {unit}",
        title="Length of bouts",
        xlim=(0, most),
        ylim=(0, most),
    )
