"""Whether to believe a fit: do restarts agree, and does it beat plain models of the same recordings."""

import math

import numpy as np

from svae.experiments._figures import BLUE, GREY, new_figure
from svae.report._again import why_not
from svae.report._material import Material
from svae.runs._null import in_words
from svae.runs._ranking import SURE, Place, ranking, words

AGREED = 0.6  # mean adjusted Rand index of restarts below which a segmentation is one of several


def restart_table(material: Material) -> np.ndarray | None:
    """Adjusted Rand index of every pair of restarts (R, R), NaN where unknown; None without pairs."""
    found = material.run.restarts() or {}
    table = found.get("ari")
    return np.array(table, float) if table and len(table) > 1 else None  # null becomes NaN


def restarts(material: Material, table: np.ndarray):
    """The table as a picture, and the held-out bound of each restart."""
    figure = new_figure(min(10.4, 5.4 + 0.45 * len(table)), min(5.0, 2.2 + 0.3 * len(table)))
    left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
    image = left.imshow(table, cmap="Blues", vmin=0, vmax=1)
    for (i, j), value in np.ndenumerate(table):
        words = f"{value:.2f}".replace("-", "−") if np.isfinite(value) else "?"
        left.text(j, i, words, ha="center", va="center", fontsize=9, color="white" if value > 0.6 else "#333333")
    left.set(xticks=range(len(table)), yticks=range(len(table)), xlabel="restart", ylabel="restart")
    left.set_title("Agreement (ARI)")
    left.tick_params(length=0)
    left.spines[:].set_visible(False)
    figure.colorbar(image, ax=left, shrink=0.8).outline.set_visible(False)
    _bounds(right, (material.run.restarts() or {}).get("held_out") or [])
    return figure


def _bounds(axes, held):
    values = np.array([math.nan if v is None else v for v in held], float)
    axes.plot(values, range(len(values)), "o", color=BLUE, ms=8)
    axes.set(yticks=range(len(values)), ylim=(len(values) - 0.5, -0.5), xlabel="held out, nats per frame")
    axes.set_title("How good each is")
    axes.margins(x=0.2)
    axes.locator_params(axis="x", nbins=4)


def compared(material: Material) -> dict[str, float]:
    """Held-out nats per frame of the run and of each baseline, the best first; nothing where none are known."""
    return {place.name: place.held_out for place in ranking(material.run)}


def nats(value: float) -> str:
    """A number of nats with as many decimals as models differ by, and a true minus sign."""
    return f"{value:.{2 if abs(value) < 100 else 1}f}".replace("-", "−")


def bars(places: list[Place]):
    """A dot for each model, the best on top: a bar would need a zero, and nats have none."""
    found = {place.name: place.held_out for place in places}
    figure = new_figure(8.2, 0.9 + 0.34 * len(found))
    axes = figure.subplots()
    low, high = min(found.values()), max(found.values())
    left = low - 0.12 * (high - low) - 1e-9
    for row, (_, value, against, ours) in enumerate(places):
        colour = BLUE if ours else GREY
        axes.plot([left, value], [row, row], color=colour, lw=1.5, alpha=0.6)
        axes.plot(value, row, "o", color=colour, ms=9)
        said = nats(value) + (f"   ({words(against)})" if against else "")
        axes.annotate(said, (value, row), (9, 0), textcoords="offset points", va="center", fontsize=10)
    axes.set_yticks(range(len(found)), list(found))
    axes.set(ylim=(len(found) - 0.5, -0.5), xlabel="held out, nats per frame (to the right is better)")
    axes.set_xlim(left, high + 0.4 * (high - low) + 1e-9)
    axes.tick_params(axis="y", length=0)
    axes.spines[["left"]].set_visible(False)
    return figure


def not_computed(material: Material) -> list[str]:
    """A sentence for each number about trust that is missing, with its reason and what to do."""
    said = []
    if restart_table(material) is None:
        once = material.config.restarts == 1
        why = "the fit had one start" if once else "the fit has not written how its restarts agree"
        said.append(f"Agreement between restarts is not known: {why}. `svae fit ... --restarts 3` measures it.")
    said += filter(None, [why_not(material)])
    if not ((null := material.run.null()).gain or null.dynamics):
        said += in_words(null)
    if not compared(material):
        said.append(f"A comparison with plain models is not there: {_why_no_baselines(material)}.")
    if material.quality is None:
        said.append("Missing entries by state are not known: the answers are older; `svae apply` writes them again.")
    elif not material.quality.rated.any():
        said.append("The confidence of a tracker is not known: the file of the recordings gives none.")
    return said


def _why_no_baselines(material: Material) -> str:
    if material.run.held_out() is None:
        return "the run has no held-out bound; hold out recordings, or fit for longer than until the first measurement"
    found = material.run.baselines()
    if found is None:
        return f"nobody has asked for it; `svae baselines {material.run.path}` computes it"
    return (found.get("note") or "none of them could be fitted to these recordings").rstrip(".")


def disagreement(material: Material) -> str:
    """A sentence where restarts find different states, else nothing."""
    agree = (material.run.restarts() or {}).get("mean_ari")
    if agree is None or agree >= AGREED:
        return ""
    return (
        f"Restarts disagree: their segmentations have a mean adjusted Rand index of {agree:.2f}. Another seed may "
        "find other states. Add recordings, or use fewer --states or another --target-duration."
    )


def beaten(material: Material) -> str:
    """A sentence where a plain model predicts held-out frames better, else nothing."""
    places = ranking(material.run)
    better = [p.name for p in places if not p.ours and p.held_out > places[_of_run(places)].held_out and _sure(p)]
    if not better:
        return ""
    them = " and ".join(filter(None, [", ".join(better[:-1]), better[-1]]))
    return (
        f"{them} {'reaches' if len(better) == 1 else 'reach'} a higher held-out likelihood than the bound of this "
        "model: its networks may need more training. Fit for more --steps, or with a larger --latent-dim."
    )


def _of_run(places: list[Place]) -> int:
    return [place.ours for place in places].index(True)


def _sure(place: Place) -> bool:
    """Whether the difference is more than chance, as far as that is known."""
    return place.against is None or place.against.size >= SURE
