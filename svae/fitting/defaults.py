"""Options that the data choose where nobody did: the same in the shell, in Python and in scikit-learn."""

import math
from typing import Any

import numpy as np

from svae.config import OWN, Config
from svae.data import Recordings, bout_frames, find_preprocess, layout_of, preprocessed, recordings, sample_frames
from svae.model import SVAE, make, pgm_of
from svae.pgm import Graph

LONG_FRAMES = 500  # longer recordings are fitted in windows
WINDOW, OVERLAP = 200, 20  # frames
PATIENCE = 4  # measurements of the held-out bound, ten in a fit, without improvement before it stops early
SAMPLED_FRAMES = 2000  # that are looked at for missing entries


def suited(options: dict[str, Any], data: Recordings) -> dict[str, Any]:
    """Options for these recordings, where `options` leave them open.

    Windows for long recordings; a mask for the recognition network where entries are missing or wild; as many prior
    counts as there are states; and how long a state lasts, from how long the data remember.
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
    if pgm.observed and config.model != OWN:
        found["latent_dim"] = min(config.latent_dim, int(np.prod(seen.sequences[0].shape[1:])))
    if np.isnan(sample_frames(seen, SAMPLED_FRAMES, seed=0)).any():
        found["missing"] = True
    if pgm.chained and config.model != OWN:
        found["concentration"] = float(pgm.states)  # a switch never seen stays possible
    return {name: value for name, value in found.items() if name not in options}


def _overlap(pgm: Graph, known: dict[str, Any]) -> int:
    """Of windows: a window that begins within a bout takes it for a shorter one, so durations need a bout more."""
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
