"""Frames that nobody has fitted, forecast: by a model, by repeating the last frame, and by PCA with a VAR(1)."""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from svae.data import Recordings, cut, preprocessed
from svae.experiments._forecast_dynamics import Foresight
from svae.queries import forecast

DRAWN_NUMBERS = 2**25  # of all draws of one call together
DRAWS = 400  # futures whose mean is the prediction; of 100 the spread would still be a hundredth of the squared error
FIFTH = 0.2


class Place(NamedTuple):
    """Frames [cut - context, cut) of a recording are seen, [cut, cut + H) are forecast."""

    recording: int
    cut: int


class Linear(NamedTuple):
    """PCA of training frames, and x_{t+1} = B'(x_t, 1) on their scores by least squares."""

    mean: Float[np.ndarray, " P"]
    components: Float[np.ndarray, "D P"]
    B: np.ndarray  # (D + 1, D)


def split_last_fifth(data: Recordings) -> tuple[Recordings, dict[int, int]]:
    """What is fitted, and what is kept for tests, as {recording: first frame}.

    Of several recordings the last fifth, at least one, is kept whole; of a single one, its last fifth.
    """
    n = len(data.sequences)
    if n == 1:
        first = round(len(data.sequences[0]) * (1 - FIFTH))
        times = tuple(t if t is None else t[:first] for t in data.times)
        return data._replace(sequences=(cut(data.sequences[0], 0, first),), times=times), {0: first}
    kept = max(1, round(n * FIFTH))
    train = Recordings(data.sequences[:-kept], data.names[:-kept], data.fps, data.times[: n - kept])
    return train, dict.fromkeys(range(n - kept, n), 0)


def places(data: Recordings, tested: dict[int, int], context: int, horizon: int, number: int) -> list[Place]:
    """About `number` places spread evenly over the frames kept for tests; the context may reach back before them."""
    spans = {i: range(max(first, context), len(data.sequences[i]) - horizon + 1) for i, first in tested.items()}
    every = [Place(i, c) for i, span in spans.items() for c in span]
    return [every[k] for k in np.unique(np.linspace(0, len(every) - 1, number).astype(int))] if every else []


# --- who predicts -------------------------------------------------------------------------------------------------


def by_model(
    found: Foresight, data: Recordings, chosen: list[Place], context: int, horizon: int, key: PRNGKeyArray
) -> Float[np.ndarray, "n H *event"]:
    """The predictive mean of raw recordings, from the `context` frames before each cut and nothing else."""
    size = max(1, min(len(chosen), DRAWN_NUMBERS // (2 * DRAWS * horizon * int(np.prod(found.model.shape)))))
    predicted = []
    for number, first in enumerate(range(0, len(chosen), size)):
        rows = [chosen[min(first + i, len(chosen) - 1)] for i in range(size)]  # one shape, one program
        past = Recordings(tuple(cut(data.sequences[i], c - context, c) for i, c in rows), tuple(map(str, range(size))))
        ahead = forecast(found.model, past, horizon=horizon, samples=DRAWS, key=jax.random.fold_in(key, number))
        seen = preprocessed(past, found.model.preprocess).sequences
        predicted += [found.mean(np.asarray(y[:]), futures) for y, futures in zip(seen, ahead.means, strict=True)]
    return np.stack(predicted[: len(chosen)])


def fit_linear(frames: list[np.ndarray], D: int) -> Linear:
    """From training recordings (T_i, *event) as the model sees them."""
    rows = [np.asarray(y, float).reshape(len(y), -1) for y in frames]
    every = np.concatenate(rows)
    mean = every.mean(0)
    _, vectors = np.linalg.eigh((every - mean).T @ (every - mean))
    components = vectors[:, ::-1][:, :D].T
    scores = [(y - mean) @ components.T for y in rows]
    past = np.concatenate([_with_one(x[:-1]) for x in scores])
    return Linear(mean, components, np.linalg.lstsq(past, np.concatenate([x[1:] for x in scores]), rcond=None)[0])


def by_linear(fitted: Linear, last: Float[np.ndarray, "n *event"], horizon: int) -> Float[np.ndarray, "n H *event"]:
    """The VAR(1) iterated from the scores of the last frame."""
    x, found = (last.reshape(len(last), -1) - fitted.mean) @ fitted.components.T, []
    for _ in range(horizon):
        x = _with_one(x) @ fitted.B
        found.append((fitted.mean + x @ fitted.components).reshape(last.shape))
    return np.stack(found, 1)


def _with_one(x):
    return np.concatenate([x, np.ones((len(x), 1))], 1)


# --- how well -----------------------------------------------------------------------------------------------------


def errors(
    found: Foresight,
    train: Recordings,
    data: Recordings,
    chosen: list[Place],
    context: int,
    horizon: int,
    key: PRNGKeyArray,
) -> dict[str, Float[np.ndarray, " H"]]:
    """RMSE by horizon of each way to forecast, in the units of the frames that the model sees."""
    model, seen = found.model, preprocessed(data, found.model.preprocess)
    shown = [np.asarray(seen.sequences[i][c - 1 : c + horizon], float) for i, c in chosen]
    last, truth = np.stack([y[0] for y in shown]), np.stack([y[1:] for y in shown])
    frames = [np.asarray(y[:]) for y in preprocessed(train, model.preprocess).sequences]
    D = model.config.latent_dim
    return {
        "svae": rmse(by_model(found, data, chosen, context, horizon, key), truth),
        "repeat": rmse(last[:, None], truth),
        f"pca({D})+var(1)": rmse(by_linear(fit_linear(frames, D), last, horizon), truth),
    }


def rmse(found: Float[np.ndarray, "n h *event"], truth: Float[np.ndarray, "n H *event"]) -> Float[np.ndarray, " H"]:
    """By horizon, over what was observed."""
    return np.sqrt(np.nanmean((found - truth) ** 2, (0, *range(2, truth.ndim))))


def summary(found: dict[str, Float[np.ndarray, " H"]]) -> dict[str, dict[str, float]]:
    """Each way's RMSE one frame ahead, at the last horizon, and over all of them."""
    overall = lambda e: float(np.sqrt(np.mean(e**2)))  # noqa: E731
    return {
        name: {"1 frame": float(e[0]), f"{len(e)} frames": float(e[-1]), f"1 to {len(e)}": overall(e)}
        for name, e in found.items()
    }


def rows(found: dict[str, dict[str, float]]) -> Iterator[str]:
    """The summary as lines of a table."""
    columns = list(next(iter(found.values())))
    yield f"{'RMSE':16s}" + "".join(f"{c:>12s}" for c in columns)
    for name, values in found.items():
        yield f"{name:16s}" + "".join(f"{v:12.3f}" for v in values.values())
