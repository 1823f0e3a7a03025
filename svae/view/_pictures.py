"""How frames go to the page: images as levels of grey, bodies as points, anything else as traces of a few columns."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from svae.data import Preprocess, Recordings, preprocessed, sample_frames
from svae.data.images import shrunk
from svae.report._skeleton import shortest

SMALL_FRAME, SAMPLED = 512, 2000  # numbers of a frame that is quickly read, and how many of those are
STRETCHES, STRETCH = 8, 32  # of larger frames, and frames of each
LONGEST_SIDE = 256  # pixels of an image that is shown
TRACES = 6  # columns that are shown, those with the most variance
BODY, ARENA = (2, 98), (0.3, 99.7)  # percentiles: a tracker that loses the animal must not shrink it
ROOM = 0.15  # around what is drawn, on each side


class Look(NamedTuple):
    """Limits are of the values for images, of x and y for points, and of each shown column for traces."""

    kind: str  # image, points, traces
    low: np.ndarray
    high: np.ndarray
    colours: str = "gray"  # or magma: of images with one channel
    edges: tuple[tuple[int, int], ...] = ()  # points joined by lines
    columns: tuple[int, ...] = ()
    points: int = 0  # rows of a frame that are points of the body; a place in the room is not drawn
    names: tuple[str, ...] = ()  # of the points, where the file names them
    sides: tuple[str, ...] = ()  # left, right or "" for each
    nose: int = -1  # which point it is
    upwards: bool = False  # whether y points up, as in the world, or down, as in a picture

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON knows."""
        return self._asdict() | {"low": self.low.tolist(), "high": self.high.tolist()}


def find_look(frames: np.ndarray, before: Preprocess, kind: str) -> Look:
    """For frames (n, *event) as the model sees them; `kind` is what their file calls them."""
    event = frames.shape[1:]
    if before.kind == "keypoints" or (len(event) == 2 and event[0] >= 3 and event[1] in (2, 3)):
        return points_look(frames[:, : len(before.keep) or event[0]])
    channels = len(event) == 3 and event[2] in (1, 3, 4)
    if (len(event) == 2 or channels) and min(event[:2]) >= 8:
        low, high = np.nanpercentile(frames, [0.5, 99.8])
        gray = kind == "frames" or before.kind == "frames"
        return Look("image", np.array(low), np.array(max(high, low + 1e-9)), "gray" if gray else "magma")
    return _traces(frames.reshape(len(frames), -1))


def some_frames(data: Recordings) -> np.ndarray:
    """Frames (n, *event) from which limits are found; single images of a video would each cost a stretch of it."""
    if int(np.prod(data.sequences[0].shape[1:])) <= SMALL_FRAME:
        return np.asarray(sample_frames(data, SAMPLED, 0), float)
    long = sorted(data.sequences, key=len)[-STRETCHES:]
    each = -(-STRETCHES // len(long))
    starts = [(y, int(a)) for y in long for a in np.linspace(0, max(0, len(y) - STRETCH), each)]
    return np.concatenate([np.asarray(y[a : a + STRETCH], float) for y, a in starts])


def points_look(frames: np.ndarray, within: tuple[float, float] = BODY) -> Look:
    """Room around all points (n, P, 2 or 3) but those outside of two percentiles."""
    xy = frames[..., :2].reshape(-1, 2)
    low, high = np.nanpercentile(xy, within, axis=0)
    room = ROOM * (high - low).max() + 1e-9
    look = Look("points", low - room, high + room, edges=shortest(frames[..., :2]), upwards=frames.shape[-1] == 3)
    return look._replace(points=frames.shape[1])


def _traces(columns):
    low, high = np.nanpercentile(columns, [0.5, 99.5], axis=0)
    chosen = np.sort(np.argsort(-np.nanvar(columns, axis=0), kind="stable")[:TRACES])
    room = ROOM * (high - low) + 1e-9
    return Look("traces", (low - room)[chosen], (high + room)[chosen], columns=tuple(map(int, chosen)))


def drawable(look: Look, frames: np.ndarray) -> np.ndarray:
    """Frames (n, *event) as bytes (n, H, W) or (n, H, W, 3), points (n, P, 2), or columns (n, C)."""
    if look.kind == "points":
        return frames[:, : look.points, :2].astype(np.float32)
    if look.kind == "traces":
        return frames.reshape(len(frames), -1)[:, list(look.columns)].astype(np.float32)
    level = np.nan_to_num((frames - look.low) / (look.high - look.low), nan=0.0)
    pixels = np.round(255 * np.clip(level, 0, 1)).astype(np.uint8)
    if pixels.ndim == 4:
        return pixels[..., :3] if pixels.shape[-1] >= 3 else pixels[..., 0]
    return pixels


def shown(raw: Recordings, before: Preprocess) -> Recordings:
    """The recordings as the model sees them, but images as large as they were recorded, to a limit."""
    event = tuple(raw.sequences[0].shape[1:])
    if before.kind not in ("frames", "depth"):
        return preprocessed(raw, before)
    size = shrunk(*event[:2], min(LONGEST_SIDE, max(event[:2])))
    return preprocessed(raw, dataclasses.replace(before, size=size))
