"""Which state when: every recording as a band of colours, and what the states look like one by one."""

import numpy as np

from svae.experiments._figures import new_figure
from svae.report._material import Material
from svae.report._palette import label

COLUMNS = 2400  # of the image of a recording; more could not be told apart
TALLEST = 14.0  # inches


def ethogram(material: Material):
    """All recordings on one clock, with a row for each discrete block."""
    parts, names = material.each, list(material.posteriors)
    rows = len(parts) * len(names)
    figure = new_figure(10.4, max(1.9, min(0.42, TALLEST / rows) * rows + 1.1))
    axes = figure.subplots()
    for b, part in enumerate(parts):
        for i, p in enumerate(part.posteriors.values()):
            top = i * len(parts) + b
            axes.imshow(
                part.colours[_thin(p.state)][None],
                aspect="auto",
                interpolation="nearest",
                extent=(0, material.duration(len(p.state)), *_edges(top, b, len(parts))),
            )
    axes.set(xlim=(0, material.duration(max(len(p.state) for p in material.posteriors.values()))), ylim=(rows, 0))
    axes.set_xlabel("seconds" if material.fps else "frame")
    axes.spines[["left"]].set_visible(False)
    _name_rows(axes, [f"{_shortened(name)}{' · ' * bool(p.block)}{p.block or ''}" for name in names for p in parts])
    _legend(figure, parts)
    return figure


def _edges(top: int, b: int, blocks: int) -> tuple[float, float]:
    """Bottom and top of a row: the blocks of one recording are near each other."""
    return top + (0.86 if b == blocks - 1 else 0.98), top + (0.14 if b == 0 else 0.02)


def _thin(state):
    """At most COLUMNS of the frames."""
    return state[np.linspace(0, len(state) - 1, min(len(state), COLUMNS)).round().astype(int)]


def _name_rows(axes, names):
    every = -(-len(names) // 45)
    ticks = range(0, len(names), every)
    axes.set_yticks([i + 0.5 for i in ticks], [names[i] for i in ticks], fontsize=9)
    axes.tick_params(axis="y", length=0)


def _shortened(name):
    return name if len(name) <= 28 else f"{name[:13]}…{name[-13:]}"


def _legend(figure, parts):
    from matplotlib.patches import Patch

    shown = [(part, k) for part in parts for k in sorted(part.states)][:32]
    patches = [Patch(color=p.colours[k], label=f"{label(k, p.names)}{p.of}") for p, k in shown]
    if len(shown) > 1:
        figure.legend(handles=patches, loc="outside lower center", ncols=min(8, len(shown)), handlelength=1.0)
