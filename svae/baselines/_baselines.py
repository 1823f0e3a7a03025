"""Held-out log likelihood of plain models: PCA, and a latent model of its scores."""

import math
from typing import Any, NamedTuple

import numpy as np

from svae._one_thread import one_thread
from svae.baselines._dynamics import filled_in, fit, log_prob
from svae.baselines._frames import MOST_ENTRIES, Stretches, project, stretches
from svae.config import Config
from svae.data import DataError, Recordings, bout_frames, preprocessed, recordings, sample_frames, settled, standardized
from svae.data.scores import block_means
from svae.fitting.prepare import divided
from svae.model import SVAE
from svae.named import DEFAULT_STATES
from svae.nets import likelihood_of
from svae.pgm import Dynamics, Markov, Normal, graph

KINDS = {  # graphs of D dimensions and a chain z
    "PCA + AR-HMM": lambda D, z: graph(z=z, x=Dynamics(D, given="z")),
    "PCA + Gaussian HMM": lambda D, z: graph(z=z, x=Normal(D, given="z")),
    "PCA + VAR(1)": lambda D, z: graph(x=Dynamics(D)),
    "PCA + Gaussian": lambda D, z: graph(x=Normal(D)),
}
PCA_FRAMES, LEAST_PCA_FRAMES = 12_000, 500  # frames for the principal components: as many as PCA_NUMBERS allow
PCA_NUMBERS = 2**22
TRAINED_FRAMES = 12_000  # frames that a latent model is fitted to
SCORED_FRAMES = 100_000  # held-out frames
LEAST_WHOLE = 0.9  # share of large frames without a gap that a comparison needs
LEFT_OUT = "frames with missing entries are left out"
FILLED = (
    "frames with missing entries count with the density of the others; what the plain models are fitted to has them "
    "filled in, and the filter of the AR-HMM keeps one Gaussian for each state"
)


class Baselines(NamedTuple):
    """Held-out log likelihood of each baseline, nats per frame in the unit of the data."""

    held_out: dict[str, float]
    frames: int  # held-out frames that were scored
    blocks: dict[str, list[float]] | None = (
        None  # the same of successive parts of the frames; none where not all were scored
    )
    note: str = ""  # why there are none, or what they rest on


def baselines(model: SVAE, data: Any) -> Baselines:
    """Baselines of the raw recordings that `model` was fitted to.

    They take its split, latent dimension, number of states and target duration.
    """
    likelihood = likelihood_of(model.observe)
    if not likelihood.standardized:
        why = f"PCA gives a density, which does not compare with a {likelihood.title} model"
        return Baselines({}, 0, note=why)
    train, held = (None if part is None else standardized(part, model.scaling) for part in _divided(model, data))
    if held is None:
        return Baselines({}, 0, note="nothing was held out")
    count = min(PCA_FRAMES, max(LEAST_PCA_FRAMES, PCA_NUMBERS // math.prod(model.shape)))
    frames = sample_frames(train, count, model.config.split_seed)
    found = project(frames.reshape(len(frames), -1), model.config.latent_dim)
    log_scale = np.log(np.asarray(model.scaling.scale, float)).reshape(-1)
    frames_held = held.frames
    train, held = stretches(train, found, log_scale, TRAINED_FRAMES), stretches(held, found, log_scale, SCORED_FRAMES)
    gaps = 1 - min(train.whole, held.whole)
    large = math.prod(model.shape) > MOST_ENTRIES
    if large and gaps > 1 - LEAST_WHOLE:
        return Baselines({}, 0, note=f"{100 * gaps:.0f} % of the frames, which are large, have missing entries")
    if not train.x:
        return Baselines({}, 0, note="no training frame has half of its entries")
    rests = "" if gaps == 0 else LEFT_OUT if large else FILLED
    duration = model.config.target_duration or bout_frames(preprocessed(recordings(data), model.preprocess))
    K = model.pgm.states if model.pgm.discrete else model.config.states or DEFAULT_STATES
    with one_thread():
        found = _scores(model.config, K, duration, train, held)
    whole = held.frames == frames_held
    blocks = {name: block_means(each).tolist() for name, each in found.items() if whole}
    return Baselines({name: float(each.mean()) for name, each in found.items()}, held.frames, blocks, rests)


def _divided(model: SVAE, data: Any) -> tuple[Recordings, Recordings | None]:
    """The split of the fit, without its passes over all frames: units are known by now."""
    seen = settled(preprocessed(recordings(data), model.preprocess))
    if tuple(seen.sequences[0].shape[1:]) != model.shape:
        raise DataError(f"The model is for frames of {model.shape}, the data have {seen.sequences[0].shape[1:]}.")
    return divided(seen, model.config)


def _scores(config: Config, K: int, duration: float, train: Stretches, held: Stretches) -> dict[str, np.ndarray]:
    """log p of every held-out frame (N,)."""
    z = Markov(K, concentration=float(K), stickiness=0.0)
    graphs = {name: make(train.x[0].shape[1], z) for name, make in KINDS.items()}
    x = filled_in(train)
    fitted = {
        name: fit(pgm, x, duration, config.split_seed) for name, pgm in graphs.items() if K > 1 or not pgm.discrete
    }
    return {name: log_prob(theta, held) * held.observed - held.volume for name, theta in fitted.items()}
