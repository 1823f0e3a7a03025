"""scikit-learn's way to use the models; scikit-learn itself is imported only when it asks for tags or an error class.

An array (frames, *event) is one recording: its rows are in order for HMM, LDS and SLDS, independent for VAE and GMM.
A list of arrays is several recordings, and answers are then lists. NaN is missing. Parameters are those of `Config`.
Models with states take labels: fit(X, y) with y the state of each frame, -1 where it is not known.
"""

from dataclasses import dataclass
from typing import Any

from svae.sklearn._estimator import Continuous, Discrete, Estimator

__all__ = ["GMM", "HMM", "LDS", "SLDS", "VAE"]


@dataclass(kw_only=True, eq=False)
class VAE(Continuous, Estimator):
    """Latents ~ N(0, I): the variational autoencoder."""

    MODEL = "vae"
    ORDERED = False


@dataclass(kw_only=True, eq=False)
class GMM(Discrete, Estimator):
    """Latents in clusters; `states` is an upper bound on their number."""

    states: Any = 10
    concentration: Any = 1.0
    natural_step: Any = 0.1

    MODEL = "gmm"
    ORDERED = False


@dataclass(kw_only=True, eq=False)
class _Chain(Discrete, Estimator):
    """States that follow each other in time."""

    states: Any = 10
    concentration: Any = 1.0
    stickiness: Any = 0.0
    target_duration: Any = None  # mean frames of a bout
    natural_step: Any = 0.1
    window: Any = None
    overlap: Any = 10

    ORDERED = True


@dataclass(kw_only=True, eq=False)
class HMM(_Chain):
    """A chain of states, and latents that depend on the state."""

    MODEL = "hmm"


@dataclass(kw_only=True, eq=False)
class LDS(Continuous, Estimator):
    """Latents that follow linear dynamics."""

    natural_step: Any = 0.1
    window: Any = None
    overlap: Any = 10

    MODEL = "lds"
    ORDERED = True


@dataclass(kw_only=True, eq=False)
class SLDS(_Chain):
    """Latents that follow linear dynamics, which switch with the state."""

    MODEL = "slds"
