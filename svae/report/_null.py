"""Whether there are states and dynamics at all, as a picture: the recordings beside others that have none."""

from svae.experiments._figures import BLUE, GREY, new_figure
from svae.runs._null import nats
from svae.starting import Null, Pair


def null(found: Null):
    """A row for states and one for dynamics: what the recordings gain in blue, and others without it in grey."""
    rows = [(name, pair) for name, pair in (("states", found.gain), ("dynamics", found.dynamics)) if pair is not None]
    figure = new_figure(8.2, 0.5 + 1.05 * len(rows))
    for axes, (name, pair) in zip(figure.subplots(len(rows), 1, squeeze=False)[:, 0], rows, strict=True):
        _row(axes, pair, name)
    axes.set_xlabel("nats a frame")
    return figure


def _row(axes, pair: Pair, name: str):
    most = max(pair.found, *pair.without, 1e-9)
    usual = sum(pair.without) / len(pair.without)
    axes.axhline(0, color="#dddddd", lw=1, zorder=0)
    axes.plot(pair.without, [0] * len(pair.without), "o", color=GREY, ms=9, alpha=0.7)
    axes.plot(pair.found, 0, "o", color=BLUE, ms=12)
    axes.annotate(f"without {name} {nats(usual)}", (usual, 0), (0, 11), textcoords="offset points", color="#555555")
    words = f"these recordings {nats(pair.found)}"
    axes.annotate(words, (pair.found, 0), (6, -20), textcoords="offset points", color=BLUE, ha="right")
    axes.set(ylim=(-1.9, 1.6), xlim=(min(0, *pair.without, pair.found) - 0.03 * most, 1.06 * most), yticks=[0])
    axes.set_yticklabels([name])
    axes.tick_params(axis="y", length=0)
    axes.spines[["left"]].set_visible(False)
