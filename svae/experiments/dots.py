"""Figure 4: an LDS SVAE learns how a dot bounces, early and late in its fit, and forecasts it with honest intervals.

One frame shows where the dot is, not where it goes, and its path is a triangle wave: the model has to find latents in
which that motion is linear, and the image of each. Data are the paper's: 80 sequences of 50 frames of 20 pixels.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from svae.data import synthetic
from svae.experiments._figures import ARMS, BLUE, GREY, ORANGE, new_figure, save_figure, save_numbers, style
from svae.experiments._forecasts import Accuracy, accuracy, baselines
from svae.fitting.loop import Step, fit
from svae.model import SVAE, make
from svae.queries import forecast, infer, reconstruct, score

NOISE_SD = 0.1
NAMES = {"repeat": "repeat the last frame"}


@dataclass(frozen=True)
class Settings:
    sequences: int = 80
    width: int = 20
    prefix: int = 25  # frames that a forecast sees
    horizon: int = 25  # frames that it predicts
    test_sequences: int = 200
    draws: int = 200
    hidden: tuple[int, ...] = (50,)
    latent_dim: int = 8
    few: int = 200  # steps before the left column of the figure
    # of the fit; the paper updates with one sequence, where 1100 steps leave intervals a little too wide
    options: tuple[tuple[str, object], ...] = (
        ("network", "mlp"),
        ("precision", "full"),
        ("batch_size", 8),
        ("warmup_steps", 100),  # of a VAE, before the steps that are counted
        ("steps", 1100),
        ("natural_step", 0.1),
        ("learning_rate", 1e-2),
    )


SETTINGS = Settings()


class Stage(NamedTuple):
    """The model after some steps, with the seconds that they took."""

    steps: int
    model: SVAE
    seconds: float


def run(out: Path, *, seed: int, progress: Callable) -> dict:
    """Fit, forecast, write dots.png, dots.pdf, horizons.png, horizons.pdf and numbers.json; returns the numbers."""
    s = SETTINGS
    started = time.monotonic()
    train, test = sample(s, s.sequences, seed), sample(s, s.test_sequences, seed + 1_000_003)
    stages = fit_in_stages(train, s, seed, progress)
    last = stages[-1].model
    key_accuracy, key_score, key_figure = jax.random.split(jax.random.key(seed), 3)
    found = accuracy(last, test, prefix=s.prefix, draws=s.draws, key=key_accuracy)
    others = baselines(train.y, test, prefix=s.prefix)
    bound = score(last, list(test.y), key=key_score)
    with style():
        save_figure(stages_figure(stages, test, s, key_figure), Path(out), "dots")
        save_figure(horizons_figure(found, others), Path(out), "horizons")
    seconds = time.monotonic() - started
    return save_numbers(numbers(found, others, bound, stages, s, seed, seconds), Path(out))


def sample(s: Settings, sequences: int, seed: int) -> synthetic.Dots:
    return synthetic.dots(sequences=sequences, length=s.prefix + s.horizon, width=s.width, noise_sd=NOISE_SD, seed=seed)


# --- the fit ------------------------------------------------------------------------------------------------------


def first_model(s: Settings, seed: int) -> SVAE:
    """The model before its fit."""
    options = {"model": "lds", "latent_dim": s.latent_dim, "hidden": s.hidden, "held_out": 0.0, "seed": seed}
    return make((s.width,), **(options | dict(s.options)))


def fit_in_stages(train: synthetic.Dots, s: Settings, seed: int, progress: Callable) -> list[Stage]:
    """The models after few and after all steps of one fit."""
    started = time.monotonic()
    stages = []
    last: Step | None = None
    for step in progress(fit(first_model(s, seed), list(train.y)), "dots"):
        last = step
        if step.phase == "fit" and step.step == s.few + step.model.config.warmup_steps:
            stages.append(Stage(s.few, step.model, time.monotonic() - started))
    config = last.model.config
    return [*stages, Stage(config.steps, last.model, time.monotonic() - started)]


# --- results ------------------------------------------------------------------------------------------------------


def numbers(found: Accuracy, others: dict, bound, stages: list[Stage], s: Settings, seed: int, seconds: float) -> dict:
    must_beat = np.minimum(others["repeat"], others["VAR(2)"])
    overall = lambda by_horizon: float(np.sqrt(np.mean(by_horizon**2)))  # noqa: E731
    ceiling = -0.5 * np.log(2 * np.pi * np.e * NOISE_SD**2)
    return {
        "rmse": {"svae": overall(found.rmse), **{name: overall(r) for name, r in others.items()}},
        "below_repeat_and_var2_at_every_horizon": bool(np.all(found.rmse < must_beat)),
        "worst_ratio_to_the_better_of_them": float(np.max(found.rmse / must_beat)),
        "coverage_90_bright": found.coverage_bright,
        "coverage_90_dark": found.coverage_dark,
        "held_out_bound_per_pixel": bound.bound / s.width,
        "held_out_bound_standard_error": bound.standard_error / s.width,
        "ceiling_per_pixel": float(ceiling),
        "rmse_by_horizon": {"svae": found.rmse, **others},
        "training": {"sequences": s.sequences, "frames": s.prefix + s.horizon, "test_sequences": s.test_sequences}
        | dict(s.options),
        "steps_of_stages": [stage.steps for stage in stages],
        "seconds_of_fit": round(stages[-1].seconds, 1),
        "seconds": round(seconds, 1),
        "seed": seed,
    }


def stages_figure(stages: list[Stage], test: synthetic.Dots, s: Settings, key, *, example: int = 0):
    """Data, noiseless prediction and latent states of one new sequence, a column for each stage."""
    fig = new_figure(5.2 * len(stages), 5.6)
    rows = fig.subplots(3, len(stages), sharex=True, sharey="row", squeeze=False, height_ratios=(1, 1, 1.3))
    for column, stage, now in zip(rows.T, stages, jax.random.split(key, len(stages)), strict=True):
        mean, latents, draws = predict(stage.model, test.y[example], s, now)
        show(column[0], test.y[example])
        show(column[1], mean)
        for d, colour in zip(range(latents.shape[1]), np.resize(ARMS, latents.shape[1]), strict=True):
            column[2].plot(s.prefix + np.arange(s.horizon), draws[..., d].T, color=colour, lw=0.5, alpha=0.35)
            column[2].plot(latents[:, d], color=colour, lw=1.6)
        for axes in column:
            axes.axvline(s.prefix - 0.5, color=ORANGE, lw=2)
        column[0].set_title(f"after {stage.steps} training steps")
        column[2].set_xlabel("frame")
    for axes, name in zip(rows[:, 0], ("data", "noiseless\nprediction", "latent states"), strict=True):
        axes.set_ylabel(name)
    rows[2, 0].set_xlim(-0.5, s.prefix + s.horizon - 0.5)
    return fig


def predict(model: SVAE, y: Float[np.ndarray, "T W"], s: Settings, key, *, shown: int = 8) -> tuple[np.ndarray, ...]:
    """Noiseless frames (T, W) and latents (T, D) given the prefix only, and some draws (n, H, D) of what follows."""
    prefix = [y[: s.prefix]]
    seen, past = reconstruct(model, prefix).frames[0], infer(model, prefix).mean[0]
    ahead = forecast(model, prefix, horizon=s.horizon, samples=s.draws, key=key)
    mean = np.concatenate([seen, ahead.means[0].mean(0)])
    return mean, np.concatenate([past, ahead.latents[0].mean(0)]), ahead.latents[0][:shown]


def show(axes, frames: Float[np.ndarray, "T W"]) -> None:
    """A sequence as a picture, time to the right."""
    axes.imshow(frames.T, aspect="auto", origin="lower", vmin=-0.1, vmax=1.1, interpolation="nearest")
    axes.set_yticks([])


def horizons_figure(found: Accuracy, others: dict):
    """RMSE against the noise-free frames, by horizon."""
    fig = new_figure(6.4, 4.0)
    axes = fig.subplots()
    ahead = np.arange(1, len(found.rmse) + 1)
    for (name, values), colour in zip(others.items(), (GREY, ARMS[1], ARMS[3]), strict=True):
        axes.plot(ahead, values, color=colour, lw=1.6, label=NAMES.get(name, name))
    axes.plot(ahead, found.rmse, color=BLUE, lw=2.6, label="LDS SVAE")
    axes.set(xlabel="frames ahead", ylabel="RMSE to the noise-free frame", xlim=(1, ahead[-1]))
    axes.set_ylim(0, 1.3 * max(map(np.max, others.values())))  # room for the legend
    axes.set_title("Forecasts of new sequences of dots")
    axes.legend(loc="upper left", ncols=2)
    return fig
