"""How long bouts last, as a model with durations has learned it: a distribution for each state."""

import numpy as np
from jaxtyping import Float

from svae.experiments._figures import new_figure
from svae.report._material import Material
from svae.report._palette import ink, short_label

PANELS, COLUMNS = 24, 4  # states that are shown; beside each other
WHOLE = 0.995  # of the probability that a panel shows


def durations_figure(material: Material, lasting: Float[np.ndarray, "K longest"]):
    """A panel for each state in use: the learned distribution as a line, whole bouts that were found as bars."""
    states = sorted(material.states)[:PANELS]
    columns = min(COLUMNS, len(states))
    rows = -(-len(states) // columns)
    figure = new_figure(2.6 * columns, 1.75 * rows + 0.35)
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
    longest = max(_reach(lasting[k], whole_bouts(material, k)) for k in states)
    for k, axes in zip(states, panels, strict=False):
        _panel(axes, material, lasting[k], k, longest)
    for axes in panels[len(states) :]:
        axes.set_axis_off()
    figure.supxlabel(material.clock, fontsize=10)
    figure.supylabel("% of bouts", fontsize=10)
    return figure


def whole_bouts(material: Material, k: int) -> np.ndarray:
    """Frames of the bouts of a state that neither begin nor end with a recording."""
    lengths = [len(p.state) for p in material.posteriors.values()]
    mine = (s for s in material.stretches if s.state == k)
    return np.array([s.frames for s in mine if s.first > 0 and s.last < lengths[s.recording]], int)


def _reach(p, found) -> int:
    """Frames after which little is left."""
    return max(int(np.searchsorted(np.cumsum(p), WHOLE)) + 1, *found, 2)


def _panel(axes, material, p, k, longest):
    """Both in bins of so many frames: single ones would be noise."""
    width = max(1, -(-longest // 30))
    edges = np.arange(0, longest + width, width) + 0.5
    colour, found = material.colours[k], whole_bouts(material, k)
    if len(found):
        counts = np.histogram(found, edges)[0]
        axes.bar(
            material.duration(edges[:-1]), 100 * counts / counts.sum(), material.duration(width), align="edge",
            color=colour, alpha=0.3, lw=0,
        )  # fmt: skip
    whole = np.zeros(len(edges) * width)
    whole[: min(len(p), len(whole))] = p[: len(whole)]
    learned = 100 * whole.reshape(-1, width).sum(1)[: len(edges) - 1]
    axes.step(material.duration(edges), [*learned, learned[-1]], where="post", color=colour, lw=1.8)
    mean = material.duration(float(np.arange(1, len(p) + 1) @ p))
    axes.axvline(mean, color="#444444", lw=1, ls=(0, (3, 2)))
    title = f"{short_label(k, material.names)}: mean {mean:.2g} {material.unit}, {len(found)} bouts"
    axes.set_title(title, fontsize=9, color=tuple(ink(colour)))
    axes.set(xlim=(0, material.duration(longest + 1)), ylim=(0, None))
    axes.tick_params(labelsize=8)
