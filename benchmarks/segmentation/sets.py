"""Labelled sets: what plain models see, the label of every frame, and the files that `svae fit` is given.

A set has one part or several. Parts are fitted one at a time: their states have nothing to do with each other.
"""

import csv
import itertools
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import keypoint_exam

SKAB = (
    *("valve1_0", "valve1_2", "valve1_4", "valve1_6", "valve1_8", "valve1_10", "valve1_12", "valve1_14"),
    *("valve2_0", "valve2_2", "other_1", "other_3", "other_5", "other_7", "other_9", "other_11", "other_13"),
)
EXAMS = {  # rate of wild points, and whether likelihoods tell of them
    "0": (0.0, True),
    "1": (0.01, True),
    "3": (0.03, True),
    "1_untelling": (0.01, False),
    "3_untelling": (0.03, False),
}
REARING_STATES = 12  # labels say rearing or not; the animal does more than two things
DANCE_STATES = 3  # turn left, turn right, waggle: the labels of the bees are change points only
SERIES_OF_SYSTEMS = 100  # of 500 and 1,000 in the test files
UNLIKELY = 0.3  # points below it are missing for plain models, as they are when `svae fit` reads them


class Part(NamedTuple):
    """What one fit is about.

    sequences: (T_i, ...) each; labels: (T_i,) each. score: "frames" (labels are states), "series" (one class for each
    recording), "rearing" (yes or no) or "segments" (labels number the segments). source: files for `svae fit`, where
    these are not simply the sequences.
    """

    sequences: list[np.ndarray]
    labels: list[np.ndarray]
    fps: float | None
    score: str = "frames"
    states: int | None = None
    source: Path | None = None

    @property
    def true_states(self) -> int:
        """The number of states that a method is told."""
        return self.states or len(np.unique(np.concatenate(self.labels)))


def mocap6(data, part, scratch):
    z = np.load(data / "mocap6" / "dataset.npz")
    edges = z["doc_range"][1:-1]
    return Part(np.split(z["X"], edges), np.split(z["TrueZ"], edges), 10.0)


def exercises(data, part, scratch):
    z = np.load(data / "mocap_cmu_multi" / "mocap_exercise_30hz.npz")
    clips = ("13_29", "13_30", "14_14")
    return Part([z[f"X_{c}"] for c in clips], [z[f"z_{c}"] for c in clips], 30.0)


def locomotion(data, part, scratch):
    """91 clips in which a person walks, runs or jumps."""
    z = np.load(data / "mocap_cmu_multi" / "cmu_locomotion_30hz.npz")
    kinds = ("walk", "run", "jump")
    kind_of = lambda text: next(k for k, kind in enumerate(kinds) if kind in text)  # noqa: E731
    clips = {str(clip): str(text) for clip, text in zip(z["clip"], z["description"], strict=True)}
    clips = {clip: kind_of(text) for clip, text in clips.items() if not clip.startswith("86")}  # there people do more
    sequences = [z[f"X_{clip}"] for clip in clips]
    labels = [np.full(len(y), kind) for y, kind in zip(sequences, clips.values(), strict=True)]
    return Part(sequences, labels, 30.0, "series")


def mocap86(data, part, scratch):
    table = np.loadtxt(data / "mocap86" / f"86_{part}.csv", delimiter=",")
    return Part([table[:, :-1]], [table[:, -1].astype(int)], 120.0)


def birdsong(data, part, scratch):
    """Songs of one bird; `python -m benchmarks.segmentation.songs` makes such a file from raw songs."""
    z = np.load(data / "birdsong" / f"{part}_day1_logmel48.npz")
    edges = np.cumsum(z["length"])[:-1]
    return Part(np.split(z["logmel"].astype(np.float32), edges), np.split(z["label"], edges), 250.0)


def skab(data, part, scratch):
    z = np.load(data / "skab" / "skab.npz")
    return Part([z[f"SKAB_{part}_y"]], [z[f"SKAB_{part}_labels"]], 1.0)


def red_sds(data, part, scratch):
    z = np.load(data / "red_sds" / f"{part}_test.npz")
    return Part(list(z["y"][:SERIES_OF_SYSTEMS]), list(z["z"][:SERIES_OF_SYSTEMS].astype(int)), None)


def open_field(data, part, scratch):
    """Body points, and whether the majority of three raters saw a rear."""
    import svae

    source = data / "mouse_oft_labelled" / "8_01_A_dlc.csv"
    frames = np.asarray(svae.load(source, fps=25.0).sequences[0])
    seconds, votes = np.arange(len(frames)) / 25.0, np.zeros(len(frames))
    with (data / "mouse_oft_labelled" / "8_01_A_labels.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["type"] in ("Supported", "Unsupported"):  # kinds of rearing
                votes += (seconds >= float(row["from"])) & (seconds < float(row["to"]))
    return Part([frames], [(votes >= 2).astype(int)], 25.0, "rearing", REARING_STATES, source)


def vowels(data, part, scratch):
    return _archive(data / "timeseries" / "JapaneseVowels_TRAIN.ts", None)


def basic_motions(data, part, scratch):
    return _archive(data / "timeseries" / "BasicMotions_TRAIN.ts", 10.0)


def _archive(path, fps):
    """Series of a .ts file of the UEA archive: channels and the class are separated by colons."""
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [line.split(":") for line in itertools.dropwhile(lambda line: not line.startswith("@data"), lines)][1:]
    series = [np.array([channel.split(",") for channel in row[:-1]], float).T for row in rows if len(row) > 1]
    classes = np.unique([row[-1] for row in rows if len(row) > 1], return_inverse=True)[1]
    return Part(series, [np.full(len(y), k) for y, k in zip(series, classes, strict=True)], fps, "series")


def bees(data, part, scratch):
    """Six dances; the label is the number of the segment."""
    from scipy.io import loadmat

    files = [loadmat(data / "bees" / f"beedance-{number}.mat") for number in range(1, 7)]
    labels = [np.cumsum(one["L"][:, 0] > 0) for one in files]
    return Part([one["Y"] for one in files], labels, 30.0, "segments", DANCE_STATES)


def mouse(data, part, scratch):
    """The synthetic mouse: 32 videos."""
    from svae.data import mouse as drawn

    found = drawn(seed=0)
    return Part(list(found.y), list(found.labels), 30.0)


def keypoints(data, part, scratch):
    """The exam of keypoints, its first draw. Plain models see the body upright with gaps filled in."""
    recordings, labels = keypoint_exam.make(0, *EXAMS[part])
    keypoint_exam.write(scratch, recordings, labels)
    fps = keypoint_exam.FPS
    return Part([upright(frames) for frames in recordings], labels, fps, source=scratch / "recordings")


def upright(frames: np.ndarray) -> np.ndarray:
    """Points (T, P, 2) about the middle of the body, its neck ahead of its tail; straight lines across gaps."""
    xy = np.where(frames[..., 2:] < UNLIKELY, np.nan, frames[..., :2])
    xy = np.stack([_filled(column) for column in xy.reshape(len(xy), -1).T], -1).reshape(xy.shape)
    neck, tail = (xy[:, keypoint_exam.POINTS.index(name)] for name in ("neck", "tail"))
    heading = np.arctan2(*(neck - tail).T[::-1])[:, None]
    x, y = np.cos(heading), np.sin(heading)
    centred = xy - np.median(xy, 1, keepdims=True)
    return np.stack([x * centred[..., 0] + y * centred[..., 1], x * centred[..., 1] - y * centred[..., 0]], -1)


def _filled(column):
    seen = np.flatnonzero(~np.isnan(column))
    return np.interp(np.arange(len(column)), seen, column[seen])


SETS = {  # a reader of each, and its parts
    "mocap6": (mocap6, ("",)),
    "exercises": (exercises, ("",)),
    "locomotion": (locomotion, ("",)),
    "mocap86": (mocap86, ("01", "02", "07", "10", "14")),
    "birdsong": (birdsong, ("gy6or6", "bl26lb16")),
    "skab": (skab, SKAB),
    "red_sds": (red_sds, ("three_mode", "bouncing_ball")),
    "open_field": (open_field, ("",)),
    "vowels": (vowels, ("",)),
    "basic_motions": (basic_motions, ("",)),
    "bees": (bees, ("",)),
    "mouse": (mouse, ("",)),
    "keypoints": (keypoints, tuple(EXAMS)),
}


def parts(names: list[str]) -> list[str]:
    """All parts of sets, as "skab/valve1_0"; a name that is a part already stays."""
    found = []
    for name in names:
        known = name.partition("/")[0]
        if known not in SETS:
            raise SystemExit(f"There is no set {known!r}; the sets are {', '.join(SETS)}.")
        found += [name] if "/" in name else [f"{name}/{part}".rstrip("/") for part in SETS[name][1]]
    return found


def read(name: str, data: Path, scratch: Path) -> Part:
    """One part; files that it has to write go to the scratch folder."""
    known, _, part = name.partition("/")
    return SETS[known][0](data, part, scratch)
