"""One figure for each state: what it looks like from its onset on, and how long it lasts; another for its dynamics."""

import numpy as np

from svae.experiments._figures import bare, new_figure
from svae.report import _raster
from svae.report._bouts import Stretch, durations, examples
from svae.report._dynamics import Conditionals, Plane, spectrum
from svae.report._latents import portrait
from svae.report._look import Look, paint, picture_width
from svae.report._material import Material

ROWS = 3  # bouts that are shown
LEAD = 2  # frames of each before the onset
PIXELS = 120  # of a picture
SURROUND = 24  # bouts whose traces are averaged


def state_figure(material: Material, look: Look | None, k: int):
    """Left what was recorded, where it can still be read; right how long the bouts last."""
    widths = [*([8.2] if look else []), 1.7]
    figure = new_figure(sum(widths) + 0.5, 3.3 if look else 2.35)
    axes = list(figure.subplots(1, len(widths), width_ratios=widths, squeeze=False)[0])
    if look:
        _recorded(axes.pop(0), material, look, k, widths[0])
    _lengths(axes.pop(0), material, k)
    return figure


def dynamics_figure(material: Material, found: Conditionals, plane: Plane, k: int):
    """Spectrum and flow of one dynamics; the bouts that are drawn on the flow are of its state."""
    figure = new_figure(8.2, 3.6)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.3))
    _eigenvalues(left, material, found, k)
    several = bool(material.pgm.discrete)
    shown = examples(material.stretches, k, _sizes(material), 3, 0, 1) if several else []
    portrait(right, material, found, plane, k, shown)
    right.set_title("flow A x + b − x" if found.beyond is None else "flow A x + b + g(x) − x", fontsize=11)
    return figure


def _sizes(material):
    return [len(p.state) for p in material.posteriors.values()]


# --- what was recorded --------------------------------------------------------------------------------------------


def _recorded(axes, material, look, k, width_in):
    typical = int(np.median(durations(material.stretches, k)))
    if look.kind == "traces":
        _traces(axes, material, look, k, typical)
    else:
        _strips(axes, material, look, k, typical, width_in)


def _strips(axes, material, look, k, typical, width_in):
    """Frames some steps apart, bouts below each other; a square marks the frames in which the state is on."""
    event = tuple(material.seen.sequences[0].shape[1:])
    aspect = picture_width(look, event, PIXELS) / PIXELS
    columns = int(np.clip(round(width_in / (0.57 * aspect)), 6, 14))
    step = max(1, round(1.15 * typical / (columns - LEAD)))
    before, after = LEAD * step, (columns - LEAD) * step
    shown = examples(material.stretches, k, _sizes(material), ROWS, before, after)
    rows = [_strip(material, look, s, before, step, columns) for s in shown]
    axes.imshow(np.concatenate(rows), interpolation="antialiased", aspect="equal")
    width = rows[0].shape[1] / columns
    axes.axvline(LEAD * width - 0.5, color="white" if look.kind == "image" else "#888888", lw=1.2, ls=(0, (3, 2)))
    bare(axes)
    ticks = np.arange(0, columns, 2)
    frames = (ticks - LEAD) * step
    words = [f"{1000 * f / material.fps:.0f}" if material.fps else f"{f}" for f in frames]
    axes.set_xticks((ticks + 0.5) * width, [w.replace("-", "−") for w in words], fontsize=8)
    axes.tick_params(axis="x", length=0, pad=2)
    axes.set_xlabel("ms from onset" if material.fps else "frames from onset", fontsize=9)


def _strip(material: Material, look: Look, s: Stretch, before: int, step: int, columns: int):
    """One bout; frames outside the recording stay empty."""
    y, state = material.seen.sequences[s.recording], list(material.posteriors.values())[s.recording].state
    first = max(0, s.first - before)
    frames = np.asarray(y[first : s.first - before + columns * step])
    colour = _raster.bytes_of(material.colours[s.state])
    places = [s.first - before + i * step for i in range(columns)]
    inside = [0 <= t < len(y) for t in places]
    cells = [
        _cell(look, frames, t - first, colour, state[t] == s.state) if seen else None
        for t, seen in zip(places, inside, strict=True)
    ]
    empty = np.full_like(next(c for c in cells if c is not None), 255)
    return np.concatenate([empty if c is None else c for c in cells], 1)


def _cell(look, frames, t, colour, on):
    picture = paint(look, frames, t, PIXELS, colour if on else None)
    if on:
        picture[5:27, 5:27], picture[7:25, 7:25] = 255, colour
    _raster.frame(picture, 1, (255, 255, 255))
    return picture


def _traces(axes, material, look, k, typical):
    """Mean and spread of columns around all onsets, in units of their range, one above the other."""
    before, after = max(4, typical // 2), max(8, round(1.5 * typical))
    shown = examples(material.stretches, k, _sizes(material), SURROUND, before, after)
    pieces = np.stack([_around(material, look, s, before, after) for s in shown])
    time = material.duration(np.arange(-before, after))
    colour = material.colours[k]
    for row in range(pieces.shape[2]):
        _trace(axes, time, pieces[..., row] - row, colour)
    axes.axvline(0, color="#666666", lw=1, ls=(0, (3, 2)))
    axes.axvspan(0, material.duration(typical), color=colour, alpha=0.1, lw=0)
    axes.set(yticks=[-row + 0.4 for row in range(pieces.shape[2])], xlabel=f"{material.clock} from the onset")
    axes.set_yticklabels([f"column {c}" for c in look.columns], fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.spines[["left"]].set_visible(False)


def _trace(axes, time, values, colour):
    count = np.isfinite(values).sum(0)
    seen = count >= max(1, len(values) // 3)
    mean = np.where(seen, np.nansum(values, 0) / np.maximum(count, 1), np.nan)
    sd = np.sqrt(np.nansum((values - mean) ** 2, 0) / np.maximum(count, 1))
    axes.plot(time, values[:5].T, color=colour, lw=0.5, alpha=0.45)
    axes.fill_between(time, mean - sd, mean + sd, color=colour, alpha=0.2, lw=0)
    axes.plot(time, mean, color=colour, lw=1.8)


def _around(material, look, s, before, after):
    """(before + after, columns) of one bout in 0..0.8; NaN outside the recording."""
    y = material.seen.sequences[s.recording]
    out = np.full((before + after, len(look.columns)), np.nan)
    first, last = max(0, s.first - before), min(len(y), s.first + after)
    piece = np.asarray(y[first:last], float).reshape(last - first, -1)[:, look.columns]
    out[first - s.first + before : last - s.first + before] = 0.8 * (piece - look.low) / (look.high - look.low)
    return out


# --- numbers ------------------------------------------------------------------------------------------------------


def _lengths(axes, material, k):
    """How long its bouts last, among those of all states."""
    mine = material.duration(durations(material.stretches, k))
    everyone = material.duration(np.array([s.frames for s in material.stretches]))
    edges = np.linspace(0, np.percentile(everyone, 98) * 1.05, 16)
    axes.hist(np.minimum(mine, edges[-1]), bins=edges, color=material.colours[k])
    axes.axvline(np.median(mine), color="#222222", lw=1.2)
    axes.set_xlabel(material.clock, fontsize=9)
    axes.set_title("bout lengths", fontsize=10)
    axes.tick_params(labelsize=8)
    axes.yaxis.get_major_locator().set_params(integer=True)


def _eigenvalues(axes, material, found, k):
    """On the unit circle: inside fades, the angle turns."""
    values, circle = spectrum(found, k), np.exp(1j * np.linspace(0, 2 * np.pi, 200))
    axes.plot(circle.real, circle.imag, color="#b5b9c0", lw=1)
    axes.axhline(0, color="#dddddd", lw=0.8)
    axes.axvline(0, color="#dddddd", lw=0.8)
    axes.plot(values.real, values.imag, "o", color=material.colours[k], ms=6, mec="white", mew=0.7)
    reach = max(1.15, 1.08 * float(np.abs(values).max()))
    axes.set(aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach), xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    axes.set(xlabel="real part", ylabel="imaginary part")
    axes.set_title("eigenvalues of A, and the unit circle", fontsize=11)
