"""Figures 5b and 6: an LDS SVAE of depth video, the images of its latent space, and how it forecasts the video.

MLPs with two layers of 200 units, 10 latents, 30 x 30 pixels, as in the paper; an MLP here stands beside a linear map
that begins at PCA. The last fifth of the video is kept for the predictions, for which the dynamics are fitted once more
to the latents (see `_forecast_dynamics`). Smaller than the paper's 288,000 frames.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from svae.config import Config
from svae.data import DataError, Recordings, cut, preprocessed
from svae.experiments import _predictions, _strips
from svae.experiments._figures import BLUE, GREY, ORANGE, new_figure, save_figure, save_numbers, style
from svae.experiments._forecast_dynamics import Foresight, with_foresight
from svae.experiments._videos import SIZE, network, new_model, recorded
from svae.fitting.loop import fit
from svae.model import SVAE
from svae.queries import forecast, infer, reconstruct
from svae.store import save


class Settings(NamedTuple):
    """Chosen to fit in a few minutes on 2 cores."""

    sequences: int = 40  # of the synthetic mouse
    length: int = 250
    latent_dim: int = 10
    warmup_steps: int = 100
    steps: int = 600
    batch_size: int = 8
    window: int = 48
    overlap: int = 8
    context: int = 128  # frames before a prediction that it sees
    horizon: int = 30
    places: int = 100  # where predictions begin
    grid: int = 9  # images on a side of Figure 5b
    reach: float = 2.0  # standard deviations of the latents to its edge


SETTINGS = Settings()
SEEN, EVERY, PANELS = 5, 2, 3  # shown frames before the line, frames from one to the next, examples
FUTURES = 100  # whose mean is shown: where they differ it is no longer the picture of one animal


def run(
    out: Path,
    *,
    data: str | None = None,
    net: str = "mlp",
    seed: int,
    progress: Callable,
    settings: Settings = SETTINGS,
) -> dict:
    """Fit, predict, write the model, numbers.json, manifold, predictions and horizons (png, pdf)."""
    s, out, started, cpu = settings, Path(out), time.monotonic(), time.process_time()
    video = recorded(data, sequences=s.sequences, length=s.length, seed=seed)
    train, tested = _predictions.split_last_fifth(video.raw)
    chosen = _predictions.places(video.raw, tested, s.context, s.horizon, s.places)
    if not chosen:
        raise DataError(f"The part kept for tests is shorter than {s.context + s.horizon} frames; give longer video.")
    for step in progress(fit(new_model(train, config(s, net, seed)), train), "mouse"):
        fitted = step.model
    sighted = with_foresight(fitted, train, s.horizon)
    key_errors, key_grid, key_draw = jax.random.split(jax.random.key(seed), 3)
    errors = _predictions.errors(sighted, train, video.raw, chosen, s.context, s.horizon, key_errors)
    save(sighted.model, out / "model")
    scale = _strips.find_scale(preprocessed(train, fitted.preprocess))
    with style():
        save_figure(manifold(fitted, train, s, scale, key_grid), out, "manifold")
        examples = chosen[:: max(1, len(chosen) // PANELS)][:PANELS]
        save_figure(predictions(fitted, sighted, video.raw, examples, s, scale, key_draw), out, "predictions")
        save_figure(horizons(errors, video.source), out, "horizons")
    clocks = {"seconds": round(time.monotonic() - started, 1), "cpu_seconds": round(time.process_time() - cpu, 1)}
    return save_numbers(numbers(errors, fitted, train, video.source, net, s) | {"seed": seed} | clocks, out)


def config(s: Settings, net: str, seed: int) -> Config:
    """The configuration of the model and of its fit."""
    options = {name: getattr(s, name) for name in ("latent_dim", "warmup_steps", "steps", "batch_size", "window")}
    fixed = {"model": "lds", "overlap": s.overlap, "size": SIZE, "held_out": 0.0, "seed": seed}
    return Config.make(options | fixed | network(net))


def numbers(errors: dict, model: SVAE, train: Recordings, source: str, net: str, s: Settings) -> dict:
    first, last = (min(errors, key=lambda name, h=h: errors[name][h]) for h in (0, -1))
    return {
        "rmse": _predictions.summary(errors),
        "best_one_frame_ahead": first,
        f"best_{s.horizon}_frames_ahead": last,
        "data": source,
        "training_frames": train.frames,
        "network": net,
        "shape": list(model.shape),
        "settings": s._asdict(),
        "rmse_by_horizon": errors,
    }


# --- Figure 5b ----------------------------------------------------------------------------------------------------


def manifold(model: SVAE, train: Recordings, s: Settings, scale: _strips.Scale, key):
    """Images on a regular grid in a random plane of the latent space, through the middle of the latents."""
    images = model.scaling.invert(np.asarray(model.observe.mean(jnp.asarray(plane(model, train, s, key)))))
    images = _strips.cropped(images, scale)
    picture = _strips.grid(images.reshape(s.grid, s.grid, *images.shape[1:]))
    fig = new_figure(6.0, 6.0 * picture.shape[0] / picture.shape[1] + 0.4)
    _strips.show(fig.subplots(), picture, scale)
    fig.axes[0].set_title("Images on a plane of the latent space")
    return fig


def plane(model: SVAE, train: Recordings, s: Settings, key) -> np.ndarray:
    """Latents (grid², D): mean + L (a u + b v), L L' the covariance of the latents, u and v random and orthogonal."""
    pieces = [cut(y, 0, min(len(y), 500)) for y in train.sequences[:20]]
    x = np.concatenate(infer(model, train._replace(sequences=tuple(pieces), names=train.names[:20], times=())).mean)
    root = np.linalg.cholesky(np.cov(x.T) + 1e-6 * np.eye(x.shape[1]))
    axes, _ = np.linalg.qr(np.asarray(jax.random.normal(key, (x.shape[1], min(2, x.shape[1])))))
    steps = np.linspace(-s.reach, s.reach, s.grid)
    points = np.stack(np.meshgrid(steps, steps), -1).reshape(-1, 2)[:, : axes.shape[1]]
    return (x.mean(0) + points @ (root @ axes).T).astype(np.float32)


# --- Figure 6 -----------------------------------------------------------------------------------------------------


def predictions(fitted: SVAE, sighted: Foresight, raw: Recordings, examples: list, s: Settings, scale, key):
    """For each example the real frames, two futures of the fitted model, and the mean of many with foresight.

    They see what is left of the line.
    """
    past = [cut(raw.sequences[i], c - s.context, c) for i, c in examples]
    seen = Recordings(tuple(past), tuple(map(str, range(len(past)))))
    drawn, ahead = (
        forecast(m, seen, horizon=s.horizon, samples=FUTURES, key=key).means for m in (fitted, sighted.model)
    )
    before = reconstruct(fitted, seen).frames
    real = preprocessed(raw, fitted.preprocess)
    pictures = []
    for (i, c), back, (one, another, *_), futures in zip(examples, before, drawn, ahead, strict=True):
        first = c - SEEN * EVERY
        rows = [np.asarray(real.sequences[i][first : c + s.horizon])]
        mean = sighted.mean(np.asarray(real.sequences[i][c - s.context : c]), futures)
        rows += [np.concatenate([back[first - c :], future]) for future in (one, another, mean)]
        rows = [_strips.cropped(y, scale)[::EVERY] for y in rows]
        pictures.append(_strips.stacked([_strips.beside(row) for row in rows]))
    high, wide = pictures[0].shape
    fig = new_figure(11.0, len(pictures) * (9.9 * high / wide + 0.15) + 0.4)
    for axes, picture in zip(fig.subplots(len(pictures), 1, squeeze=False)[:, 0], pictures, strict=True):
        _strips.show(axes, picture, scale)
        axes.axvline(SEEN * (rows[0].shape[2] + _strips.GAP) - 1, color=ORANGE, lw=2.5)
        label(axes, rows[0].shape[1] + _strips.GAP)
    fig.axes[0].set_title(f"Predictions of unseen frames, one of every {EVERY}", loc="left")
    return fig


def label(axes, height: int) -> None:
    words = ["real", "one future", "another", f"mean of {FUTURES}"]
    axes.set_yticks((0.5 + np.arange(len(words))) * height, words)
    axes.tick_params(length=0)


def horizons(errors: dict, source: str):
    """RMSE by horizon."""
    fig = new_figure(6.4, 4.0)
    axes = fig.subplots()
    names = {"svae": "LDS SVAE", "repeat": "repeat the last frame"}
    for (name, values), colour in zip(errors.items(), (BLUE, GREY, ORANGE), strict=True):
        axes.plot(1 + np.arange(len(values)), values, color=colour, label=names.get(name, name.upper()))
    axes.set(xlabel="frames ahead", ylabel="RMSE of unseen frames", xlim=(1, None), ylim=(0, None), title=source)
    axes.legend(loc="lower right")
    return fig
