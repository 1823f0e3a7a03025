"""What raw frames go through before a model sees them; found once when it is fitted, then part of the model.

| kind      | frames                  | becomes                                                              |
|-----------|-------------------------|----------------------------------------------------------------------|
| none      | any                     | themselves                                                           |
| keypoints | (P, 2) or (P, 3)        | centred on the body and turned to its heading; three or more points  |
|           |                         | that stand still become one row: how far the body is from a wall;    |
|           |                         | a last row has how fast the body goes and turns (`data.motion`)      |
| distances | (P, 2) or (P, 3)        | logarithms of the distances between points of the body, and that row |
| frames    | (H, W) or (H, W, C)     | grey, resized                                                        |
| depth     | (H, W)                  | clipped to percentiles, resized                                      |
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import images, keypoints, motion, place
from .motion import Channel
from .recordings import DataError, Recordings
from .views import Mapped, View, cut

KINDS = ("none", "keypoints", "distances", "frames", "depth")
POINTS = ("keypoints", "distances")
LARGE = 64  # pixels; longer sides are resized unless told otherwise
SIZE = 32  # pixels of the longer side after that
PERCENTILES = (0.5, 99.5)  # of depth
LEAST_DISTANCE = (
    0.05  # of a body length, added to a distance before its logarithm: points that meet are not far apart in it
)
RUNS, RUN = 40, 100  # stretches of frames, and frames in each, on which it is found


@dataclass(frozen=True)
class Preprocess:
    """A map of frames (T, *event) to frames (T, *event after); speeds look at `reach` frames on either side."""

    kind: str = "none"
    keep: tuple[int, ...] = ()  # points: which of them stay
    body: tuple[tuple[float, ...], ...] = ()  # points: the reference posture of those
    room: tuple[int, ...] = ()  # points: which are corners of the room, around it
    floor: tuple[tuple[float, ...], ...] = ()  # points: where those corners stood
    limits: tuple[float, ...] = ()  # points: how far from its place each may be; () = anywhere, as in older models
    motion: tuple[Channel, ...] = ()  # keypoints: forward speed and turning; () = no row for them, as in older models
    reach: int = 0  # frames on either side that speeds are taken from
    size: tuple[int, int] | None = None  # frames, depth: (H, W) after
    low: float | None = None  # depth: values are clipped to [low, high]
    high: float | None = None

    def shape(self, event: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a frame afterwards; DataError for frames that it is not made for."""
        if self.kind == "none":
            return tuple(event)
        if self.kind in POINTS:
            return self._points(event)
        if len(event) not in (2, 3) or (len(event) == 3 and event[2] not in (1, 3, 4)):
            raise DataError(f"Preprocessing of {self.kind} needs images (H, W) or (H, W, C), not frames of {event}.")
        return self.size

    def _points(self, event):
        most = max(self.keep + self.room)
        if len(event) != 2 or event[1] != len(self.body[0]) or event[0] <= most:
            raise DataError(
                f"The model's keypoints are {most + 1} points in {len(self.body[0])} dimensions at least, "
                f"the data have frames of {event}."
            )
        P = len(self.keep)
        if self.kind == "distances":
            return P * (P - 1) // 2 + 2 * bool(self.room), 1
        return P + bool(self.room) + bool(self.motion), event[1]

    def apply(self, frames: np.ndarray) -> np.ndarray:
        """(T, *event) to (T, *event after); NaN stays missing, and an infinite value stays for `check` to find."""
        if self.kind == "none":
            return frames
        if self.kind in POINTS:
            return self._seen(frames).astype(np.float32)
        pixels = images.gray(frames)
        if self.kind == "depth":
            pixels = np.clip(pixels, self.low, self.high)
        if np.isinf(pixels).any():
            raise DataError("A frame holds infinite pixels; replace them by NaN (missing) or clip them.")
        return images.resize(pixels, self.size).astype(np.float32)

    def _seen(self, frames):
        """The points of the body by themselves, then its place."""
        points, body = frames[:, list(self.keep)], np.array(self.body)
        points, weights = self._without_wild(points)
        if self.kind == "keypoints":
            shape = np.where(np.isinf(points), points, keypoints.aligned(points, body, weights))
        else:
            far = keypoints.body_length(body)
            shape = far * keypoints.distances(points, LEAST_DISTANCE * far)
        if self.room:
            shape = np.concatenate([shape, self._place(frames, points, body)], 1)
        if self.motion:
            speed = motion.speeds(points, body, weights, self.reach)
            shape = np.concatenate([shape, motion.row(speed, self.motion, frames.shape[-1])], 1)
        return shape

    def _place(self, frames, points, body):
        room = place.corners(frames[:, list(self.room), :2], np.array(self.floor))
        found = place.place(points, room, body)
        if self.kind == "distances":  # a point takes part in P - 1 distances, so the place counts as often
            found = np.sqrt(len(body) - 1) * np.moveaxis(found[..., :2], 1, 2)
        return found

    def _without_wild(self, points):
        if not self.limits:
            return points, keypoints.seen(points)
        found, weights = keypoints.without_wild(points, np.array(self.body), np.array(self.limits))
        return np.where(np.isinf(points), points, found), weights

    def wild(self, frames: np.ndarray) -> np.ndarray:
        """Which points (T, kept) are seen and yet count as missing, because they lie too far from the body."""
        points = frames[:, list(self.keep)]
        return keypoints.seen(points) > keypoints.seen(self._without_wild(points)[0])

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON knows."""
        lists = {"keep": list(self.keep), "room": list(self.room), "limits": list(self.limits)}
        lists |= {"body": [list(point) for point in self.body], "floor": [list(point) for point in self.floor]}
        lists |= {"motion": [list(channel) for channel in self.motion]}
        return dataclasses.asdict(self) | lists | {"size": None if self.size is None else list(self.size)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Preprocess":
        """What `to_dict` gave; anything else is a ValueError."""
        try:
            values = {
                "room": [],
                "floor": [],
                "limits": [],
                "motion": [],
                "reach": 0,
            } | values  # older models have none
            made = cls(
                str(values["kind"]),
                tuple(int(i) for i in values["keep"]),
                tuple(tuple(float(x) for x in point) for point in values["body"]),
                tuple(int(i) for i in values["room"]),
                tuple(tuple(float(x) for x in point) for point in values["floor"]),
                tuple(float(x) for x in values["limits"]),
                tuple(Channel(float(usual), float(gain)) for usual, gain in values["motion"]),
                int(values["reach"]),
                None if values["size"] is None else tuple(int(n) for n in values["size"]),
                None if values["low"] is None else float(values["low"]),
                None if values["high"] is None else float(values["high"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no preprocessing is described by {values!r}") from error
        if made.kind not in KINDS or made.to_dict() != values or len(made.motion) not in (0, 2) or made.reach < 0:
            raise ValueError(f"no preprocessing is described by {values!r}")
        return made


def preprocessed(data: Recordings, by: Preprocess) -> Recordings:
    """All recordings as the model sees them, before units; nothing is read.

    Args:
        data: Recordings.
        by: The preprocessing, as `find_preprocess` finds it.

    Returns:
        Recordings of views.
    """
    if by.kind == "none":
        return data
    event = by.shape(tuple(data.sequences[0].shape[1:]))
    return data._replace(sequences=tuple(_seen_by(y, by, event) for y in data.sequences))


def _seen_by(y, by, event):
    """A recording as the model sees it. The one view of each recording remembers what it was settled to: a fit, its
    forecast, its answers and its baselines prepare the same recordings, and to align a body takes a while."""
    if not isinstance(y, View):
        return Mapped(y, by.apply, event, reach=by.reach)
    if y.seen_by is None or y.seen_by[0] != by:
        y.seen_by = by, Mapped(y, by.apply, event, reach=by.reach)
    return y.seen_by[1]


def find(data: Recordings, config: Any) -> Preprocess:
    """The preprocessing for these recordings that `config.preprocess` and `config.size` ask for.

    Args:
        data: Recordings.
        config: Options; `preprocess` and `size` are read.

    Returns:
        `Preprocess`, which becomes part of a model: `make(before.shape(event), config, preprocess=before)`.

    Examples:
        >>> import numpy as np
        >>> import svae
        >>> data = svae.load({"video": np.zeros((20, 64, 64))}, fps=30)
        >>> before = svae.data.find_preprocess(data, svae.Config(size=16))
        >>> before.shape((64, 64))
        (16, 16)
    """
    event = tuple(data.sequences[0].shape[1:])
    kind = config.preprocess if config.preprocess != "auto" else _guess(data.sequences[0], event, config.size)
    if kind == "none":
        return Preprocess()
    if kind in POINTS:
        return _find_points(data, event, kind)
    if len(event) not in (2, 3) or (len(event) == 3 and event[2] not in (1, 3, 4)):
        raise DataError(f'preprocess = "{kind}" needs images (H, W) or (H, W, C), the data have frames of {event}.')
    size = images.shrunk(*event[:2], config.size or min(SIZE, max(event[:2])))
    if kind == "frames":
        return Preprocess("frames", size=size)
    low, high = np.nanpercentile(_pixels(data), PERCENTILES)
    return Preprocess("depth", size=size, low=float(low), high=float(max(high, low)))


def _guess(y, event, size):
    """Keypoints are (P >= 3, 2 or 3); images are resized when they are large or a size is asked for."""
    if len(event) == 2 and event[0] >= 3 and event[1] in (2, 3):
        return "keypoints"
    image = (len(event) == 2 or (len(event) == 3 and event[2] in (1, 3, 4))) and min(event[:2]) >= 8
    if image and (size is not None or max(event[:2]) > LARGE):
        return "depth" if getattr(y, "kind", "") == "depth" else "frames"
    return "none"


def _find_points(data, event, kind):
    if len(event) != 2 or event[1] not in (2, 3) or event[0] < 2:
        raise DataError(f'preprocess = "{kind}" needs frames (P, 2) or (P, 3) of P >= 2 points, not {event}.')
    runs = [np.where(np.isfinite(run), run, np.nan) for run in _runs(data)]
    frames = np.concatenate(runs)
    keep = keypoints.moving_points(frames)
    names = tuple(getattr(data.sequences[0], "points", ()))
    named = tuple(names[i] for i in keep) if len(names) == event[0] else ()
    body = keypoints.posture(frames[:, keep], named)
    still = np.setdiff1d(np.arange(event[0]), keep)
    places = keypoints.median_places(frames[:, still])
    around = place.walls(places)
    room, floor = tuple(still[around].tolist()), _tuples(places[around])
    limits = tuple(keypoints.limits(frames[:, keep], body).tolist()) if len(keep) > 3 else ()
    found = Preprocess(kind, tuple(keep.tolist()), _tuples(body), room, floor, limits)
    return found if kind != "keypoints" else _with_motion(found, runs, motion.reach(data.fps))


def _with_motion(before: Preprocess, runs: list[np.ndarray], reach: int) -> Preprocess:
    """The preprocessing with a row of speeds, where they say more than tracking noise."""
    clean = [before._without_wild(run[:, list(before.keep)]) for run in runs]
    moved = [motion.speeds(points, np.array(before.body), weights, reach) for points, weights in clean]
    points = np.concatenate([before.apply(run)[:, : len(before.keep)] for run in runs])
    middle = np.nanmedian(np.where(np.isnan(points).all(0), 0.0, points), 0)
    variance = float(np.nansum((points - middle) ** 2) / len(points))
    found = motion.channels(moved, variance, reach)
    return dataclasses.replace(before, motion=found, reach=reach) if any(c.gain for c in found) else before


def wild_shares(data: Recordings, by: Preprocess) -> np.ndarray:
    """The share of frames in which each point of the body is wild (kept,), from stretches of all recordings.

    Args:
        data: Recordings of keypoints.
        by: Their preprocessing.

    Returns:
        Shares (kept,).
    """
    if by.kind not in POINTS:
        return np.zeros(0)
    return np.concatenate([by.wild(run) for run in _runs(data)]).mean(0)


def _tuples(rows):
    return tuple(tuple(map(float, row)) for row in rows)


def _pixels(data):
    values = np.concatenate([images.gray(run).reshape(-1)[::7] for run in _runs(data)])
    return values if np.isfinite(values).any() else np.zeros(1)


def _runs(data):
    """Stretches of consecutive frames, spread evenly over all recordings."""
    each = -(-RUNS // len(data.sequences))
    for y in data.sequences[:: max(1, len(data.sequences) // RUNS)]:
        for first in np.unique(np.linspace(0, max(0, len(y) - RUN), each).astype(int)):
            yield np.asarray(cut(y, int(first), min(len(y), int(first) + RUN)))
