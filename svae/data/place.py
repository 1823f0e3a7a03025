"""Where an animal is in its room, as tracked points of the room tell: how far its middle and its front are from a wall.

Alignment to the body forgets the place, and some behaviour is known by it: a mouse that rears leans on a wall. Only
what can be reached counts, so distances end at one body length. They have the unit of the points, and depend on neither
where the camera stands nor which wall is near.
"""

import numpy as np
from jaxtyping import Float, Int

from .keypoints import body_length


def walls(places: Float[np.ndarray, "N 2"]) -> Int[np.ndarray, " corners"]:
    """Which of the still points are corners of the room, in order around it; none where they span no area."""
    from scipy.spatial import ConvexHull, QhullError

    if len(places) < 3 or not np.isfinite(places).all():
        return np.zeros(0, int)
    try:
        return ConvexHull(places).vertices.astype(int)
    except QhullError:
        return np.zeros(0, int)


def corners(points: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """Corners (T, C, 2) where they are seen in each frame; one that is not stands where it stood in the fit."""
    return np.where(np.isfinite(points).all(-1, keepdims=True), points, floor)


def inside(points: Float[np.ndarray, "T n 2"], room: Float[np.ndarray, "T C 2"]) -> Float[np.ndarray, "T n"]:
    """Distance of each point from the nearest wall, below zero beyond it; corners go around either way."""
    along = np.roll(room, -1, 1) - room
    away = points[:, :, None] - room[:, None]  # (T, n, C, 2)
    left = along[:, None, :, 0] * away[..., 1] - along[:, None, :, 1] * away[..., 0]
    turn = np.sign(np.sum(room[..., 0] * np.roll(room[..., 1], -1, 1) - room[..., 1] * np.roll(room[..., 0], -1, 1), 1))
    length = np.maximum(np.linalg.norm(along, axis=-1), 1e-9)[:, None]
    return np.min(turn[:, None, None] * left / length, -1)


def place(points: np.ndarray, room: np.ndarray, body: np.ndarray) -> Float[np.ndarray, "T 1 d"]:
    """Distances of the middle of the points that are seen and of the foremost point, as one more row beside them."""
    seen = np.isfinite(points).all(-1, keepdims=True)
    xy = np.where(seen, points[..., :2], np.nan).astype(np.float64)
    middle = np.where(seen, xy, 0).sum(1) / np.where(seen.any(1), seen.sum(1), np.nan)
    ends = np.stack([middle, xy[:, int(np.argmax(body[:, 0]))]], 1)
    far = body_length(body)
    row = np.clip(inside(ends, room), -far, far)
    return np.concatenate([row, np.zeros((len(row), points.shape[-1] - 2))], -1)[:, None]
