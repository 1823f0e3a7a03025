"""Real, reconstructed and predicted frames side by side; the forecast begins where the line turns on."""

from collections.abc import Iterator

import jax
import numpy as np

from svae.data import stretches
from svae.queries import forecast, reconstruct
from svae.report import _raster
from svae.report._forecast import inputs_of
from svae.report._look import Look, paint, picture_width
from svae.report._material import Material

SIDE, GAP, HEAD, FOOT = 232, 8, 34, 16
SEEN, AHEAD, SCENES = 1.0, 1.5, 4  # seconds before and after a cut; cuts in one movie
CONTEXT = 120  # frames before a cut that the forecast is given, the same for all: one program
ALERT, BLUE = (230, 97, 1), (33, 102, 172)


def beside(material: Material, look: Look, i: int) -> Iterator[np.ndarray]:
    """Scenes of recording i, each of them cut once."""
    y, event = material.raw.sequences[i], tuple(material.seen.sequences[i].shape[1:])
    seen, ahead = _spans(material, len(y))
    context = min(CONTEXT, len(y) - ahead)
    cuts = np.unique(np.linspace(context, len(y) - ahead, SCENES).astype(int)).tolist()
    futures = _predicted(material, i, cuts, context, ahead)
    again = reconstruct(material.model, stretches(material.raw, [(i, c - context, c + ahead) for c in cuts])).frames
    for c, future, decoded in zip(cuts, futures, again, strict=True):
        real = np.asarray(material.seen.sequences[i][c - seen : c + ahead])
        guess = None if future is None else np.concatenate([real[:seen], future])
        for t in range(seen + ahead):
            yield _picture(material, look, event, (real, decoded[context - seen :], guess), t, seen)


def _spans(material, T) -> tuple[int, int]:
    """Frames shown before and after a cut."""
    fps = material.fps or 30.0
    return max(1, min(round(SEEN * fps), T // 4)), max(1, min(round(AHEAD * fps), T // 4))


def _predicted(material, i, cuts, context, ahead):
    """One drawn future for each past, without observation noise; None for a model without dynamics."""
    if material.pgm.independent:
        return [None] * len(cuts)
    past = stretches(material.raw, [(i, c - context, c) for c in cuts])._replace(names=tuple(map(str, cuts)))
    inputs = inputs_of(material, [(i, c) for c in cuts], ahead)
    found = forecast(material.model, past, horizon=ahead, samples=8, key=jax.random.key(1), inputs=inputs)
    return [means[0] for means in found.means]


def _picture(material, look, event, shown, t, seen):
    width = picture_width(look, event, SIDE)
    kept = [frames for frames in shown if frames is not None]
    titles = ("real", "reconstruction", "prediction")[: len(kept)]
    out = _raster.canvas(HEAD + SIDE + FOOT + GAP, GAP + len(kept) * (width + GAP))
    for column, (title, frames) in enumerate(zip(titles, kept, strict=True)):
        left = GAP + column * (width + GAP)
        now = title == "prediction" and t >= seen
        _raster.paste(out, _panel(look, frames, t, now), HEAD, left)
        _raster.text(out, title, 7, left + 2, 16, ALERT if now else _raster.LIGHT)
    _progress(out, t, seen, len(shown[0]))
    clock = f"{(t - seen) / material.fps:+.2f} s" if material.fps else f"{t - seen:+d}"
    _raster.text(out, clock, 8, out.shape[1] - GAP - _raster.text_width(clock, 14), 14, _raster.DIM)
    return out


def _panel(look, frames, t, now):
    picture = paint(look, frames, t, SIDE, ALERT if now else BLUE)
    if now:
        _raster.frame(picture, 3, ALERT)
    return picture


def _progress(out, t, seen, length):
    """A line below that fills: white while the model sees the recording, orange while it predicts."""
    y, width = HEAD + SIDE + 9, out.shape[1] - 2 * GAP
    reach = lambda frames: GAP + round(width * frames / length)  # noqa: E731
    out[y : y + 4, GAP : GAP + width] = (50, 52, 58)
    out[y : y + 4, GAP : reach(min(t + 1, seen))] = _raster.LIGHT
    out[y : y + 4, reach(seen) : reach(max(t + 1, seen))] = ALERT
