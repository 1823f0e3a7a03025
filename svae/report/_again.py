"""How well each state is found again, as a picture and in words."""

import numpy as np

from svae.experiments._figures import GREY, new_figure
from svae.report._material import Material
from svae.report._palette import short_label
from svae.runs._stability import WEAK, Stability, Unknown, number, weak


def found_again(material: Material, found: Stability):
    """A dot for each state in use, the commonest on top, and a line at WEAK."""
    used = [k for k in material.states if number(found, k) is not None]
    figure = new_figure(8.2, 1.1 + 0.3 * len(used))
    axes = figure.subplots()
    colours = material.colours
    for row, k in enumerate(used):
        axes.plot([0, found.again[k]], [row, row], color=colours[k], lw=1.5, alpha=0.5)
        axes.plot(found.again[k], row, "o", color=colours[k], ms=9)
        said = f"{found.again[k]:.2f}"
        axes.annotate(said, (found.again[k], row), (9, 0), textcoords="offset points", va="center", fontsize=10)
    axes.axvline(WEAK, color=GREY, lw=1, ls=(0, (4, 3)), zorder=0)
    axes.set_yticks(range(len(used)), [short_label(k, material.names) for k in used])
    axes.set(xlim=(0, 1.08), ylim=(len(used) - 0.5, -0.5), ylabel="state", xlabel="found again")
    axes.set_xticks(np.linspace(0, 1, 6))
    axes.tick_params(axis="y", length=0)
    axes.spines[["left"]].set_visible(False)
    return figure


def why_not(material: Material) -> str:
    """Why nobody knows how well states are found again, or of which states; else nothing."""
    if not material.pgm.discrete:
        return ""
    if isinstance(material.stability, Unknown):
        why = material.stability.why
        return f"How well each state is found again is not known: {why}. `svae fit ... --restarts 3` measures it."
    lost = [short_label(k, material.names) for k in material.states if number(material.stability, k) is None]
    if not lost:
        return ""
    return f"How well {', '.join(lost)} {'is' if len(lost) == 1 else 'are'} found again is not known: {_why(material)}."


def _why(material: Material) -> str:
    return "people have merged states" if material.merged else "the search for states gave no frames to it"


def hardly(material: Material) -> str:
    """A sentence where states in use are hardly found again, else nothing."""
    found, several = material.stability, bool(material.pgm.discrete)
    return weak(found, material.states, material.names) if several and isinstance(found, Stability) else ""
