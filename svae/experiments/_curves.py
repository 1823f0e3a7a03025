"""Figure 5a itself: bounds against iterations, and where a matrix gave way."""

from typing import NamedTuple

from svae.experiments._figures import BLUE, GREY, ORANGE, new_figure


class Curve(NamedTuple):
    """A finished run: bound (nats per frame) after `iterations`; indefinite: the iteration that ended it, or None."""

    name: str
    step: float
    iterations: list[int]
    bound: list[float]
    indefinite: int | None


def figure(curves: list[Curve]):
    """Bound per frame against iterations: natural in blue, standard in oranges, a cross where a matrix gave way."""
    fig = new_figure(6.4, 4.0)
    axes = fig.subplots()
    standard = [c for c in curves if c.name == "standard"]
    for c in curves:
        shade = 1.0 if c.name == "natural" else 0.45 + 0.55 * standard.index(c) / max(len(standard) - 1, 1)
        colour = BLUE if c.name == "natural" else ORANGE
        axes.plot(c.iterations, c.bound, color=colour, alpha=shade, zorder=3, label=f"{c.name}, step {c.step:g}")
        if c.indefinite is not None:
            axes.plot(c.indefinite, c.bound[-1], "x", color=colour, alpha=shade, ms=9, mew=2.5, zorder=4, clip_on=False)
    if any(c.indefinite is not None for c in curves):
        axes.plot([], [], "x", color=GREY, ms=8, mew=2.5, label="a matrix became indefinite")
    axes.set(xlabel="iterations (one sequence each)", ylabel="bound (nats per frame)", xlim=(0, None))
    axes.set_title("Natural and standard gradients, LDS SVAE on dots")
    axes.legend(loc="lower right")
    return fig
