"""Left and right, and who is who: points of two sides that are swapped, mirror images, animals that change places."""

import itertools
import re
from typing import Any

import numpy as np

from . import keypoints
from .readers.pieces import listed
from .recordings import Recordings
from .views import blocks, is_points, names_of, sampled

SWAPPED = 0.005  # of the frames, and SWAPPED_RUN in a row, with left and right swapped are worth a word
SWAPPED_RUN = 5
BETTER = 0.3  # of the misfit to the body, or of the way, that is left when two are swapped back
FAR = 0.5  # of a body length: less is no jump
SIDE = re.compile(r"(^|[^a-z])(left|right|l|r)([^a-z]|$)")


def sides(names: tuple[str, ...]) -> list[tuple[int, int]]:
    """Places of points whose names differ by left and right only."""
    where, found = {}, []
    for i, name in enumerate(names):
        plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        plain = re.sub(r"(left|right)", r"_\1_", plain)
        if m := SIDE.search(plain):
            where[plain[: m.start(2)] + "*" + plain[m.end(2) :], m[2][0]] = i
    for (rest, side), i in where.items():
        if side == "l" and (rest, "r") in where:
            found.append((i, where[rest, "r"]))
    return found


def swaps(data: Recordings) -> list[str]:
    """Stretches in which points of the left are where those of the right belong, in the frame of the body."""
    found = []
    for name, y in zip(data.names, data.sequences, strict=True):
        pairs = sides(names_of(y)) if is_points(y) and y.shape[1] >= 3 and len(y) >= 20 else []
        body = keypoints.posture(sampled(y), ())[:, :2] if pairs else None
        for left, right in pairs:
            swapped = _swapped(y, body, left, right)
            runs = np.flatnonzero(np.diff(np.r_[False, swapped, False].astype(int))).reshape(-1, 2)
            runs = runs[np.diff(runs, axis=1)[:, 0] >= SWAPPED_RUN]
            total = int(np.diff(runs, axis=1).sum())
            if total > SWAPPED * len(y):
                both = f"{names_of(y)[left]} and {names_of(y)[right]}"
                share = f"{len(runs)} stretches, {100 * total / len(y):.2g} % of the frames"
                found.append(f"{name}: {both} are swapped in {share}, first at frame {runs[0, 0]}; swap them back.")
    return found


def _swapped(y: Any, body: np.ndarray, left: int, right: int) -> np.ndarray:
    """Frames (T,) that fit the body (P, 2) much better with the two points swapped."""
    order = np.arange(y.shape[1])
    order[[left, right]] = right, left
    found = []
    for _, frames in blocks(y):
        frames = np.asarray(frames, np.float64)[..., :2]
        where = np.flatnonzero(_on_the_other_side(frames, body, left, right))
        as_is, other = (_misfit(f, body) for f in (frames[where], frames[where][:, order]))
        with np.errstate(invalid="ignore"):
            where = where[other < BETTER * as_is]
        found.append(np.isin(np.arange(len(frames)), where))
    return np.concatenate(found)


def _on_the_other_side(frames, body, left, right):
    """Frames (T,) in which the two points lie across the body the other way: only these can be swapped."""
    pair, across = [left, right], frames[:, left] - frames[:, right]
    frames, flat = frames.copy(), body.copy()
    frames[:, pair], flat[pair] = frames[:, pair].mean(1, keepdims=True), flat[pair].mean(0)
    seen = np.isfinite(frames).all(-1, keepdims=True)
    middle = np.where(seen, frames, 0).sum(1) / np.maximum(seen.sum(1), 1)
    along = flat[:, 0] - flat[:, 0].mean()
    axis = np.sum(np.where(seen, along[:, None] * (frames - middle[:, None]), 0), 1)
    turned = axis[:, 0] * across[:, 1] - axis[:, 1] * across[:, 0]
    with np.errstate(invalid="ignore"):
        return turned * (body[left, 1] - body[right, 1]) < 0


def _misfit(frames, body):
    """Mean squared distance (T,) of the points that are seen from the body, after the best turn."""
    away = np.sum((keypoints.aligned(frames, body, keypoints.trust(frames, body)) - body) ** 2, -1)
    seen = np.isfinite(away)
    return np.where(seen, away, 0).sum(1) / np.maximum(seen.sum(1), 1)


def mirrored(data: Recordings, samples: list[np.ndarray]) -> list[str]:
    """Recordings whose bodies are mirror images of the others: y counts up in some and down in the others."""
    if len(samples) < 2 or not all(is_points(s) and s.shape[1] >= 3 for s in samples):
        return []
    like = next((keypoints.posture(s, ())[:, :2] for s in samples if len(s) >= 20), None)
    if like is None:
        return []
    turned = np.array([_is_mirrored(s, like) for s in samples])
    fewer = turned if turned.sum() * 2 <= len(turned) else ~turned
    names = [name for name, other in zip(data.names, fewer, strict=True) if other]
    words = "the body is a mirror image of that in the other recordings; does y count the other way there?"
    return [f"{listed(names, 5)}: {words}"] if names else []


def _is_mirrored(frames, body):
    as_is, other = (np.median(_misfit(frames[..., :2], b)) for b in (body, body * [1, -1]))
    return bool(other < BETTER * as_is)


# --- who is who ---------------------------------------------------------------------------------------------------


def exchanged(data: Recordings) -> list[str]:
    """Animals that jump into each other's place at the same frame: a tracker took one for the other."""
    if len(data.sequences) < 2 or not all(map(is_points, data.sequences)):
        return []
    paths = {name: _Path(y) for name, y in zip(data.names, data.sequences, strict=True)}
    paths = {name: path for name, path in paths.items() if len(path.jumps)}
    said = []
    for one, other in itertools.combinations(paths, 2):
        when = _changes(paths[one], paths[other])
        if len(when):
            said.append(f"{one} and {other} change places {len(when)} times, first at frame {when[0]}; swap them back.")
    return said


class _Path:
    """Where an animal is, frame by frame, and the frames at which it jumps."""

    def __init__(self, y: Any):
        self.place = np.concatenate([_middle(np.asarray(frames, np.float64)[..., :2]) for _, frames in blocks(y)])
        seen = np.flatnonzero(np.isfinite(self.place).all(1))
        last = np.zeros(len(self.place), int)
        last[seen] = seen
        self.place = self.place[np.maximum.accumulate(last)]  # where it is not seen, where it was
        self.far = FAR * _length(sampled(y))
        self.jumps = np.flatnonzero(np.linalg.norm(np.diff(self.place, axis=0), axis=1) > self.far) + 1


def _middle(xy):
    seen = np.isfinite(xy).all(-1, keepdims=True)
    return np.where(seen, xy, 0).sum(1) / np.where(seen.any(1), seen.sum(1), np.nan)


def _length(frames):
    apart = np.linalg.norm(frames[:, :, None, :2] - frames[:, None, :, :2], axis=-1).max((1, 2), initial=0)
    return float(np.nanmedian(apart)) if np.isfinite(apart).any() else np.inf


def _changes(a: _Path, b: _Path) -> np.ndarray:
    """Frames at which both jump, each to where the other was."""
    if len(a.place) != len(b.place):
        return np.zeros(0, int)
    t = np.intersect1d(a.jumps, b.jumps)
    stay = np.linalg.norm(a.place[t] - a.place[t - 1], axis=1) + np.linalg.norm(b.place[t] - b.place[t - 1], axis=1)
    cross = np.linalg.norm(a.place[t] - b.place[t - 1], axis=1) + np.linalg.norm(b.place[t] - a.place[t - 1], axis=1)
    return t[cross < BETTER * stay]
