"""How far recordings are from what a model was fitted to: length of the body, spread of the values, bound per frame."""

from typing import Any

import numpy as np

from svae.data import body_length, matched, recordings, take
from svae.data.views import sample_frames
from svae.model import SVAE

SAMPLED = 2000  # frames of a recording that are looked at
LONGER = 1.5  # times as long or as short as the body in training
WIDER = 3.0  # root mean square distance from the mean, 1 in training
NATS = 1.0  # per entry of a frame that a bound may be below that of the fit


def far(model: SVAE, data: Any) -> list[str]:
    """What was done to match recordings by name, and one sentence for each recording that is far from training."""
    found, notes = matched(recordings(data), model.layout)
    for i, name in enumerate(found.names):
        frames = sample_frames(take(found, [i]), SAMPLED, seed=0)
        notes = [*notes, *_of_one(model, name, frames)]
    return notes


def _of_one(model, name, frames):
    before = model.preprocess
    before.shape(tuple(frames.shape[1:]))  # raises for frames that it is not made for
    if before.body:
        ratio = body_length(frames[:, list(before.keep)].astype(np.float64), np.array(before.body))
        if np.isfinite(ratio) and not 1 / LONGER <= ratio <= LONGER:
            return [f"{name}: its body is {ratio:.2g} times as long as in training; is it in another unit?"]
    seen = model.scaling.apply(before.apply(frames))
    wide = float(np.sqrt(np.nanmean(seen**2))) if np.isfinite(seen).any() else 0.0
    if wide > WIDER:
        return [f"{name}: its values are {wide:.2g} times as far from the mean as in training; is it in another unit?"]
    return []


def low_bounds(model: SVAE, names: tuple[str, ...], bounds: list[float], usual: float | None) -> list[str]:
    """Recordings whose bound, nats per frame, is far below `usual`, that of the recordings held out in the fit."""
    if usual is None:
        return []
    entries = max(1, int(np.prod(model.shape)))
    low = [(n, usual - b) for n, b in zip(names, bounds, strict=True) if usual - b > NATS * entries]
    return [
        f"{n}: its bound is {gap:.3g} nats per frame below that of the fit; it is unlike the training."
        for n, gap in low
    ]
