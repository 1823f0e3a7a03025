"""The real video behind keypoints: pictures around the animal, for recordings whose points alone are in the run."""

import glob
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from svae.data import DataError, View
from svae.data.load import read
from svae.data.preprocess import POINTS
from svae.report._bodies import Bodies
from svae.report._bouts import Stretch
from svae.report._material import Material

SIDE = 200  # pixels of a picture
AROUND = 0.9  # body lengths that it shows to each side of the animal
STEADY = 5  # frames to each side over which the place of the animal is the median: pictures must not tremble
EMPTY = np.full((SIDE, SIDE), 235, np.uint8)
SHORTER = 0.02  # of the frames of a recording that its video may lack
ENDINGS = (".mp4", ".avi", ".mov", ".mkv", ".m4v", ".mpg", ".mpeg", ".webm")


class Video(NamedTuple):
    """One for each recording, None where there is none."""

    films: tuple[View | None, ...]


def find_video(path: str, names: tuple[str, ...], lengths: list[int]) -> Video:
    """The videos of recordings: a file for one of them, or a folder or pattern whose names begin alike."""
    files = _files(path)
    pairs = [files[0]] if len(names) == len(files) == 1 else [_of(name, files) for name in names]
    if not any(pairs):
        raise DataError(
            f"no video of {path} has a name with which one of the recordings begins: {', '.join(names[:5])}"
        )
    return Video(tuple(None if f is None else _opened(f, n, T) for f, n, T in zip(pairs, names, lengths, strict=True)))


def filmed(material: Material, path: str | None) -> Video | None:
    """The video that --video names; DataError for a run that is not of keypoints."""
    if path is None:
        return None
    if material.raw is None or material.model.preprocess.kind not in POINTS:
        raise DataError(
            f"--video is for runs of keypoints whose recordings can be read again; {material.run.path} is not"
        )
    names, lengths = material.raw.names, [len(y) for y in material.raw.sequences]
    return find_video(path, names, lengths)


def _files(path: str) -> list[Path]:
    found = Path(os.path.expanduser(path))
    if found.is_dir():
        files = sorted(f for f in found.iterdir() if f.suffix.lower() in ENDINGS)
    else:
        files = [found] if found.exists() else [Path(f) for f in sorted(glob.glob(str(found)))]
    if not files:
        raise DataError(f"there is no video at {path}; check the path of --video")
    return files


def _of(name: str, files: list[Path]) -> Path | None:
    """The video with the longest name with which that of the recording begins: trackers add words at the end."""
    mine = [f for f in files if name.casefold().startswith(f.stem.casefold())]
    return max(mine, key=lambda f: len(f.stem), default=None)


def _opened(file: Path, name: str, length: int) -> View:
    found = read(file).pieces[0].y
    if found.kind != "frames" or found.ndim != 3:
        raise DataError(f"{file.name} is no video; name one with --video")
    if len(found) < (1 - SHORTER) * length:
        raise DataError(
            f"{file.name} has {len(found)} frames but {name} has {length}; it is the video of another recording"
        )
    return found


def crop(video: Video, found: Bodies, s: Stretch, t: int) -> np.ndarray:
    """(SIDE, SIDE) bytes around the animal, its heading at the onset of the bout up; grey where nothing is known."""
    return crops(video, found, s, t, t + 1)[0]


def crops(video: Video, found: Bodies, s: Stretch, first: int, last: int) -> list[np.ndarray]:
    """The crops of frames [first, last), which are read at once: going back in a video is slow."""
    film, moved = video.films[s.recording], found.moved[s.recording]
    end = 0 if film is None else min(len(film), len(moved.place))
    inside = film is not None and np.isfinite(moved.heading[s.first]) and 0 <= first < end
    frames = np.asarray(film[first : min(last, end)]) if inside else []
    pictures = [_cut_out(found, moved, s, first + i, image) for i, image in enumerate(frames)]
    return pictures + [EMPTY] * (last - first - len(pictures))


def _cut_out(found, moved, s, t, image):
    near = moved.place[max(0, t - STEADY) : t + STEADY + 1]
    if not np.isfinite(near).any():
        return EMPTY
    right, up = np.meshgrid(*[np.linspace(-AROUND, AROUND, SIDE) * found.unit] * 2)
    ahead = np.array([np.cos(moved.heading[s.first]), np.sin(moved.heading[s.first])])
    aside = np.array([-ahead[1], ahead[0]])  # y points down in a picture, so this is to the right
    xy = np.nanmedian(near, 0) - up[..., None] * ahead + right[..., None] * aside
    column, row = (np.clip(xy[..., i].round().astype(int), 0, image.shape[1 - i] - 1) for i in (0, 1))
    return image[row, column]
