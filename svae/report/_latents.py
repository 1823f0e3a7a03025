"""The latent in its two leading dimensions: every frame, coloured by state or by time; and the flow of a state."""

import numpy as np

from svae.experiments._figures import bare, new_figure
from svae.report._dynamics import Conditionals, Plane
from svae.report._material import Material
from svae.report._palette import ink, short_label

POINTS = 6000
PANELS = 30  # states that get a small one of their own


def latents(material: Material, plane: Plane):
    """A scatter of posterior means; beside it each state alone, where there are states."""
    posteriors = list(material.posteriors.values())
    x = (np.concatenate([p.mean for p in posteriors]) - plane.centre) @ plane.axes
    z = np.concatenate([p.state for p in posteriors])
    chosen = np.random.default_rng(0).permutation(len(x))[:POINTS]
    if material.pgm.discrete and len(material.states) > 1:
        return _by_state(material, plane, x[chosen], z[chosen])
    figure = new_figure(6.4, 5.2)
    axes = figure.subplots()
    time = np.concatenate([material.duration(np.arange(len(p.state))) for p in posteriors])
    drawn = axes.scatter(*x[chosen].T, s=_dot(chosen), c=time[chosen], cmap="viridis", lw=0, rasterized=True)
    words = f"time in the recording, {material.clock}"
    figure.colorbar(drawn, ax=axes, label=words, shrink=0.8).outline.set_visible(False)
    _label_axes(axes, plane)
    return figure


def _dot(points):
    return 22 if len(points) < 1500 else 12 if len(points) < 4000 else 7


def _by_state(material, plane, x, z):
    shown = sorted(material.states)[:PANELS]
    columns = 3 if len(shown) <= 9 else 4 if len(shown) <= 16 else 6
    rows = -(-len(shown) // columns)
    figure = new_figure(10.4, 4.8)
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.08))
    axes = left.subplots()
    axes.scatter(*x.T, s=_dot(x), c=material.colours[z], alpha=0.65, lw=0, rasterized=True)
    _label_axes(axes, plane)
    panels = right.subplots(rows, columns, squeeze=False).ravel()
    for k, panel in zip(shown, panels, strict=False):
        _alone(panel, material, x, z, k)
    for panel in panels[len(shown) :]:
        panel.set_axis_off()
    return figure


def _alone(axes, material, x, z, k):
    """One state over all others in grey."""
    colour = material.colours[k]
    axes.scatter(*x.T, s=2, color="#dfe2e6", lw=0, rasterized=True)
    axes.scatter(*x[z == k].T, s=5, color=colour, lw=0, rasterized=True)
    axes.set_title(short_label(k, material.names), fontsize=10, color=tuple(ink(colour)), pad=2)
    bare(axes)


def _label_axes(axes, plane: Plane) -> None:
    """Which directions they are, and how much of the variance they have."""
    axes.set_xlabel(f"latent direction 1 ({100 * plane.share[0]:.0f} % of the variance)")
    axes.set_ylabel(f"latent direction 2 ({100 * plane.share[1]:.0f} %)")


def portrait(axes, material: Material, found: Conditionals, plane: Plane, k: int, shown: list) -> None:
    """The flow A_k x + b_k - x in the plane through the mean of the state's frames, with bouts of that state."""
    colour = material.colours[k]
    posteriors = list(material.posteriors.values())
    everything = (np.concatenate([p.mean for p in posteriors]) - plane.centre) @ plane.axes
    low, high = np.percentile(everything, [1, 99], axis=0)
    margin = 0.12 * (high - low) + 1e-6
    low, high = low - margin, high + margin
    px, py = np.meshgrid(*(np.linspace(a, b, 14) for a, b in zip(low, high, strict=True)))
    flow = _flow(found, plane, k, _middle(posteriors, k), np.stack([px, py], -1))
    axes.streamplot(px, py, *np.moveaxis(flow, -1, 0), color="#a9aeb6", density=0.6, linewidth=0.8, arrowsize=0.8)
    for s in shown:
        path = (posteriors[s.recording].mean[s.first : s.last] - plane.centre) @ plane.axes
        axes.plot(*path.T, color=colour, lw=1.3, alpha=0.85)
        axes.plot(*path[0], "o", color=colour, ms=4, mec="white", mew=0.6, zorder=4)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    _label_axes(axes, plane)


def _middle(posteriors, k):
    mine = np.concatenate([p.mean[p.state == k] for p in posteriors])
    return mine.mean(0) if len(mine) else np.concatenate([p.mean for p in posteriors]).mean(0)


def _flow(found, plane, k, middle, p):
    """(..., 2): where a point of the plane goes in one frame."""
    x = middle + (p - (middle - plane.centre) @ plane.axes) @ plane.axes.T
    A, b = found.W[k, :, :-1], found.W[k, :, -1]
    added = 0 if found.beyond is None else found.beyond(x.reshape(-1, len(A))).reshape(x.shape)
    return (x @ A.T + b + added - x) @ plane.axes
