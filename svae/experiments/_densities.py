"""Pictures of densities in the plane, one colour for each component of a mixture."""

from typing import NamedTuple

import numpy as np

from svae.experiments._figures import ARMS, bare, new_figure

EXTENT = 22.0  # half the side of a picture, in the units of the data
CELLS, BLUR = 160, 1.5  # cells of a side, and the width in cells that smooths their counts


class Panel(NamedTuple):
    """One picture: density (K, G, G) of each component on the grid, the component (N,) of each training point."""

    title: str
    density: np.ndarray | None
    components: np.ndarray


def densities(samples: np.ndarray, components: np.ndarray, K: int) -> np.ndarray:
    """Smoothed histograms (K, CELLS, CELLS) of samples (N, 2), rows = the second coordinate."""
    edges = np.linspace(-EXTENT, EXTENT, CELLS + 1)
    counts = [np.histogram2d(*samples[components == k].T[::-1], bins=(edges, edges))[0] for k in range(K)]
    offsets = np.arange(-6, 7)
    kernel = np.exp(-(offsets**2) / (2 * BLUR**2))
    smooth = lambda row: np.convolve(row, kernel / kernel.sum(), "same")  # noqa: E731
    return np.stack([np.apply_along_axis(smooth, 0, np.apply_along_axis(smooth, 1, c)) for c in counts])


def painted(density: np.ndarray, colours: np.ndarray) -> np.ndarray:
    """RGB (G, G, 3): hue from the components' shares, depth from the total density."""
    total = density.sum(0)
    depth = np.clip(total / np.quantile(total[total > 0], 0.98), 0, 1) ** 0.5
    hue = np.tensordot(density, colours, (0, 0)) / np.maximum(total, 1e-12)[..., None]
    return 1 - 0.75 * depth[..., None] * (1 - hue)


def figure(y: np.ndarray, panels: list[Panel]):
    """One picture per panel; a component has one colour in density and points."""
    from matplotlib.colors import to_rgb

    fig = new_figure(3.0 * len(panels), 3.3)
    colours = np.array([to_rgb(c) for c in ARMS])
    for axes, panel in zip(fig.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        if panel.density is None:
            axes.scatter(*y.T, s=5, color="#222222", linewidths=0)
        else:
            K = len(panel.density)
            chosen = colours[np.arange(K) % len(colours)] if K > 1 else np.array([to_rgb("#555555")])
            box = (-EXTENT, EXTENT, -EXTENT, EXTENT)
            axes.imshow(painted(panel.density, chosen), origin="lower", extent=box, interpolation="bilinear")
            axes.scatter(*y.T, s=3.5, c=0.7 * chosen[panel.components], linewidths=0)
        axes.set(title=panel.title, xlim=(-EXTENT, EXTENT), ylim=(-EXTENT, EXTENT), aspect="equal")
        bare(axes)
    return fig
