"""Keypoints in the frame of the body: moved and turned, frame by frame, onto a reference posture.

The reference is found without names: squared distances between points do not depend on where the animal is or looks,
and classical scaling of their medians gives the posture up to rotation and reflection. Its long axis becomes x. The
rotation of a frame is the best one for the points that are seen in it, so missing points do not shift the rest.

Trackers put a point somewhere else now and then. One such point moves the mean of a frame and turns all of it, so each
point counts as far as its distances to the others, and then its place, are those of the reference (Cauchy weights). A
point that lies farther from its place than its limit is wild, and counts as missing.
"""

import numpy as np
from jaxtyping import Float, Int

FRONT = ("nose", "snout", "head", "mouth", "muzzle", "eye", "ear", "beak", "proboscis", "neck")
BACK = ("tail", "abdomen", "hip", "rump", "hind", "rear", "back paw", "anus")
SLACK = 0.15  # of a body length: a point that is off by so much has half of its weight in the alignment
ROUNDS = 3  # of weighted alignment
USUAL, BEYOND, LEAST_LIMIT = 0.9, 2.0, 0.4  # a limit: twice what 9 of 10 frames keep to, at least 0.4 body lengths
STILL = 0.05  # of the largest movement of any point; a point that moves less belongs to the room, not the animal


def moving_points(frames: Float[np.ndarray, "T P d"]) -> Int[np.ndarray, " kept"]:
    """Points that move with the animal: corners of an arena, tracked too, are left out."""
    low, high = np.nanpercentile(_enough(frames[..., :2]), [16, 84], axis=0)
    spread = np.nan_to_num(np.linalg.norm(high - low, axis=-1))
    kept = np.flatnonzero(spread > STILL * spread.max())
    return kept if len(kept) >= 2 else np.arange(frames.shape[1])


def median_places(frames: Float[np.ndarray, "T P d"]) -> Float[np.ndarray, "P 2"]:
    """Where points are most of the time."""
    return np.nanmedian(_enough(frames[..., :2]), 0)


def _enough(xy):
    """Columns without any value get one, so that no percentile is asked of nothing."""
    return np.where(np.isnan(xy).all(0), 0.0, xy)


def posture(frames: Float[np.ndarray, "T P d"], names: tuple[str, ...]) -> Float[np.ndarray, "P d"]:
    """The reference: x along the body towards its head, y to one side, and the median height of each point."""
    xy = frames[..., :2].astype(np.float64)
    flat = _scaled(_median_distances(xy))
    mirrored = flat * [1, -1]
    flat = min((flat, mirrored), key=lambda body: _misfit(xy, body))
    flat = _towards_head(flat, xy, names)
    if frames.shape[-1] == 2:
        return flat
    return np.concatenate([flat, np.nanmedian(_enough(frames[..., 2:]), 0)], 1)


def _median_distances(xy):
    """Medians over time of |y_p - y_q|²; pairs that are never seen together get the median of the rest."""
    P = xy.shape[1]
    squared = np.full((P, P), np.nan)
    for p in range(P):
        between = np.sum((xy - xy[:, p : p + 1]) ** 2, -1)
        together = ~np.isnan(between).all(0)
        squared[p, together] = np.nanmedian(between[:, together], 0)
    np.fill_diagonal(squared, 0)
    known = squared[np.isfinite(squared) & (squared > 0)]
    return np.where(np.isnan(squared), np.median(known) if known.size else 0.0, squared)


def _scaled(squared):
    """Classical multidimensional scaling to the plane, longest axis first."""
    centred = squared - squared.mean(0)
    values, vectors = np.linalg.eigh(-0.5 * (centred - centred.mean(1, keepdims=True)))
    plane = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0))
    return plane[:, ::-1]


def _misfit(xy, body):
    return np.nanmedian(np.sum((aligned(xy, body, trust(xy, body)) - body) ** 2, -1))


def _towards_head(body, xy, names):
    """Turned so that x points to the front: by names where they tell, else forwards is where the body moves."""
    front, back = _named(body, names, FRONT, BACK), _named(body, names, BACK, ())
    if front is not None or back is not None:
        centre = body.mean(0)
        x, y = (centre if front is None else front) - (centre if back is None else back)
        length = np.hypot(x, y)
        return body @ (np.array([[x, -y], [y, x]]) / length) if length > 0 else body
    weights = trust(xy, body)
    cos, sin = rotation(xy, body, weights)
    with np.errstate(invalid="ignore"):
        step = np.diff(_mean(xy, weights), axis=0)
    forwards = np.nansum(cos[:-1] * step[:, 0] - sin[:-1] * step[:, 1])
    return body if forwards >= 0 else -body


def _named(body, names, words, but):
    """Mean place of the points whose names hold one of the words and none of `but` ("rear" has an "ear"), or None."""
    plain = [name.lower().replace("_", " ") for name in names]
    which = [any(w in name for w in words) and not any(w in name for w in but) for name in plain]
    return body[which].mean(0) if len(names) == len(body) and any(which) else None


def _mean(xy, weights):
    """Mean over points (T, P, 2) with weights (T, P), those of unseen points 0; 0 where no point is seen."""
    total = weights.sum(1)
    sums = np.where(weights[..., None] > 0, weights[..., None] * np.nan_to_num(xy), 0).sum(1)
    return sums / np.where(total > 0, total, 1)[:, None]


def seen(xy: Float[np.ndarray, "T P d"]) -> Float[np.ndarray, "T P"]:
    """1 for a point that is seen, else 0: the weights of plain least squares."""
    return np.isfinite(xy).all(-1).astype(float)


def body_length(body: Float[np.ndarray, "P d"]) -> float:
    """Twice the root mean square distance of its points from their middle; a thin tail adds little."""
    flat = body[:, :2]
    return 2 * float(np.sqrt(np.mean(np.sum((flat - flat.mean(0)) ** 2, 1))))


def trust(xy: Float[np.ndarray, "T P 2"], body: Float[np.ndarray, "P 2"]) -> Float[np.ndarray, "T P"]:
    """How far each point counts in the alignment of its frame, from 0 (missing, or far from where it belongs) to 1."""
    there = seen(xy)
    if xy.shape[1] < 4:  # too few to say which of them is wrong
        return there
    slack = SLACK * body_length(body)
    weights = there * _cauchy(_misplaced(xy, body), slack)
    for _ in range(ROUNDS):
        away = np.linalg.norm(aligned(xy, body, weights) - body, axis=-1)
        weights = there * _cauchy(away, slack)
    return weights


def _cauchy(away, slack):
    return 1 / (1 + (np.nan_to_num(away, posinf=1e6) / slack) ** 2)


def _misplaced(xy, body):
    """By how much the distances (T, P) from each point to the others differ from the body's, in the median."""
    with np.errstate(invalid="ignore"):
        there = np.linalg.norm(xy[:, :, None] - xy[:, None], axis=-1)
    off = np.abs(there - np.linalg.norm(body[:, None] - body[None], axis=-1))
    off[:, np.arange(len(body)), np.arange(len(body))] = np.nan
    known = np.isfinite(off).any(-1)
    return np.where(known, np.nanmedian(np.where(known[..., None], off, 0), -1), 0)


def limits(frames: Float[np.ndarray, "T P d"], body: Float[np.ndarray, "P d"]) -> Float[np.ndarray, " P"]:
    """How far from its place in the body each point may be before it is wild."""
    xy, flat = frames[..., :2].astype(np.float64), body[:, :2]
    away = np.linalg.norm(aligned(xy, flat, trust(xy, flat)) - flat, axis=-1)
    usual = np.nanquantile(np.where(np.isnan(away).all(0), 0.0, away), USUAL, axis=0)
    return np.maximum(BEYOND * usual, LEAST_LIMIT * body_length(body))


def without_wild(
    frames: Float[np.ndarray, "T P d"], body: Float[np.ndarray, "P d"], limit: Float[np.ndarray, " P"]
) -> tuple[Float[np.ndarray, "T P d"], Float[np.ndarray, "T P"]]:
    """Frames whose wild points are missing, and the weights of the rest in the alignment."""
    xy, flat = frames[..., :2].astype(np.float64), body[:, :2]
    weights = trust(xy, flat) * seen(frames)
    with np.errstate(invalid="ignore"):
        wild = np.linalg.norm(aligned(xy, flat, weights) - flat, axis=-1) > limit
    return np.where(wild[..., None], np.nan, frames), np.where(wild, 0, weights)


def rotation(xy: np.ndarray, body: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cosine and sine of the turn that brings each frame (P, 2) closest to the body, in weighted least squares."""
    here = np.where(weights[..., None] > 0, xy - _mean(xy, weights)[:, None], 0)
    there = weights[..., None] * (body - _mean(np.broadcast_to(body, xy.shape), weights)[:, None])
    along = np.sum(here * there, (1, 2))
    across = np.sum(here[..., 0] * there[..., 1] - here[..., 1] * there[..., 0], 1)
    length = np.hypot(along, across)
    safe = np.where(length > 0, length, 1.0)
    return np.where(length > 0, along / safe, 1.0), across / safe


def heading_and_middle(
    frames: np.ndarray, body: np.ndarray, weights: np.ndarray
) -> tuple[Float[np.ndarray, "T 2"], Float[np.ndarray, "T 2"]]:
    """Where each frame's body looks, a unit vector, and where its middle is; the middle is NaN where none is seen."""
    there = weights > 0
    xy, flat = np.where(there[..., None], frames[..., :2], np.nan).astype(np.float64), body[:, :2]
    cos, sin = rotation(xy, flat, weights)
    away = flat.mean(0) - _mean(np.broadcast_to(flat, xy.shape), weights)
    middle = _mean(xy, weights) + np.stack(
        [cos * away[:, 0] + sin * away[:, 1], cos * away[:, 1] - sin * away[:, 0]], 1
    )
    seen_at_all = there.sum(1, keepdims=True) >= 2
    return np.stack([cos, -sin], 1), np.where(seen_at_all, middle, np.nan)


def distances(points: np.ndarray, least: float) -> np.ndarray:
    """log(|y_p - y_q| + least) of all pairs (T, P (P - 1) / 2, 1): the shape of a body, however it lies and looks."""
    first, second = np.triu_indices(points.shape[1], 1)
    with np.errstate(invalid="ignore"):  # two infinite points; `check` finds those
        between = points[:, first].astype(np.float64) - points[:, second]
    return np.log(np.linalg.norm(between, axis=-1, keepdims=True) + least)


def aligned(frames: np.ndarray, body: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(T, P, 2 or 3) in the frame of the body, each point counting with its weight (T, P).

    A frame in which fewer than 2 points are seen is missing.
    """
    there = seen(frames).astype(bool)
    xy = np.where(there[..., None], frames[..., :2], np.nan).astype(np.float64)
    flat = body[:, :2]
    cos, sin = (a[:, None] for a in rotation(xy, flat, weights))
    x, y = np.moveaxis(xy - _mean(xy, weights)[:, None], -1, 0)
    turned = np.stack([cos * x - sin * y, sin * x + cos * y], -1)
    turned = turned + _mean(np.broadcast_to(flat, xy.shape), weights)[:, None]
    height = np.where(there[..., None], frames[..., 2:] - body[:, 2:].mean(0), np.nan)
    both = np.concatenate([turned, height], -1)
    return np.where((there.sum(1) >= 2)[:, None, None], both, np.nan)
