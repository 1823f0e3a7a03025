"""How a frame of a run is drawn: as an image, as the points of a body, or as traces."""

import dataclasses
from typing import NamedTuple

import numpy as np

from svae.data import Recordings, preprocessed, sample_frames
from svae.data.images import resize, shrunk
from svae.report import _raster
from svae.report._material import Material
from svae.report._skeleton import Skeleton, find, shortest

SAMPLED = 400  # frames from which limits are found
LONGEST = 192  # pixels of an image that is shown
TRACES = 6  # columns that are shown, those with the most variance
PAPER, BONE, GREY = (247, 248, 250), (70, 74, 82), (150, 153, 160)  # ground, lines between points, and what stands back
WIDEST = 1.7  # times as wide as high, or as high as wide
LEFT, RIGHT = 0.55, 0.42  # how far a left point is on the way to white, and a right one to black
AROUND = 1.5  # seconds that a trace shows to each side of the moment


class Look(NamedTuple):
    """Limits are of the values for images, of x and y for points, and of each shown column for traces."""

    kind: str  # image, points, traces
    low: np.ndarray
    high: np.ndarray
    edges: tuple[tuple[int, int], ...] = ()  # points joined by lines
    points: int = 0  # rows of a frame that are points of the body; a place in the room is not drawn
    columns: tuple[int, ...] = ()
    colours: np.ndarray | None = None  # (256, 3) bytes for images of one channel
    around: int = 45  # frames that a trace shows to each side of the moment
    skeleton: Skeleton | None = None  # of points whose file names them


def find_look(material: Material) -> Look:
    """For the recordings that the model sees."""
    frames = np.asarray(sample_frames(material.seen, SAMPLED, 0), float)
    event, known = frames.shape[1:], getattr(material.raw.sequences[0], "kind", "")
    before = material.model.preprocess
    if before.kind == "keypoints":
        points = frames[:, : len(before.keep)]
        bones = find(material.run, material.raw.sequences[0], before.keep, points[..., :2], np.array(before.body))
        return _points(points)._replace(edges=bones.edges, skeleton=bones)
    if len(event) == 2 and event[0] >= 3 and event[1] in (2, 3):
        return _points(frames)
    channels = len(event) == 3 and event[2] in (1, 3, 4)
    if (len(event) == 2 or channels) and min(event[:2]) >= 8:
        return _image(frames, "gray" if known == "frames" or material.model.preprocess.kind == "frames" else "magma")
    return _traces(frames.reshape(len(frames), -1))._replace(around=max(4, round(AROUND * (material.fps or 30.0))))


def _image(frames, colours):
    import matplotlib

    low, high = np.nanpercentile(frames, [0.5, 99.8])
    table = (matplotlib.colormaps[colours](np.arange(256))[:, :3] * 255).round().astype(np.uint8)
    return Look("image", np.array(low), np.array(max(high, low + 1e-9)), colours=table)


def _points(frames):
    """Room around the body; neither side is more than WIDEST times the other."""
    xy = frames[..., :2].reshape(-1, 2)
    low, high = np.nanpercentile(xy, [0.5, 99.5], axis=0)
    half = 0.6 * (high - low)
    half = np.maximum(half, half[::-1] / WIDEST) + 1e-9
    bones = shortest(frames[..., :2])
    return Look("points", (low + high) / 2 - half, (low + high) / 2 + half, edges=bones, points=frames.shape[1])


def _traces(columns):
    low, high = np.nanpercentile(columns, [1, 99], axis=0)
    chosen = np.sort(np.argsort(-np.nanvar(columns, axis=0), kind="stable")[:TRACES])
    margin = 0.1 * (high - low) + 1e-9
    return Look("traces", (low - margin)[chosen], (high + margin)[chosen], columns=tuple(map(int, chosen)))


def shown(material: Material) -> Recordings:
    """The recordings to look at: as the model sees them, but images as large as they were recorded, to a limit."""
    before, event = material.model.preprocess, tuple(material.raw.sequences[0].shape[1:])
    if before.kind not in ("frames", "depth"):
        return material.seen
    size = shrunk(*event[:2], min(LONGEST, max(event[:2])))
    return preprocessed(material.raw, dataclasses.replace(before, size=size))


# --- painting -----------------------------------------------------------------------------------------------------


def paint(look: Look, frames: np.ndarray, t: int, height: int, ink: tuple | None = None) -> np.ndarray:
    """Frame t of frames (T, *event) as a picture (height, width, 3); `ink` colours points and traces, not images."""
    if look.kind == "image":
        return _paint_image(look, frames[t], height)
    if look.kind == "points":
        return _paint_points(look, frames[t, : look.points], height, ink)
    return _paint_traces(look, frames.reshape(len(frames), -1), t, height, ink)


def picture_width(look: Look, event: tuple[int, ...], height: int) -> int:
    """Pixels of a picture of this height."""
    if look.kind == "image":
        return max(8, round(height * event[1] / event[0]))
    return 2 * height if look.kind == "traces" else round(height * _aspect(look))


def _aspect(look):
    """Width over height of the picture of a body."""
    width, height = look.high - look.low
    return float(width / height)


def _paint_image(look, image, height):
    size = (height, max(8, round(height * image.shape[1] / image.shape[0])))
    level = np.clip((np.nan_to_num(image, nan=float(look.low)) - look.low) / (look.high - look.low), 0, 1)
    if image.ndim == 3 and image.shape[2] >= 3:
        channels = resize(np.moveaxis(level[..., :3], -1, 0), size)
        return np.round(255 * np.moveaxis(channels, 0, -1)).astype(np.uint8)
    level = resize(level.reshape(1, *image.shape[:2]), size)[0]
    return look.colours[np.round(255 * np.clip(level, 0, 1)).astype(np.uint8)]


def _paint_points(look, points, height, ink):
    """On paper; y points down as in a video, but up where points have a height."""
    picture = _raster.canvas(height, round(height * _aspect(look)), PAPER)
    xy = (points[:, :2] - look.low) / (look.high[1] - look.low[1]) * (height - 1)
    xy = np.clip(xy if points.shape[1] == 2 else xy * [1, -1] + [0, height - 1], -height, 3 * height)
    sides = look.skeleton.sides if look.skeleton else ("",) * len(xy)
    nose = look.skeleton.nose if look.skeleton else -1
    for p, q in look.edges:
        _raster.segment(picture, xy[p], xy[q], height / 45, BONE if ink else GREY)
    for i, p in enumerate(xy):
        _raster.segment(picture, p, p, height / (11 if i == nose else 15), shade(ink or GREY, sides[i]))
    if nose >= 0:
        _raster.segment(picture, xy[nose], xy[nose], height / 22, PAPER)
    return picture


def shade(ink: tuple, side: str) -> tuple:
    """An ink lighter for what is left and darker for what is right."""
    if side == "left":
        return tuple(round(c + (255 - c) * LEFT) for c in ink)
    return tuple(round(c * (1 - RIGHT)) for c in ink) if side == "right" else ink


def _paint_traces(look, columns, t, height, ink):
    """Time runs through the middle of the picture; what is shown lies around t."""
    width = 2 * height
    picture = _raster.canvas(height, width, PAPER)
    times = np.linspace(t - look.around, t + look.around, width)
    picture[:, width // 2 - 1 : width // 2 + 1] = GREY
    band = height / len(look.columns)
    for row, c in enumerate(look.columns):
        y = np.interp(times, np.arange(len(columns)), columns[:, c], left=np.nan, right=np.nan)
        level = np.clip((y - look.low[row]) / (look.high[row] - look.low[row]), 0, 1)
        _raster.curve(picture, (row + 0.92 - 0.84 * level) * band, max(1.4, height / 80), ink or GREY)
    return picture
