"""The course of a state in numbers: speed, turning and body length from the onset on, and how long its bouts last."""

import numpy as np

from svae.report import _motion
from svae.report._bouts import durations
from svae.report._motion import Course


def draw_course(axes, material, found, done: Course, k):
    """Median and middle half over bouts; dashed, the median of all frames of the run."""
    per = "s" if material.fps else "frame"
    sign = -1 if found.upwards else 1
    every = {name: np.concatenate([getattr(m, name) for m in found.moved]) for name in ("speed", "turning", "length")}
    panels = (
        ("speed", f"body lengths/{per}", done.speed / found.unit, every["speed"] / found.unit),
        ("turning (right above 0)", f"°/{per}", sign * np.degrees(done.turning), sign * np.degrees(every["turning"])),
        ("body length", "% of median", 100 * done.length / found.unit, 100 * every["length"] / found.unit),
    )
    for panel, (title, unit, values, others) in zip(axes[:3], panels, strict=True):
        _curve(panel, material, done.lags, values, others, material.colours[k])
        panel.set_title(title, fontsize=10)
        panel.set_ylabel(unit, fontsize=9)
    axes[0].set_ylim(bottom=0)
    _lengths(axes[3], material, k)


def _curve(axes, material, lags, values, others, colour):
    median, low, high = _motion.middle(values)
    time = material.duration(lags)
    axes.fill_between(time, low, high, color=colour, alpha=0.22, lw=0)
    axes.plot(time, median, color=colour, lw=2)
    if np.isfinite(others).any():
        axes.axhline(float(np.nanmedian(others)), color="#777777", lw=1, ls=(0, (4, 3)))
    axes.set_xlabel(f"{material.clock} from the onset", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.locator_params(nbins=4)


def _lengths(axes, material, k):
    """How long its bouts last."""
    mine = material.duration(durations(material.stretches, k))
    everyone = material.duration(np.array([s.frames for s in material.stretches]))
    edges = np.linspace(0, np.percentile(everyone, 98) * 1.05, 16)
    axes.hist(np.minimum(mine, edges[-1]), bins=edges, color=material.colours[k])
    axes.axvline(np.median(mine), color="#222222", lw=1.2)
    axes.set_xlabel(material.clock, fontsize=9)
    axes.set_title("bout lengths", fontsize=10)
    axes.set_ylabel("bouts", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.yaxis.get_major_locator().set_params(integer=True)
