"""How an animal moves as a whole, which alignment to its body forgets: how fast it goes forward, and how fast it turns.

Both are slopes of straight lines through a few frames around each one, in which unseen frames are left out. Speeds have
long tails and a glitch has a longer one, so a channel is asinh(speed / usual speed). It counts as one more row beside
the points, scaled to a share of their movement, if it says more than tracking noise: then it is still known after
the frames of one line.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from .keypoints import body_length, heading_and_middle

SECONDS = 0.08  # on each side of a frame
LEAST_REACH = 2  # frames on each side, and the number where the frame rate is not known
KNOWN = 0.3  # autocorrelation after the frames of one line, below which a channel is noise
SHORTEST = 1e-9  # length of a body whose points all lie together
SHARE = 0.25  # of the variance of all points together, which each channel has


class Channel(NamedTuple):
    """asinh(speed / usual) * gain; a gain of 0 is a channel that holds nothing."""

    usual: float
    gain: float


def reach(fps: float | None) -> int:
    """Frames on each side of a frame that its speeds are taken from."""
    return LEAST_REACH if fps is None else max(LEAST_REACH, round(SECONDS * fps))


def speeds(
    points: Float[np.ndarray, "T P d"], body: Float[np.ndarray, "P d"], weights: Float[np.ndarray, "T P"], reach: int
) -> Float[np.ndarray, "T 2"]:
    """Forward speed and turning in body lengths a frame; a point half a length away is moved by the turning."""
    heading, middle = heading_and_middle(points, body, weights)
    there = np.isfinite(middle[:, 0])
    facing, turned = _lines(heading, there, reach)
    _, moved = _lines(middle, there, reach)
    facing = facing / np.maximum(np.linalg.norm(facing, axis=1, keepdims=True), 1e-9)
    forward = np.sum(facing * moved, 1) / max(body_length(body), SHORTEST)
    turning = (facing[:, 0] * turned[:, 1] - facing[:, 1] * turned[:, 0]) / 2
    return np.stack([forward, turning], 1)


def _lines(
    values: Float[np.ndarray, "T n"], there: Bool[np.ndarray, " T"], reach: int
) -> tuple[Float[np.ndarray, "T n"], Float[np.ndarray, "T n"]]:
    """Height and slope at each frame of the straight line through the frames around it; NaN where too few are seen."""
    T, lags = len(values), np.arange(-reach, reach + 1)
    at = np.arange(T)[:, None] + lags
    weight = (there[np.clip(at, 0, T - 1)] & (at >= 0) & (at < T)).astype(float)  # (T, lags)
    around = np.where(weight[..., None] > 0, values[np.clip(at, 0, T - 1)], 0)
    n, first, second = (np.sum(weight * lags**k, 1)[:, None] for k in range(3))
    total, moment = np.sum(around, 1), np.sum(around * lags[:, None], 1)
    spread = n * second - first**2
    known = (n > reach) & (spread > 0)
    slope = np.where(known, (n * moment - first * total) / np.where(known, spread, 1), np.nan)
    return (total - slope * first) / np.maximum(n, 1), slope


def channels(runs: list[Float[np.ndarray, "T 2"]], variance: float, reach: int) -> tuple[Channel, ...]:
    """What becomes of the speeds of stretches of frames, given the variance of all points together."""
    return tuple(_channel([run[:, i] for run in runs], variance, 2 * reach + 1) for i in range(2))


def _channel(runs: list[np.ndarray], variance: float, lag: int) -> Channel:
    rows = np.concatenate(runs)
    usual = float(np.nanmedian(np.abs(rows))) if np.isfinite(rows).any() else 0.0
    if not usual > 0:
        return Channel(1.0, 0.0)
    bent = [np.arcsinh(run / usual) for run in runs]
    mean, sd = np.nanmean(np.concatenate(bent)), np.nanstd(np.concatenate(bent))
    pairs = np.concatenate([(run[lag:] - mean) * (run[:-lag] - mean) for run in bent if len(run) > lag] or [rows[:0]])
    known = pairs.size and np.isfinite(pairs).any() and np.nanmean(pairs) > KNOWN * sd**2
    return Channel(usual, float(np.sqrt(SHARE * variance) / sd) if known else 0.0)


def row(speed: Float[np.ndarray, "T 2"], how: tuple[Channel, ...], d: int) -> Float[np.ndarray, "T 1 d"]:
    """The channels as one more point."""
    bent = [gain * np.arcsinh(speed[:, i] / usual) for i, (usual, gain) in enumerate(how)]
    return np.stack([*bent, *[np.zeros(len(speed))] * (d - 2)], -1)[:, None]
