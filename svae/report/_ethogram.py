"""Which state when: every recording as a band of colours, and what the states look like one by one."""

import numpy as np

from svae.experiments._figures import new_figure
from svae.report._material import Material
from svae.report._palette import label, palette

COLUMNS = 2400  # of the image of a recording; more could not be told apart
TALLEST = 14.0  # inches


def ethogram(material: Material):
    """All recordings on one clock."""
    found, colours = material.posteriors, palette(len(material.usage))
    lengths = [len(p.state) for p in found.values()]
    row = min(0.42, TALLEST / len(found))
    figure = new_figure(10.4, max(1.9, row * len(found) + 1.1))
    axes = figure.subplots()
    for i, p in enumerate(found.values()):
        axes.imshow(
            colours[_thin(p.state)][None],
            aspect="auto",
            interpolation="nearest",
            extent=(0, material.duration(len(p.state)), i + 0.86, i + 0.14),
        )
    axes.set(xlim=(0, material.duration(max(lengths))), ylim=(len(found), 0))
    axes.set_xlabel("seconds" if material.fps else "frame")
    axes.spines[["left"]].set_visible(False)
    _name_rows(axes, list(found))
    _legend(figure, material, colours)
    return figure


def _thin(state):
    """At most COLUMNS of the frames."""
    return state[np.linspace(0, len(state) - 1, min(len(state), COLUMNS)).round().astype(int)]


def _name_rows(axes, names):
    every = -(-len(names) // 45)
    ticks = range(0, len(names), every)
    axes.set_yticks([i + 0.5 for i in ticks], [_shortened(names[i]) for i in ticks], fontsize=9)
    axes.tick_params(axis="y", length=0)


def _shortened(name):
    return name if len(name) <= 28 else f"{name[:13]}…{name[-13:]}"


def _legend(figure, material, colours):
    from matplotlib.patches import Patch

    shown = sorted(material.states)[:32]
    patches = [Patch(color=colours[k], label=label(k, material.names)) for k in shown]
    if len(shown) > 1:
        figure.legend(handles=patches, loc="outside lower center", ncols=min(8, len(shown)), handlelength=1.0)
