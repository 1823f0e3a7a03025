"""Tracked keypoints of a body that walks and turns while its posture follows eight switching actions: the frozen exam.

python benchmarks/keypoint_exam.py --out FOLDER --wild 0.01 --seed 0

FOLDER/recordings holds DeepLabCut csv files, FOLDER/labels the action of every frame, to be read only when scoring.
The numbers below were set before any rule of the package was tried on them, and stay.

A seed draws one animal: the same motion and the same noise whatever the rate of wild points or the likelihoods, so that
conditions can be compared recording by recording. Posture follows first-order dynamics towards a target that the action
sets; the target of some actions oscillates. Every bout has its own strength, tempo and phase.
"""

import argparse
import csv
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

FPS = 30.0
ARENA = 600.0  # side of the square, in pixels
POINTS = ("nose", "ear_left", "ear_right", "neck", "paw_left", "paw_right", "spine", "hip_left", "hip_right", "tail")
REST = np.array(
    [(34, 0), (25, 7), (25, -7), (18, 0), (14, 8), (14, -8), (0, 0), (-16, 9), (-16, -9), (-26, 0)], float
)  # in pixels, x towards the head
NOISE = 0.8  # standard deviation of the tracker's error, in pixels
MISSING, MISSING_RUN = 0.02, 3.0  # share of points that are missing; their mean run in frames
WILD_RUN = 1.5  # mean run of a wild point in frames
SHORTEST, LONGEST = 0.3, 1.5  # seconds
SHAPE = 5.0  # of the gamma distribution of durations
STRETCH, CURL, HEAD, REAR, PAWS, GROOM = range(6)  # coordinates of posture
NOTHING = MappingProxyType({})


class Action(NamedTuple):
    """Targets of posture, what oscillates and how, how fast posture follows, and how the body moves on."""

    name: str
    seconds: float  # mean before durations outside the limits are drawn again
    target: Mapping[int, float] = NOTHING
    swing: Mapping[int, float] = NOTHING  # amplitude of the oscillating target
    hertz: float = 0.0
    lag: float = 0.10  # seconds in which posture comes to 1/e of its target
    jitter: float = 0.15  # noise of posture, as a share of its scale, per square root of a second
    speed: float = 0.0  # pixels a second
    turn: float = 0.0  # radians a second


ACTIONS = (
    Action("still", 1.0, jitter=0.06),
    Action("walk", 1.2, swing={PAWS: 6.0}, hertz=2.0, lag=0.05, speed=70.0),
    Action("run", 0.8, {STRETCH: 0.10}, {PAWS: 12.0, STRETCH: 0.06}, 4.0, 0.05, speed=220.0),
    Action("curl left", 0.6, {CURL: 0.9, HEAD: 0.2, STRETCH: -0.05}, lag=0.12, speed=25.0, turn=1.8),
    Action("curl right", 0.7, {CURL: -0.9, HEAD: -0.2, STRETCH: -0.05}, lag=0.12, speed=25.0, turn=-1.8),
    Action("rear", 0.9, {REAR: 0.45}, lag=0.15),
    Action("groom", 1.3, {REAR: 0.15, GROOM: 0.7, STRETCH: -0.08}, {GROOM: 0.5}, 5.0, 0.05),
    Action("scan", 0.9, {STRETCH: 0.06}, {HEAD: 0.9}, 1.6, 0.08, speed=10.0),
)
SCALE = np.array([0.08, 0.4, 0.25, 0.15, 3.0, 0.25])  # of the coordinates of posture, for their noise
STYLE, STYLE_SECONDS = 0.35, 4.0  # slow drift of posture, as a share of its scale, and how long it lasts


class Truth(NamedTuple):
    """One recording before it was tracked: points (T, P, 2) in the arena and in the frame of the body, actions (T,)."""

    points: np.ndarray
    body: np.ndarray
    labels: np.ndarray


def make(
    seed: int = 0, wild: float = 0.0, telling: bool = True, recordings: int = 6, frames: int = 3000
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Recordings (T, P, 3) of x, y and likelihood, and the action of every frame (T,)."""
    truths = truth(seed, recordings, frames)
    tracked = [_tracked(one.points, (seed, number), wild, telling) for number, one in enumerate(truths)]
    return tracked, [one.labels for one in truths]


def truth(seed: int = 0, recordings: int = 6, frames: int = 3000) -> list[Truth]:
    """What happened, without a tracker."""
    rng = np.random.default_rng((seed, 0))
    moves = rng.dirichlet(np.full(len(ACTIONS) - 1, 2.0), len(ACTIONS))  # no action follows itself
    return [_recording(np.random.default_rng((seed, 1, number)), moves, frames) for number in range(recordings)]


def _recording(rng, moves, frames):
    labels, strength, tempo, phase = _bouts(rng, moves, frames)
    posture = _posture(rng, labels, strength, tempo, phase)
    body = _body(posture, size=rng.uniform(0.95, 1.05))
    place, heading = _path(rng, labels)
    return Truth(_turned(body, heading) + place[:, None], body, labels)


def _bouts(rng, moves, frames):
    """Actions (T,) in bouts, and what is each bout's own: strength, tempo and first phase, frame by frame."""
    columns, filled, action = [], 0, int(rng.integers(len(ACTIONS)))
    while filled < frames:
        length = round(_seconds(rng, ACTIONS[action].seconds) * FPS)
        own = rng.uniform(0.8, 1.2), rng.uniform(0.9, 1.1), rng.uniform(0, 2 * np.pi)
        columns.append(np.tile((action, *own), (length, 1)))
        filled += length
        others = np.delete(np.arange(len(ACTIONS)), action)
        action = int(rng.choice(others, p=moves[action]))
    labels, *own = np.concatenate(columns)[:frames].T
    return labels.astype(int), *own


def _seconds(rng, mean):
    """A duration from a gamma distribution, drawn again until it lies between the limits."""
    while not SHORTEST <= (seconds := rng.gamma(SHAPE, mean / SHAPE)) <= LONGEST:
        pass
    return seconds


def _posture(rng, labels, strength, tempo, phase):
    """Coordinates of posture (T, 6)."""
    frames, step = len(labels), 1 / FPS
    target, swing = _table("target")[labels], _table("swing")[labels]
    hertz, lag, jitter = (np.array([getattr(a, key) for a in ACTIONS])[labels] for key in ("hertz", "lag", "jitter"))
    within = _frames_into_bout(labels) * step
    aim = strength[:, None] * (target + swing * np.sin(phase + 2 * np.pi * tempo * hertz * within)[:, None])
    keep = np.exp(-step / lag)[:, None]
    kick = jitter[:, None] * SCALE * np.sqrt(step) * rng.standard_normal((frames, len(SCALE)))
    posture, slow = np.zeros((frames, len(SCALE))), _drift(rng, frames)
    for t in range(1, frames):
        posture[t] = keep[t] * posture[t - 1] + (1 - keep[t]) * aim[t] + kick[t]
    return posture + slow


def _table(key):
    """One row of posture for each action."""
    rows = np.zeros((len(ACTIONS), len(SCALE)))
    for row, action in zip(rows, ACTIONS, strict=True):
        for coordinate, value in getattr(action, key).items():
            row[coordinate] = value
    return rows


def _frames_into_bout(labels):
    starts = np.flatnonzero(np.diff(labels, prepend=-1) != 0)
    return np.arange(len(labels)) - np.repeat(starts, np.diff(np.append(starts, len(labels))))


def _drift(rng, frames):
    """Style: posture drifts slowly, whatever the action."""
    keep = np.exp(-1 / (FPS * STYLE_SECONDS))
    drift = np.empty((frames, len(SCALE)))
    drift[0] = rng.standard_normal(len(SCALE))
    for t in range(1, frames):
        drift[t] = keep * drift[t - 1] + np.sqrt(1 - keep**2) * rng.standard_normal(len(SCALE))
    return STYLE * SCALE * drift


def _body(posture, size):
    """Points (T, P, 2) in the frame of the body."""
    stretch, curl, head, rear, paws, groom = posture.T[:, :, None]
    x, y = (np.broadcast_to(column, (len(posture), len(POINTS))).copy() for column in REST.T)
    left, right = POINTS.index("paw_left"), POINTS.index("paw_right")
    x[:, [left]] += paws
    x[:, [right]] -= paws
    x[:, [POINTS.index("hip_left")]] -= 0.4 * paws
    x[:, [POINTS.index("hip_right")]] += 0.4 * paws
    for paw in (left, right):  # towards the nose
        x[:, [paw]] += groom * (REST[0, 0] - REST[paw, 0])
        y[:, [paw]] -= 0.6 * groom * REST[paw, 1]
    front, neck = slice(0, 3), REST[POINTS.index("neck"), 0]
    cos, sin = np.cos(head), np.sin(head)
    ahead, aside = x[:, front] - neck, y[:, front].copy()
    x[:, front], y[:, front] = neck + cos * ahead - sin * aside, sin * ahead + cos * aside
    hip = REST[POINTS.index("hip_left"), 0]
    x = np.where(x > hip, hip + (x - hip) * (1 - rear) * (1 + stretch), x)  # rearing foreshortens what is upright
    y = y * (1 + 0.2 * rear)
    bend = curl / 60.0  # curvature of the spine
    bend = np.where(np.abs(bend) < 1e-6, 1e-6, bend)
    along, across = np.sin(bend * x) / bend, (1 - np.cos(bend * x)) / bend
    return size * np.stack([along - y * np.sin(bend * x), across + y * np.cos(bend * x)], -1)


def _path(rng, labels):
    """Place (T, 2) and heading (T,): walks where the action walks, turns away from walls."""
    speed, turn = (np.array([getattr(a, key) for a in ACTIONS])[labels] for key in ("speed", "turn"))
    frames, step, keep = len(labels), 1 / FPS, np.exp(-1 / (FPS * 0.5))
    place, heading = np.empty((frames, 2)), np.empty(frames)
    place[0], heading[0], wander = rng.uniform(0.25 * ARENA, 0.75 * ARENA, 2), rng.uniform(-np.pi, np.pi), 0.0
    for t in range(1, frames):
        wander = keep * wander + np.sqrt(1 - keep**2) * rng.standard_normal()
        moving = min(1.0, speed[t] / 50)
        rate = turn[t] + moving * (0.8 * wander + _away_from_walls(place[t - 1], heading[t - 1]))
        heading[t] = heading[t - 1] + rate * step
        ahead = np.array([np.cos(heading[t]), np.sin(heading[t])])
        place[t] = np.clip(place[t - 1] + speed[t] * step * ahead, 50, ARENA - 50)
    return place, heading


def _away_from_walls(place, heading):
    """Turning rate towards the middle: 0 there, up to 5 radians a second beside a wall."""
    inwards = ARENA / 2 - place
    near = np.clip((np.abs(inwards).max() / (ARENA / 2) - 0.5) / 0.35, 0, 1)
    return 5 * near * np.sin(np.arctan2(inwards[1], inwards[0]) - heading)


def _turned(body, heading):
    cos, sin = np.cos(heading)[:, None], np.sin(heading)[:, None]
    x, y = body[..., 0], body[..., 1]
    return np.stack([cos * x - sin * y, sin * x + cos * y], -1)


def _tracked(points, key, wild, telling):
    """What a tracker writes (T, P, 3): noise, wild and missing points, likelihoods that tell of them or do not."""
    noise, gaps, jumps, sure = (np.random.default_rng((*key, 2, part)) for part in range(4))
    xy = points + NOISE * noise.standard_normal(points.shape)
    missing = _runs(gaps, points.shape[:2], MISSING, MISSING_RUN)
    runs = _runs(jumps, points.shape[:2], wild, WILD_RUN)
    xy = np.where(runs[..., None] > 0, _wild_places(jumps, xy, runs), xy)
    xy[missing > 0] = np.nan
    likely, unlikely = 1 - sure.beta(1, 30, runs.shape), sure.beta(2, 8, runs.shape)
    off = (runs > 0) | (missing > 0)
    return np.concatenate([xy, np.where(off & telling, unlikely, likely)[..., None]], -1)


def _runs(rng, shape, share, mean):
    """Numbers of runs of geometric lengths that cover a share of the entries (T, P); 0 elsewhere."""
    starts = rng.random(shape)  # drawn whole, so that more runs contain the fewer
    lengths = rng.geometric(1 / mean, shape)
    covered = np.zeros(shape, int)
    for number, (t, p) in enumerate(np.argwhere(starts < -np.log1p(-share) / mean), 1):
        covered[t : t + lengths[t, p], p] = number
    return covered


def _wild_places(rng, xy, runs):
    """Half of the runs stay at one place of the arena, the others sit on another point of the body."""
    total = runs.max() + 1
    place, onto = rng.uniform(0, ARENA, (total, 2)), rng.integers(1, len(POINTS), total)
    uniform = rng.random(total) < 0.5
    others = (np.arange(len(POINTS)) + onto[runs]) % len(POINTS)
    snapped = np.take_along_axis(xy, others[..., None], 1)
    return np.where(uniform[runs][..., None], place[runs] + NOISE * rng.standard_normal(xy.shape), snapped)


def write(folder: Path, recordings: list[np.ndarray], labels: list[np.ndarray]) -> None:
    """DeepLabCut csv files in folder/recordings and one column of actions for each in folder/labels."""
    for part in ("recordings", "labels"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for number, (frames, actions) in enumerate(zip(recordings, labels, strict=True), 1):
        _write_deeplabcut(folder / "recordings" / f"walk_{number}.csv", frames)
        names = [ACTIONS[action].name for action in actions]
        (folder / "labels" / f"walk_{number}.csv").write_text("\n".join(["action", *names]) + "\n", encoding="utf-8")


def _write_deeplabcut(path, frames):
    columns = ("x", "y", "likelihood")
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["scorer"] + ["keypoint_exam"] * len(POINTS) * len(columns))
        out.writerow(["bodyparts", *np.repeat(POINTS, len(columns))])
        out.writerow(["coords", *columns * len(POINTS)])
        for t, row in enumerate(frames.reshape(len(frames), -1)):
            out.writerow([t, *("" if np.isnan(value) else f"{value:.4f}" for value in row)])


def main() -> None:
    """Write one exam."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--wild", type=float, default=0.0, help="share of points that are wild, such as 0.01")
    parser.add_argument("--untelling", action="store_true", help="likelihoods that say nothing about wild points")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    write(options.out, *make(options.seed, options.wild, not options.untelling))


if __name__ == "__main__":
    main()
