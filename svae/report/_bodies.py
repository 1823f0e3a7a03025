"""The bodies of a run of keypoints: their points in the room, how they move, and each state's course in numbers."""

from typing import NamedTuple

import numpy as np

from svae.data import Preprocess, Recordings, blocks
from svae.data.preprocess import POINTS
from svae.report import _motion, _skeleton
from svae.report._bouts import durations
from svae.report._material import Material
from svae.report._motion import Course, Motion
from svae.report._skeleton import Skeleton
from svae.runs import Run

LONGEST = 3.0  # seconds of a course
SHORTEST = 6  # frames of a course
STILL, STRAIGHT = 0.05, 5.0  # body lengths and degrees per second below which a state stands and goes straight
SAMPLED = 2000  # frames from which a skeleton is guessed


class Bodies(NamedTuple):
    """The bodies in all recordings of a run."""

    skeleton: Skeleton
    points: list[np.ndarray]  # (T, P, 2) of each recording, in the units of its file
    moved: list[Motion]
    body: np.ndarray  # (P, 2) the reference posture, its front along x
    unit: float  # the median body length, in the units of the file
    upwards: bool  # whether y points up, as in the world, or down, as in a picture: by left and right where known


class Numbers(NamedTuple):
    """Medians over the frames of a state."""

    speed: float  # body lengths per second (or frame)
    turning: float  # degrees per second (or frame), above 0 to the right
    turn: float  # the same without its sign
    length: float  # in median body lengths


def bodies(material: Material) -> Bodies | None:
    """None where the run is not of keypoints, or its recordings are gone."""
    if material.raw is None:
        return None
    return bodies_in(material.raw, material.model.preprocess, material.fps, material.run)


def bodies_in(raw: Recordings, before: Preprocess, fps: float | None, run: Run | None = None) -> Bodies | None:
    """The bodies in recordings, given their preprocessing; None where they are not of keypoints."""
    if before.kind not in POINTS:
        return None
    keep, posture = list(before.keep), np.array(before.body)[:, :2]
    read = [np.concatenate([np.asarray(part, float)[:, keep] for _, part in blocks(y)]) for y in raw.sequences]
    points = [np.where(np.isfinite(xy).all(-1, keepdims=True), xy, np.nan)[..., :2] for xy in read]
    every = np.concatenate([xy[:: max(1, len(xy) * len(points) // SAMPLED)] for xy in points])
    skeleton = _skeleton.find(run, raw.sequences[0], before.keep, every, np.array(before.body))
    ends = skeleton.nose, skeleton.tail
    moved = [_motion.motion(xy, posture, ends, fps) for xy in points]
    lengths = np.concatenate([m.length for m in moved])
    known = lengths[np.isfinite(lengths) & (lengths > 0)]
    unit = float(np.median(known)) if known.size else float(np.ptp(posture[:, 0])) or 1.0
    return Bodies(skeleton, points, moved, posture, unit, _upwards(skeleton.sides, posture, read[0].shape[-1]))


def _upwards(sides, posture, d) -> bool:
    """Whether y points up: where points are named left and right, the left ones must lie on the left."""
    left, right = (posture[[s == side for s in sides], 1] for side in ("left", "right"))
    if len(left) and len(right):
        return bool(left.mean() > right.mean())
    return d == 3


def frames_of(material: Material, k: int) -> np.ndarray:
    """Lags from the onset that most bouts of a state reach."""
    rate = material.fps or 30.0
    last = float(np.percentile(durations(material.stretches, k), 60))
    return np.arange(int(np.clip(last, SHORTEST, max(SHORTEST, LONGEST * rate))))


def course(material: Material, found: Bodies, k: int) -> Course:
    """The bouts of a state from their onset on."""
    mine = [s for s in material.stretches if s.state == k]
    return _motion.course(found.points, found.moved, mine, frames_of(material, k))


def numbers(material: Material, found: Bodies, k: int) -> Numbers:
    """Medians over all frames of a state."""
    on = [p.state == k for p in material.posteriors.values()]
    pick = lambda name: np.concatenate([getattr(m, name)[here] for m, here in zip(found.moved, on, strict=True)])  # noqa: E731
    turning = np.degrees(pick("turning")) * (-1 if found.upwards else 1)
    return Numbers(
        _median(pick("speed")) / found.unit,
        _median(turning),
        _median(np.abs(turning)),
        _median(pick("length")) / found.unit,
    )


def _median(values):
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else float("nan")


def in_words(material: Material, found: Bodies, k: int) -> str:
    """What the body does in a state, in a few numbers."""
    done, per = numbers(material, found, k), "s" if material.fps else "frame"
    if not np.isfinite(done.speed):
        return "no frame with two points in view"
    moves = f"moves {done.speed:.2g} body lengths/{per}" if done.speed >= STILL else "stays in place"
    way = "right" if done.turning > 0 else "left"
    steady = abs(done.turning) >= max(STRAIGHT, 0.5 * done.turn)
    turns = (
        f"turns {way} by {abs(done.turning):.0f}°/{per}" if steady else f"turns {done.turn:.0f}°/{per} to either side"
    )
    long = f" · body length {100 * done.length:.0f} % of the median" if np.isfinite(done.length) else ""
    return f"{moves} · {turns}{long}"


def on_screen(found: Bodies, poses: np.ndarray) -> np.ndarray:
    """Points whose heading is x as they are drawn: the heading up, the right side of the animal on the right."""
    return np.stack([poses[..., 1] * (-1 if found.upwards else 1), poses[..., 0]], -1)
