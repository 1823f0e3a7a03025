"""How a body moves: its place, heading, speed, turning and length in every frame, and the median course of a state."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from svae.data import keypoints
from svae.report._bouts import Stretch

WINDOW = 0.1  # seconds to each side over which speed and turning are taken
FRAMES = 3  # the same in frames where no clock is known
BOUTS = 400  # of a state that its course is the median of, at most
LEAST, PART = 3, 0.2  # bouts that a median needs at a time after the onset, and what share of all bouts


class Motion(NamedTuple):
    """The motion in one recording of T frames, NaN where fewer than two points are seen."""

    place: Float[np.ndarray, "T 2"]  # of the origin of the reference posture
    heading: Float[np.ndarray, " T"]  # radians from x towards y
    speed: Float[np.ndarray, " T"]  # units of the points per second (or frame)
    turning: Float[np.ndarray, " T"]  # radians per second (or frame), above 0 from x towards y
    length: Float[np.ndarray, " T"]  # from nose to tail


class Course(NamedTuple):
    """The bouts of a state around their onsets; L lags."""

    lags: Int[np.ndarray, " L"]  # frames from the onset
    poses: Float[np.ndarray, "n L P 2"]  # seen from the onset: its place is 0, its heading is x
    speed: Float[np.ndarray, "n L"]
    turning: Float[np.ndarray, "n L"]
    length: Float[np.ndarray, "n L"]
    bouts: list[Stretch]  # n


def motion(xy: Float[np.ndarray, "T P 2"], body: Float[np.ndarray, "P 2"], ends: tuple[int, int], fps: float | None):
    """The motion of the points of one recording, whose nose and tail are the points `ends`."""
    seen = np.isfinite(xy).all(-1)
    trust = keypoints.trust(xy, body)
    cos, sin = keypoints.rotation(xy, body, trust)
    weight = trust / np.maximum(trust.sum(1), 1e-9)[:, None]
    here = np.where(seen[..., None], xy, 0)
    middle, rest = np.einsum("tp,tpd->td", weight, here), np.einsum("tp,pd->td", weight, body)
    back = np.stack([cos * rest[:, 0] + sin * rest[:, 1], cos * rest[:, 1] - sin * rest[:, 0]], -1)
    known = seen.sum(1) >= 2
    place = np.where(known[:, None], middle - back, np.nan)
    heading = np.where(known, -np.arctan2(sin, cos), np.nan)
    reach = max(1, round(WINDOW * fps)) if fps else FRAMES
    rate = (fps or 1.0) / (2 * reach)
    step, turn = _around(place, reach), _around(heading, reach)
    turn = (turn + np.pi) % (2 * np.pi) - np.pi
    nose, tail = ends
    length = np.linalg.norm(xy[:, nose] - xy[:, tail], axis=-1)
    return Motion(place, heading, np.linalg.norm(step, axis=-1) * rate, turn * rate, length)


def _around(values, reach):
    """values[t + reach] - values[t - reach]; NaN at the ends."""
    out = np.full_like(values, np.nan)
    if len(values) > 2 * reach:
        out[reach:-reach] = values[2 * reach :] - values[: -2 * reach]
    return out


def course(points: list[np.ndarray], moved: list[Motion], mine: list[Stretch], lags: np.ndarray) -> Course:
    """Bouts spread evenly over all; frames after the end of a bout are left out, those before it are kept."""
    chosen = [mine[i] for i in np.unique(np.linspace(0, len(mine) - 1, min(len(mine), BOUTS)).astype(int))]
    chosen = [s for s in chosen if np.isfinite(moved[s.recording].heading[s.first])]
    n, P = len(chosen), points[0].shape[1]
    poses, rows = np.full((n, len(lags), P, 2), np.nan), np.full((3, n, len(lags)), np.nan)
    for i, s in enumerate(chosen):
        found, xy = moved[s.recording], points[s.recording]
        frames = s.first + lags
        there = (frames >= 0) & (frames < s.last)
        t = frames[there]
        poses[i, there] = turned(xy[t] - found.place[s.first], found.heading[s.first])
        for row, values in zip(rows, (found.speed, found.turning, found.length), strict=True):
            row[i, there] = values[t]
    return Course(lags, poses, *rows, chosen)


def turned(xy: np.ndarray, heading: float) -> np.ndarray:
    """Points so that a heading becomes the direction x."""
    cos, sin = np.cos(heading), np.sin(heading)
    return np.stack([cos * xy[..., 0] + sin * xy[..., 1], cos * xy[..., 1] - sin * xy[..., 0]], -1)


def middle(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Quartiles over bouts, the median first; NaN where too few bouts say something."""
    if len(values) == 0:
        return (np.full(values.shape[1:], np.nan),) * 3
    enough = np.isfinite(values).sum(0) >= min(max(LEAST, PART * len(values)), len(values))
    low, median, high = np.nanpercentile(np.where(enough, values, 0.0), [25, 50, 75], axis=0)
    return tuple(np.where(enough, found, np.nan) for found in (median, low, high))


def centre(poses: Float[np.ndarray, "... P 2"]) -> Float[np.ndarray, "... 1 2"]:
    """The median of the points that are seen; NaN where none is."""
    known = np.isfinite(poses).all(-1, keepdims=True)
    none = ~known.any(-2, keepdims=True)
    median = np.nanmedian(np.where(known, poses, np.where(none, 0.0, np.nan)), -2, keepdims=True)
    return np.where(none, np.nan, median)


def usual(poses: Float[np.ndarray, "n L P 2"]) -> Int[np.ndarray, " n"]:
    """The bouts, those first that are nearest to the median of all; those of which nothing is seen last."""
    away = np.linalg.norm(poses - middle(poses)[0], axis=-1).reshape(len(poses), -1)
    known = np.isfinite(away)
    mean = np.where(known, away, 0).sum(1) / np.maximum(known.sum(1), 1)
    return np.argsort(np.where(known.any(1), mean, np.inf), kind="stable")
