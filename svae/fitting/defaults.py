"""Options that the data choose where nobody did: the same in the shell, in Python and in scikit-learn."""

import math
from typing import Any

import numpy as np

from svae.config import OWN, Config
from svae.data import Recordings, bout_frames, find_preprocess, layout_of, preprocessed, recordings, sample_frames
from svae.fitting.scree import Scree, cumulated, scree_of
from svae.model import SVAE, make, pgm_of
from svae.pgm import Graph

LONG_FRAMES = 500  # longer recordings are fitted in windows
WINDOW, OVERLAP = 200, 20  # frames
HELD = 0.999  # of the variance: what latent dimensions leave out counts as noise, and nothing knows how it moves
ALL = 1 - 1e-6  # of the variance of few columns
FEW_COLUMNS, MOST, FRAMES_EACH = 12, 8, 100  # dimensions: all of few columns, of more at most 8; above 8 of long data
LARGE = 1000  # entries of a frame: of larger ones not many more frames are looked at
LINEAR = 1 / 3  # of the steps: on few frames networks that bend learn them by heart before the rest has settled
CONTINUOUS = ("gaussian", "student_t")
PATIENCE = 4  # measurements of the held-out bound, ten in a fit, without improvement before it stops early
SAMPLED_FRAMES = 2000  # that are looked at for missing entries


def suited(options: dict[str, Any], data: Recordings) -> dict[str, Any]:
    """Options for these recordings, where `options` leave them open.

    As many latent dimensions as hold nearly all of the variance; networks that are linear at first where frames follow
    each other; windows for long recordings; a mask for the recognition network where entries are missing or wild; as
    many prior counts as there are states; and how long a state lasts, from how long the data remember.
    """
    own = "latent" in options or options.get("model") == OWN  # then the graph has said it
    driven = {"inputs": len(data.called.inputs)} if data.called.inputs and not own else {}
    config = Config.make(driven | options)
    seen = preprocessed(data, find_preprocess(data, config))
    found = {"patience": PATIENCE} | driven
    pgm = pgm_of(config)
    if pgm.paced and not {"stickiness", "target_duration"} & set(options):
        found["target_duration"] = bout_frames(seen)
    if not pgm.independent and max(map(len, data.sequences)) > LONG_FRAMES:
        found |= {"window": WINDOW, "overlap": _overlap(pgm, found | options)}
    frames = sample_frames(seen, SAMPLED_FRAMES, seed=0)
    if "latent_dim" not in options and _has_components(config):
        found["latent_dim"] = dimensions(frames, seen.frames)
    if not pgm.independent and not {"network", "hidden"} & set(options):
        found["linear"] = LINEAR
    if np.isnan(frames).any():
        found["missing"] = True
    if pgm.chained and config.model != OWN:
        found["concentration"] = float(pgm.states)  # a switch never seen stays possible
    return {name: value for name, value in found.items() if name not in options}


def usual_dimensions(seen: Recordings, config: Config) -> int | None:
    """How many latent dimensions a fit takes that is given none; None where the data do not say it.

    `seen` are recordings after preprocessing.
    """
    if not _has_components(config):
        return None
    return dimensions(sample_frames(seen, SAMPLED_FRAMES, seed=0), seen.frames)


def components(seen: Recordings, D: int) -> Scree:
    """What principal components of recordings hold, and a fit with D dimensions of them; `seen` as above."""
    return scree_of(cumulated(spectrum(sample_frames(seen, SAMPLED_FRAMES, seed=0))), D)


def _has_components(config: Config) -> bool:
    return config.model != OWN and config.likelihood in CONTINUOUS


def dimensions(frames: np.ndarray, recorded: int) -> int:
    """How many latent dimensions hold nearly all of frames (N, *event), of `recorded` ones that there are.

    Of few columns none is left out unless the others determine it, or there are too few frames for more than 8.
    """
    variance = spectrum(frames)
    columns = int(np.prod(frames.shape[1:]))
    few = columns <= FEW_COLUMNS
    enough = np.searchsorted(np.cumsum(variance), (ALL if few else HELD) * variance.sum()) + 1
    return int(min(enough, len(variance), max(MOST, recorded // FRAMES_EACH) if few else MOST))


def spectrum(frames: np.ndarray) -> np.ndarray:
    """The variance of each principal component of frames (N, *event), the largest first, up to a factor.

    Columns count in units of their own, as they do in a fit; images and points share one.
    """
    rows = frames.reshape(len(frames), -1).astype(float)
    seen = np.isfinite(rows)
    away = np.where(seen, rows - np.where(seen, rows, 0).sum(0) / np.maximum(seen.sum(0), 1), 0)
    if frames.ndim == 2:
        sd = np.sqrt((away**2).sum(0) / np.maximum(seen.sum(0), 1))
        away = away / np.where(sd > 0, sd, 1)
    away = away[:: max(1, len(away) // LARGE)] if away.shape[1] > LARGE else away
    products = away.T @ away if len(away) > away.shape[1] else away @ away.T
    return np.maximum(np.linalg.eigvalsh(products)[::-1], 0)


def _overlap(pgm: Graph, known: dict[str, Any]) -> int:
    """The overlap of windows: one that begins within a bout takes it to be shorter, so durations need a bout more."""
    bout = known.get("target_duration") or OVERLAP
    return max(OVERLAP, math.ceil(bout)) if pgm.longest > 1 else OVERLAP


def model_for(data: Any, **options: Any) -> SVAE:
    """A model for recordings, before its fit: what `svae fit DATA` makes. `svae.fit(model, data)` fits it.

    Args:
        data: Recordings: an array (T, *event), a list or a dict of such, or what `load` returns. NaN is missing.
        options: Options of `Config` by name; what they leave open the data choose. A target duration is in frames.

    Returns:
        A model to be fitted, with the preprocessing that these recordings need.

    Examples:
        >>> import svae
        >>> data = svae.data.switching_rotations(bouts=3, bout_length=20, seed=0)
        >>> model = svae.model_for(data.y, states=3, latent_dim=2)
        >>> model.config.model, model.config.states
        ('slds', 3)
    """
    data = recordings(data)
    return new_model(data, Config.make(suited(options, data) | options))


def new_model(data: Recordings, config: Config) -> SVAE:
    """The model before its fit, with the preprocessing that these recordings need.

    Args:
        data: Recordings.
        config: Options.

    Returns:
        A model.
    """
    preprocess = find_preprocess(data, config)
    event = preprocess.shape(tuple(data.sequences[0].shape[1:]))
    return make(event, config, preprocess=preprocess, layout=layout_of(data))
