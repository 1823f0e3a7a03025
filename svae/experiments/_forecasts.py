"""How good forecasts of dots are: error by horizon, coverage of intervals, and the same of autoregression."""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, PRNGKeyArray

from svae.data import synthetic
from svae.model import SVAE
from svae.queries import forecast

BRIGHT = 0.1  # clean intensity above which a pixel belongs to the dot
CHUNK = 50  # sequences at a time: the draws of 200 fill a gigabyte
RIDGES = tuple(10.0**power for power in range(-3, 6))  # times the mean square of the regressors


class Accuracy(NamedTuple):
    """The accuracy of forecasts past a prefix of new sequences."""

    rmse: Float[np.ndarray, " H"]  # of the predictive mean against the noise-free frames, by horizon
    coverage_bright: float  # share of noisy pixels inside the 90 % interval, where the dot is
    coverage_dark: float  # and elsewhere


def accuracy(model: SVAE, test: synthetic.Dots, *, prefix: int, draws: int, key: PRNGKeyArray) -> Accuracy:
    """The model forecasts every test sequence from its first `prefix` frames to its end."""
    starts = range(0, len(test.y), CHUNK)
    parts = [
        predicted(model, test.y[i : i + CHUNK], prefix, draws, now)
        for i, now in zip(starts, jax.random.split(key, len(starts)), strict=True)
    ]
    mean, inside = (np.concatenate(field) for field in zip(*parts, strict=True))
    clean = test.clean[:, prefix:]
    return Accuracy(rmse(mean, clean), float(inside[clean > BRIGHT].mean()), float(inside[clean <= BRIGHT].mean()))


def predicted(
    model: SVAE, y: Float[np.ndarray, "B T W"], prefix: int, draws: int, key: PRNGKeyArray
) -> tuple[Float[np.ndarray, "B H W"], Bool[np.ndarray, "B H W"]]:
    """The predictive mean, and whether each noisy pixel lies between the 5 % and the 95 % quantile of the draws."""
    future = y[:, prefix:]
    found = forecast(model, list(y[:, :prefix]), horizon=future.shape[1], samples=draws, key=key)
    low, high = np.quantile(np.stack(found.samples), (0.05, 0.95), axis=1)
    return np.stack(found.means).mean(1), (low <= future) & (future <= high)


def rmse(found: Float[np.ndarray, "B H W"], clean: Float[np.ndarray, "B H W"]) -> Float[np.ndarray, " H"]:
    """By horizon."""
    return np.sqrt(np.mean((found - clean) ** 2, (0, 2)))


def baselines(
    train: Float[np.ndarray, "B T W"], test: synthetic.Dots, *, prefix: int
) -> dict[str, Float[np.ndarray, " H"]]:
    """RMSE by horizon of forecasts that know no latents."""
    clean, seen = test.clean[:, prefix:], test.y[:, :prefix]
    horizon = clean.shape[1]
    found = {"repeat": rmse(np.repeat(seen[:, -1:], horizon, 1), clean)}
    for order in (2, 10):
        found[f"VAR({order})"] = rmse(roll(fit_var(train, order, prefix), seen, order, horizon), clean)
    return found


def fit_var(y: Float[np.ndarray, "B T W"], order: int, prefix: int) -> Float[np.ndarray, "W U"]:
    """Fitted with the ridge that forecasts the last fifth of the sequences best from the others, over all horizons."""
    cut = len(y) * 4 // 5

    def error(ridge):
        found = roll(regress(y[:cut], order, ridge), y[cut:, :prefix], order, y.shape[1] - prefix)
        return np.mean((found - y[cut:, prefix:]) ** 2)

    return regress(y, order, min(RIDGES, key=error))


def regress(y: Float[np.ndarray, "B T W"], order: int, ridge: float) -> Float[np.ndarray, "W U"]:
    """y_t = C (y_{t-1}, ..., y_{t-order}, 1) by ridge regression; the offset is free."""
    ends = range(order, y.shape[1])
    u = np.concatenate([lagged(y[:, t - order : t]) for t in ends]).astype(float)
    targets = np.concatenate([y[:, t] for t in ends]).astype(float)
    penalty = ridge * np.mean(u[:, :-1] ** 2) * np.append(np.ones(u.shape[1] - 1), 0.0)
    return np.linalg.solve(u.T @ u + np.diag(penalty), u.T @ targets).T


def lagged(recent: Float[np.ndarray, "B p W"]) -> Float[np.ndarray, "B U"]:
    """Regressors from the last p frames: newest first, then 1."""
    return np.concatenate([recent[:, ::-1].reshape(len(recent), -1), np.ones((len(recent), 1))], 1)


def roll(
    C: Float[np.ndarray, "W U"], seen: Float[np.ndarray, "B T W"], order: int, horizon: int
) -> Float[np.ndarray, "B H W"]:
    """Each frame from those before it, forecast ones included."""
    frames = list(np.moveaxis(seen[:, -order:].astype(float), 1, 0))
    for _ in range(horizon):
        frames.append(lagged(np.stack(frames[-order:], 1)) @ C.T)
    return np.stack(frames[order:], 1)
