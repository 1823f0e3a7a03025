"""The graphical model that was fitted, drawn: what is observed is grey, an arrow means "depends on"."""

import numpy as np

from svae.experiments._figures import BLUE, ORANGE, new_figure
from svae.nets import likelihood_of
from svae.report._material import Material

RADIUS = 0.33
LOWEST, STEP = 0.8, 1.4  # of the rows
FRAME = "the frame"  # what its row is called, which no block can be


def diagram(material: Material):
    """Three frames of a chain, or one frame in its plate."""
    from matplotlib.patches import Rectangle

    pgm = material.pgm
    chain = not pgm.independent
    columns = [2.0, 3.6, 5.2] if chain else [2.8]
    rows = _rows(pgm)
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
        remembering = [name for name in rows if name != FRAME and pgm.node(name).block.remembers]
        _dots(axes, columns[-1] + 0.62, [rows[name] for name in remembering[: max(1, len(pgm.discrete))]])
    _words(axes, material, columns[-1] + 1.35, rows)
    return figure


def _rows(pgm) -> dict[str, float]:
    """The height of each block, parents above their children, and of the frame below all."""
    names = [*(node.name for node in pgm.nodes), FRAME]
    return {name: LOWEST + STEP * (len(names) - 1 - i) for i, name in enumerate(names)}


def _frames(axes, pgm, columns, rows):
    subscripts = ["ₜ₋₁", "ₜ", "ₜ₊₁"] if len(columns) == 3 else [""]
    for i, (x, sub) in enumerate(zip(columns, subscripts, strict=True)):
        for name, y in rows.items():
            shown = "y" if name == FRAME else name
            _node(axes, (x, y), f"{shown}{sub}", "#d9dce1" if name == FRAME else "white", "#333333")
        for name in pgm.continuous:
            _arrow(axes, (x, rows[name]), (x, rows[FRAME]), ORANGE)
        for start, end, before in pgm.arrows:
            if i or not before:
                _arrow(axes, (columns[i - 1] if before else x, rows[start]), (x, rows[end]), BLUE)


def _globals(axes, pgm, columns, rows):
    """Parameters outside the plate, each with an arrow to the row that it governs."""
    if pgm.learned:
        heights = [y for name, y in rows.items() if name != FRAME]
        place = (0.35, np.mean(heights))
        _node(axes, place, "θ", "white", BLUE)
        for y in heights:
            _arrow(axes, place, (columns[0], y), BLUE, dashed=True)
    _node(axes, (0.35, rows[FRAME]), "γ", "white", ORANGE)
    _arrow(axes, (0.35, rows[FRAME]), (columns[0], rows[FRAME]), ORANGE, dashed=True)


def _node(axes, place, words, fill, edge):
    from matplotlib.patches import Circle

    axes.add_patch(Circle(place, RADIUS, facecolor=fill, edgecolor=edge, lw=1.5, zorder=3))
    letters = len(words.rstrip("ₜ₋₁₊"))
    size = min(13, 65 / (letters + 3))  # a long name is small enough for its circle
    axes.text(*place, words, ha="center", va="center", fontsize=size, zorder=4, color="#222222")


def _arrow(axes, a, b, colour, dashed=False):
    """Straight; round what lies between where it passes over a row."""
    a, b = np.array(a, float), np.array(b, float)
    d = (b - a) / np.linalg.norm(b - a)
    how = {"arrowstyle": "-|>", "color": colour, "lw": 1.5, "ls": (0, (3, 2)) if dashed else "-", "mutation_scale": 13}
    how |= {"shrinkA": 0, "shrinkB": 0}
    if a[0] == b[0] and abs(a[1] - b[1]) > 1.5 * STEP:
        how["connectionstyle"] = "arc3,rad=-0.3"
        aside = np.array([0.8, 0.6 * np.sign(b[1] - a[1])])  # it leaves and comes back on the right
        first, last = a + aside * RADIUS * 1.08, b + aside * [1, -1] * RADIUS * 1.08
        axes.annotate("", tuple(last), tuple(first), arrowprops=how)
        return
    axes.annotate("", tuple(b - d * RADIUS * 1.08), tuple(a + d * RADIUS * 1.08), arrowprops=how)


def _dots(axes, x, heights):
    for y in heights:
        axes.text(x, y, "…", ha="center", va="center", fontsize=16, color="#777777")


def _words(axes, material, x, rows):
    model = material.model
    shape = " × ".join(map(str, model.shape)) or "1"
    pgm, several = material.pgm, len(material.pgm.continuous) > 1
    said = {name: f"state{_of(pgm, name)}, one of {K}" for name, K in pgm.discrete.items()}
    said |= {name: f"latent{f' {name}' if several else ''}, {D} dimensions" for name, D in pgm.continuous.items()}
    moved = ",\nthe last two: forward speed and turning" if model.preprocess.motion else ""
    said[FRAME] = f"frame, {shape} numbers{moved}\n{_between(model)}"
    for name, y in rows.items():
        axes.text(x, y, said[name], va="center", fontsize=11, color="#222222")


def _of(pgm, name) -> str:
    return f" of {name}" if len(pgm.discrete) > 1 else ""


def _between(model):
    """What is between the latent and a frame."""
    if model.pgm.observed:
        return "itself the latent" if model.pgm.dimensions == np.prod(model.shape) else "whose projection is the latent"
    return f"{likelihood_of(model.observe).title}, network: {model.config.network}"
