"""The graphical model that was fitted, drawn: what is observed is grey, an arrow means "depends on"."""

import numpy as np

from svae.experiments._figures import BLUE, ORANGE, new_figure
from svae.nets import likelihood_of
from svae.report._material import Material

RADIUS = 0.33


def diagram(material: Material):
    """Three frames of a chain, or one frame in its plate."""
    from matplotlib.patches import Rectangle

    pgm = material.pgm
    chain = not pgm.independent
    columns = [2.0, 3.6, 5.2] if chain else [2.8]
    rows = {"z": 3.6, "x": 2.2, "y": 0.8} if pgm.discrete else {"x": 2.2, "y": 0.8}
    width = columns[-1] + 4.6
    figure = new_figure(width * 0.82, (max(rows.values()) + 0.75) * 0.82)
    axes = figure.subplots()
    axes.set(xlim=(-0.1, width), ylim=(0.0, max(rows.values()) + 0.75), aspect="equal")
    axes.set_axis_off()
    _frames(axes, pgm, columns, rows)
    _globals(axes, pgm, columns, rows)
    box = (columns[0] - 0.75, 0.15), columns[-1] - columns[0] + (1.75 if chain else 1.5), max(rows.values()) + 0.5
    axes.add_patch(Rectangle(*box, fill=False, ec="#999999", lw=1, joinstyle="round"))
    if chain:
        _dots(axes, columns[-1] + 0.62, [rows["z" if pgm.chained else "x"]])
    _words(axes, material, columns[-1] + 1.35, rows)
    return figure


def _frames(axes, pgm, columns, rows):
    subscripts = ["ₜ₋₁", "ₜ", "ₜ₊₁"] if len(columns) == 3 else [""]
    for i, (x, sub) in enumerate(zip(columns, subscripts, strict=True)):
        for name, y in rows.items():
            _node(axes, (x, y), f"{name}{sub}", "#d9dce1" if name == "y" else "white", "#333333")
        _arrow(axes, (x, rows["x"]), (x, rows["y"]), ORANGE)
        if "z" in rows:
            _arrow(axes, (x, rows["z"]), (x, rows["x"]), BLUE)
        if i and pgm.chained:
            _arrow(axes, (columns[i - 1], rows["z"]), (x, rows["z"]), BLUE)
        if i and pgm.dynamic:
            _arrow(axes, (columns[i - 1], rows["x"]), (x, rows["x"]), BLUE)


def _globals(axes, pgm, columns, rows):
    """Parameters outside the plate, each with an arrow to the row that it governs."""
    if pgm.learned:
        _node(axes, (0.35, np.mean([y for name, y in rows.items() if name != "y"])), "θ", "white", BLUE)
        for name in rows:
            if name != "y":
                place = (0.35, np.mean([y for n, y in rows.items() if n != "y"]))
                _arrow(axes, place, (columns[0], rows[name]), BLUE, dashed=True)
    _node(axes, (0.35, rows["y"]), "γ", "white", ORANGE)
    _arrow(axes, (0.35, rows["y"]), (columns[0], rows["y"]), ORANGE, dashed=True)


def _node(axes, place, words, fill, edge):
    from matplotlib.patches import Circle

    axes.add_patch(Circle(place, RADIUS, facecolor=fill, edgecolor=edge, lw=1.5, zorder=3))
    axes.text(*place, words, ha="center", va="center", fontsize=13, zorder=4, color="#222222")


def _arrow(axes, a, b, colour, dashed=False):
    a, b = np.array(a, float), np.array(b, float)
    d = (b - a) / np.linalg.norm(b - a)
    how = {"arrowstyle": "-|>", "color": colour, "lw": 1.5, "ls": (0, (3, 2)) if dashed else "-", "mutation_scale": 13}
    how |= {"shrinkA": 0, "shrinkB": 0}
    axes.annotate("", tuple(b - d * RADIUS * 1.08), tuple(a + d * RADIUS * 1.08), arrowprops=how)


def _dots(axes, x, heights):
    for y in heights:
        axes.text(x, y, "…", ha="center", va="center", fontsize=16, color="#777777")


def _words(axes, material, x, rows):
    config, model = material.config, material.model
    shape = " × ".join(map(str, model.shape)) or "1"
    said = {
        "z": f"state, one of {len(material.usage)}",
        "x": f"latent, {config.latent_dim} dimensions",
        "y": f"frame, {shape} numbers\n{_between(model)}",
    }
    for name, y in rows.items():
        axes.text(x, y, said[name], va="center", fontsize=11, color="#222222")


def _between(model):
    """What is between the latent and a frame."""
    if model.pgm.observed:
        return "itself the latent" if model.pgm.dimensions == np.prod(model.shape) else "whose projection is the latent"
    return f"{likelihood_of(model.observe).title}, network: {model.config.network}"
