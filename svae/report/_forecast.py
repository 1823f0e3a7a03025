"""How recordings go on, as the model predicts it from all but their ends, against how they did."""

from typing import NamedTuple

import jax
import numpy as np

from svae.data import split, stretches
from svae.experiments._figures import BLUE, GREY, ORANGE, bare, new_figure
from svae.queries import forecast
from svae.report import _raster
from svae.report._look import Look, paint
from svae.report._material import Material

HORIZON, SHORTEST = 30, 4  # frames predicted; a recording has at least three times as many
RECORDINGS, STRETCHES, DRAWS = 6, 12, 100  # recordings at most, stretches in all, futures of each
CONTEXT = 120  # frames seen before each
LEVELS = np.linspace(0.1, 0.9, 9)  # central intervals whose coverage is counted
INKS = (90, 94, 102), (33, 102, 172)  # of true and of predicted points
NUMBERS = 500  # entries of a frame that count for the coverage
LARGEST = 2**26  # numbers that all draws together may be


class Predicted(NamedTuple):
    """n stretches of H frames, the first at the end of a recording, in the units of the data."""

    names: tuple[str, ...]
    recordings: int
    held_out: bool  # whether the fit never saw these recordings
    before: np.ndarray  # (n, *event) the last frame that was seen
    truth: np.ndarray  # (n, H, *event)
    draws: np.ndarray  # (n, S, H, *event)
    means: np.ndarray  # (n, S, H, *event) without observation noise


def predict(material: Material, horizon: int = HORIZON) -> Predicted | None:
    """Up to `horizon` frames; None where every recording is too short."""
    most = max(1, min(STRETCHES, LARGEST // (DRAWS * horizon * max(1, int(np.prod(material.model.shape))))))
    chosen, held_out = _chosen(material, min(RECORDINGS, most))
    if not chosen:
        return None
    cuts, context, H = _cuts([len(material.raw.sequences[i]) for i in chosen], most, horizon)
    places = [(i, c) for i, ends in zip(chosen, cuts, strict=True) for c in ends]
    past = stretches(material.raw, [(i, c - context, c) for i, c in places])
    names = tuple(f"{material.raw.names[i]} from frame {c}" for i, c in places)
    key, inputs = jax.random.key(0), inputs_of(material, places, H)
    found = forecast(material.model, past._replace(names=names), horizon=H, samples=DRAWS, key=key, inputs=inputs)
    later = np.stack([np.asarray(material.seen.sequences[i][c - 1 : c + H]) for i, c in places])
    draws, means = np.stack(found.samples), np.stack(found.means)
    return Predicted(names, len(chosen), held_out, later[:, 0], later[:, 1:], draws, means)


def inputs_of(material: Material, places: list[tuple[int, int]], horizon: int) -> list[np.ndarray] | None:
    """The inputs of the frames from (recording, frame) on; None for a model that takes none."""
    if not material.pgm.inputs:
        return None
    return [one.inputs for one in stretches(material.raw, [(i, c, c + horizon) for i, c in places]).beside]


def _cuts(lengths: list[int], most: int, horizon: int) -> tuple[list[list[int]], int, int]:
    """Frames of each recording at which forecasts begin, its end first; frames seen before each, and predicted."""
    H = min(horizon, min(lengths) // 3)
    context = min(CONTEXT, min(lengths) - H)
    each = max(1, most // len(lengths))
    return [np.unique(np.linspace(n - H, context, each).astype(int))[::-1].tolist() for n in lengths], context, H


def _chosen(material, most: int) -> tuple[list[int], bool]:
    """Recordings long enough: held-out ones where there are any."""
    lengths, config = [len(y) for y in material.raw.sequences], material.config
    long = [i for i, n in enumerate(lengths) if n >= 3 * SHORTEST]
    if len(lengths) < 3 or config.held_out == 0:
        return long[:most], False
    held = split(material.raw, config.held_out, config.split_seed).test.names
    if len(held) == len(lengths):  # the end of each
        return long[:most], False
    unseen = [i for i in long if material.raw.names[i] in held]
    return (unseen or long)[:most], bool(unseen)


def errors(found: Predicted) -> tuple[np.ndarray, np.ndarray]:
    """RMSE by horizon (H,) of the predictive mean, and of repeating the last frame."""
    mean = found.means.mean(1)
    axes = (0, *range(2, found.truth.ndim))
    return _rmse(mean - found.truth, axes), _rmse(found.before[:, None] - found.truth, axes)


def _rmse(gap, axes):
    """Over what is observed; NaN where nothing is."""
    count = np.isfinite(gap).sum(axes)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.sqrt(np.nansum(gap**2, axes) / count)


def coverage(found: Predicted) -> np.ndarray:
    """Share of the truth inside the central interval of each of LEVELS."""
    n, S, H = found.draws.shape[:3]
    every = max(1, found.truth[0, 0].size // NUMBERS)
    draws = np.sort(found.draws.reshape(n, S, H, -1)[..., ::every], axis=1)
    truth = found.truth.reshape(n, H, -1)[..., ::every]
    rank = (draws < truth[:, None]).sum(1) / S
    seen = np.isfinite(truth)
    return np.array([np.mean(np.abs(rank[seen] - 0.5) <= level / 2) for level in LEVELS])


def forecasts(material: Material, found: Predicted, look: Look):
    """The first stretch predicted; error by horizon and calibration over all."""
    figure = new_figure(10.4, 5.4)
    grid = figure.add_gridspec(2, 2, height_ratios=(1.15, 1), width_ratios=(1.4, 1))
    if look.kind == "traces":
        _bands(figure.add_subplot(grid[0, :]), material, found, look)
    else:
        _pictures(figure.add_subplot(grid[0, :]), material, found, look)
    _error(figure.add_subplot(grid[1, 0]), material, found)
    _calibration(figure.add_subplot(grid[1, 1]), found)
    return figure


def _pictures(axes, material, found, look):
    """Truth above the predictive mean above one draw."""
    H = found.truth.shape[1]
    frames = np.unique(np.linspace(0, H - 1, 11).round().astype(int))
    rows = [(found.truth[0], INKS[0]), (found.means[0].mean(0), INKS[1]), (found.means[0, 0], INKS[1])]
    size = 120
    pictures = [np.concatenate([_framed(paint(look, y, int(t), size, ink)) for t in frames], 1) for y, ink in rows]
    axes.imshow(np.concatenate(pictures), aspect="equal")
    bare(axes)
    width = pictures[0].shape[1] / len(frames)
    axes.set_yticks([(i + 0.5) * size for i in range(3)], ["truth", "mean forecast", "one forecast"])
    axes.set_xticks([(i + 0.5) * width for i in range(len(frames))], [_when(material, int(t) + 1) for t in frames])
    axes.tick_params(length=0)
    axes.set_xlabel("milliseconds ahead" if material.fps else "frames ahead")
    axes.set_title(f"{found.names[0]} on, predicted from what went before", fontsize=11)


def _framed(picture):
    _raster.frame(picture, 1, (255, 255, 255))
    return picture


def _when(material, frames):
    return f"{1000 * frames / material.fps:.0f}" if material.fps else f"{frames}"


def _bands(axes, material, found, look):
    """Each shown column with the 50 % and 90 % intervals of the draws."""
    time = material.duration(np.arange(1, found.truth.shape[1] + 1))
    for row, c in enumerate(look.columns):
        scale = lambda y, row=row: 0.8 * (y - look.low[row]) / (look.high[row] - look.low[row]) - row  # noqa: E731
        draws = scale(found.draws[0].reshape(*found.draws.shape[1:3], -1)[..., c])
        for low, high, alpha in ((5, 95, 0.18), (25, 75, 0.3)):
            axes.fill_between(time, *np.percentile(draws, [low, high], axis=0), color=BLUE, alpha=alpha, lw=0)
        axes.plot(time, draws.mean(0), color=BLUE, lw=1.4)
        axes.plot(time, scale(found.truth[0].reshape(len(time), -1)[:, c]), color="#222222", lw=1.4)
    axes.set_yticks([0.4 - row for row in range(len(look.columns))], [f"column {c}" for c in look.columns])
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel=f"{material.clock} ahead", title=f"{found.names[0]}: truth (black), forecast with 50 % and 90 %")


def _error(axes, material, found):
    ours, repeated = errors(found)
    time = material.duration(np.arange(1, len(ours) + 1))
    axes.plot(time, repeated, color=GREY, label="repeat the last frame")
    axes.plot(time, ours, color=BLUE, label="mean forecast")
    axes.set(xlabel=f"{material.clock} ahead", ylabel="error, unit of the data", ylim=(0, None))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)


def _calibration(axes, found):
    axes.plot([0, 100], [0, 100], color="#bbbbbb", lw=1)
    axes.plot(100 * LEVELS, 100 * coverage(found), "o-", color=ORANGE, ms=5)
    axes.set(xlabel="interval, %", ylabel="truth inside, %", xlim=(0, 100), ylim=(0, 100), aspect="equal")
    axes.text(4, 96, "too wide", va="top", fontsize=9, color=GREY)
    axes.text(96, 4, "too narrow", ha="right", fontsize=9, color=GREY)
    axes.set_title("Calibration", fontsize=11)
