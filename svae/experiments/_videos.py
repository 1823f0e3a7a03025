"""Video for the two experiments of the paper on mice: any recordings, or the synthetic mouse; 30 x 30 pixels."""

import dataclasses
from pathlib import Path
from typing import NamedTuple

import numpy as np

from svae.config import Config
from svae.data import DataError, Recordings, find_preprocess, load, mouse, preprocessed, recordings
from svae.data.images import shrunk
from svae.experiments._figures import write_atomically
from svae.model import SVAE, make

SIZE = 30  # pixels of a side, as in the paper
SHOWN_PIXELS = 80  # pixels of a frame that is shown
NETWORKS = {"mlp": ("residual", (200, 200)), "conv": ("conv", (16, 32))}  # an MLP beside a linear map, or convolutions


class Recorded(NamedTuple):
    """Recordings with their truth, where it is known."""

    raw: Recordings
    source: str  # in words
    labels: np.ndarray | None = None  # (B, T)
    names: tuple[str, ...] = ()  # of the labels


def recorded(data: str | None, *, sequences: int, length: int, seed: int) -> Recorded:
    """The video at a path, or the synthetic mouse."""
    if data is not None:
        return Recorded(_require_video(load(data)), Path(data).name)
    drawn = mouse(sequences=sequences, length=length, seed=seed)
    raw = recordings({f"mouse {b}": y for b, y in enumerate(drawn.y)}, fps=drawn.fps)
    return Recorded(raw, f"synthetic mouse, {sequences} x {length} frames", drawn.labels, drawn.action_names)


def kept(path: Path, frames: np.ndarray, fps: float | None) -> Recordings:
    """Frames (B, T, H, W) in a file, and read from there: so a run can read them again."""
    half = frames.astype(np.float16)
    write_atomically(path, lambda file: np.savez_compressed(file, frames=half, fps=fps))
    return load(path)


def _require_video(raw: Recordings) -> Recordings:
    event = tuple(raw.sequences[0].shape[1:])
    if len(event) not in (2, 3) or min(event[:2]) < 8 or (len(event) == 3 and event[2] not in (1, 3, 4)):
        raise DataError(f"These experiments are about video, and the frames are {event}; fit other data by `svae fit`.")
    return raw


def network(net: str) -> dict[str, object]:
    """The options of a configuration that choose the networks: mlp or conv."""
    name, hidden = NETWORKS[net]
    return {"network": name, "hidden": hidden}


def new_model(raw: Recordings, config: Config) -> SVAE:
    """The model before its fit, with the preprocessing that these recordings need."""
    preprocess = find_preprocess(raw, config)
    return make(preprocess.shape(tuple(raw.sequences[0].shape[1:])), config, preprocess=preprocess)


def shown(raw: Recordings, model: SVAE) -> Recordings:
    """The recordings to look at: as the model sees them, but as large as they were recorded, to a limit."""
    event = tuple(raw.sequences[0].shape[1:])
    size = shrunk(*event[:2], min(SHOWN_PIXELS, max(event[:2])))
    return preprocessed(raw, dataclasses.replace(model.preprocess, size=size))
