"""Imputed keypoints put back where they were filmed: from the frame of the body to the coordinates of the file."""

from typing import Any, NamedTuple

import numpy as np

from svae.config import ConfigError


class Filled(NamedTuple):
    """One recording in the units and coordinates of its file."""

    frames: np.ndarray  # (T, ...)
    sd: np.ndarray  # of each point (T, P), or of each entry
    new: np.ndarray  # bool: which points or entries were filled in
    between: int  # frames in which fewer than two points were seen: their place is interpolated


def filled(before: Any, raw: np.ndarray, frames: np.ndarray, sd: np.ndarray) -> Filled:
    """From frames (T, ...) as the model sees them; `before` is its preprocessing, raw are the frames of the file."""
    if before.kind == "none":
        return Filled(frames, sd, np.isnan(raw), 0)
    if before.kind != "keypoints":
        raise ConfigError(f"--to csv cannot undo the preprocessing of this model ({before.kind}); leave --to out")
    keep, d = list(before.keep), raw.shape[-1]
    inside, seen = frames[:, : len(keep), :2].astype(float), raw[:, keep].astype(float)
    turn, move, between = _placed(inside, seen[..., :2])
    cos, sin = np.cos(turn)[:, None], np.sin(turn)[:, None]
    x, y = inside[..., 0], inside[..., 1]
    back = np.stack([cos * x - sin * y + move[:, :1], sin * x + cos * y + move[:, 1:]], -1)
    if d == 3:
        height = frames[:, : len(keep), 2:] + np.array(before.body)[:, 2:].mean(0)
        back = np.concatenate([back, height], -1)
    new = np.zeros(raw.shape[:2], bool)
    new[:, keep] = ~np.isfinite(seen).all(-1) & np.isfinite(back).all(-1)
    whole, spread = raw.astype(float).copy(), np.zeros(raw.shape[:2])
    whole[:, keep] = np.where(new[:, keep, None], back, seen)
    spread[:, keep] = np.where(new[:, keep], np.sqrt(np.mean(sd[:, : len(keep), :2] ** 2, -1)), 0)
    return Filled(whole, spread, new, between)


def _placed(inside: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Turn (T,) and move (T, 2) of each frame by its points that were seen; frames with fewer than 2 lie between."""
    here = np.isfinite(seen).all(-1)
    count = np.maximum(here.sum(1), 1)[:, None]
    middle = lambda points: np.where(here[..., None], points, 0).sum(1) / count  # noqa: E731
    a, b = (np.where(here[..., None], p - middle(p)[:, None], 0) for p in (inside, seen))
    turn = np.arctan2(np.sum(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0], 1), np.sum(a * b, (1, 2)))
    known = np.flatnonzero(here.sum(1) >= 2)
    if len(known) == 0:
        raise ConfigError("no frame of a recording has two points in view, so nobody knows where the animal was")
    every = np.arange(len(seen))
    turn = np.interp(every, known, np.unwrap(turn[known]))
    body = inside.mean(1)  # a place that every frame has: the middle of all of its points
    cos, sin = np.cos(turn)[:, None], np.sin(turn)[:, None]
    turned = lambda p: np.concatenate([cos * p[:, :1] - sin * p[:, 1:], sin * p[:, :1] + cos * p[:, 1:]], 1)  # noqa: E731
    offset = middle(seen) - turned(middle(inside)) + turned(body)  # where that middle was
    offset = np.stack([np.interp(every, known, offset[known, i]) for i in range(2)], -1)
    return turn, offset - turned(body), len(seen) - len(known)
