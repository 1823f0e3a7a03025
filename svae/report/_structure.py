"""How states are related: which follows which, and which resemble each other."""

from typing import NamedTuple

import numpy as np

from svae.experiments._figures import GREY, new_figure
from svae.report._bouts import followed
from svae.report._dynamics import Conditionals, divergences
from svae.report._material import Material
from svae.report._palette import ink, short_label

FAINT = 0.05  # transitions rarer than this are not drawn in the graph
WRITTEN = 14  # states up to which the matrix has its numbers written in


class Similarity(NamedTuple):
    """Agglomerative clustering of the states in use."""

    linkage: np.ndarray  # as scipy has it
    order: list[int]  # states, neighbours resemble each other


def similarity(material: Material, found: Conditionals) -> Similarity:
    """Average linkage of the square root of the symmetrised divergence."""
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    distance = np.sqrt(divergences(material, found, material.states))
    np.fill_diagonal(distance, 0)
    condensed = squareform(distance, checks=False)
    tree = optimal_leaf_ordering(linkage(condensed, "average"), condensed)
    return Similarity(tree, [material.states[i] for i in leaves_list(tree)])


def dendrogram(material: Material, found: Similarity):
    """States that join low resemble each other."""
    from scipy.cluster import hierarchy

    colours = material.colours
    drawn = hierarchy.dendrogram(found.linkage, no_plot=True)
    figure = new_figure(min(10.4, max(4.5, 0.6 * len(found.order) + 1.6)), 3.2)
    axes = figure.subplots()
    for x, y in zip(drawn["icoord"], drawn["dcoord"], strict=True):
        axes.plot(x, y, color="#444444", lw=1.4, solid_joinstyle="round")
    places = 5.0 + 10.0 * np.arange(len(found.order))
    axes.scatter(places, np.zeros(len(places)), s=130, color=colours[found.order], zorder=3, clip_on=False)
    axes.set_xticks(places, [short_label(k, material.names) for k in found.order])
    axes.tick_params(axis="x", length=0, pad=8, rotation=0 if len(found.order) <= 14 else 60)
    axes.spines[["bottom"]].set_visible(False)
    axes.set(ylabel="distance, √nats per frame", ylim=(0, None), xlim=(0, 10.0 * len(places)))
    return figure


def transitions(material: Material, order: list[int]):
    """The matrix of what follows what, and the same as a graph."""
    rows = followed(material.stretches, len(material.usage))[np.ix_(order, order)]
    figure = new_figure(10.4, 4.7)
    left, right = figure.subplots(1, 2, width_ratios=(1.12, 1))
    _matrix(figure, left, rows, material, order)
    _graph(right, rows, material, order)
    return figure


def _matrix(figure, axes, rows, material, order):
    image = axes.imshow(100 * rows, cmap="Greys", vmin=0, vmax=100 * max(0.3, rows.max()))
    labels = [short_label(k, material.names) for k in order]
    size = 10 if len(order) <= 16 else 7
    axes.set_xticks(range(len(order)), labels, rotation=90 if max(map(len, labels)) > 2 else 0, fontsize=size)
    axes.set_yticks(range(len(order)), labels, fontsize=size)
    for tick, k in [*zip(axes.get_xticklabels(), order, strict=True), *zip(axes.get_yticklabels(), order, strict=True)]:
        tick.set(color=ink(material.colours)[k], fontweight="bold")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if len(order) <= WRITTEN:
        _write_numbers(axes, rows)
    axes.set(title="What follows what", xlabel="next state", ylabel="state")
    figure.colorbar(image, ax=axes, shrink=0.7, label="% of the bouts", pad=0.02).outline.set_visible(False)


def _write_numbers(axes, rows):
    middle = 0.5 * max(0.3, rows.max())
    for (i, j), share in np.ndenumerate(rows):
        if share >= 0.005:
            colour = "white" if share > middle else "#333333"
            axes.text(j, i, f"{100 * share:.0f}", ha="center", va="center", fontsize=8, color=colour)


def _graph(axes, rows, material, order):
    """States on a circle, area by usage; an arrow is as wide as its transition is frequent."""
    angle = np.pi / 2 - 2 * np.pi * np.arange(len(order)) / len(order)
    places = np.stack([np.cos(angle), np.sin(angle)], -1)
    radius = np.clip(0.62 * np.sqrt(material.usage[order]), 0.07, 1.7 / max(len(order), 4) + 0.02)
    colours = material.colours[order]
    for (i, j), share in np.ndenumerate(rows):
        if i != j and share >= FAINT:
            _arrow(axes, places[i], places[j], radius[i], radius[j], float(share), colours[i])
    for place, r, colour, k in zip(places, radius, colours, order, strict=True):
        _node(axes, place, r, colour, short_label(k, material.names))
    top = max(1.4, 1.26 + float(radius[0]))  # the first stands above all
    axes.set(xlim=(-1.5, 1.5), ylim=(-1.4, top), aspect="equal", title="The same as a graph")
    axes.set_axis_off()


def _arrow(axes, a, b, ra, rb, share, colour):
    from matplotlib.patches import FancyArrowPatch

    d = (b - a) / np.linalg.norm(b - a)
    start, end = a + d * ra, b - d * rb
    width, head = 0.4 + 6 * share, 6 + 16 * share
    style = {"arrowstyle": f"-|>,head_length={head / 12},head_width={head / 24}", "connectionstyle": "arc3,rad=0.16"}
    alpha = float(np.clip(0.2 + 1.6 * share, 0.2, 0.9))
    shape = FancyArrowPatch(tuple(start), tuple(end), mutation_scale=8, lw=width, color=colour, alpha=alpha, **style)
    axes.add_patch(shape)


def _node(axes, place, radius, colour, words):
    from matplotlib.patches import Circle

    axes.add_patch(Circle(tuple(place), radius, facecolor=colour, edgecolor="white", lw=1.5, zorder=3))
    out = place * (1 + (radius + 0.11) / np.linalg.norm(place))
    side = "left" if place[0] > 0.2 else "right" if place[0] < -0.2 else "center"
    axes.text(*out, words, ha=side if len(words) > 2 else "center", va="center", fontsize=10, color="#222222")


def usage_bars(material: Material):
    """Share of frames of every state in use, and the median length of its bouts."""
    order, colours = material.states, material.colours
    figure = new_figure(min(10.4, 3.0 + 0.5 * len(order)), 2.4)
    axes = figure.subplots()
    axes.bar(range(len(order)), 100 * material.usage[order], color=colours[order], width=0.72)
    axes.set_xticks(range(len(order)), [short_label(k, material.names) for k in order])
    axes.tick_params(axis="x", length=0, rotation=0 if len(order) <= 14 else 60)
    axes.axhline(100 / max(len(order), 1), color=GREY, lw=1, ls=(0, (4, 3)))
    axes.set(ylabel="% of frames")
    return figure
