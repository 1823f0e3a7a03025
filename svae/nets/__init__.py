"""Neural networks around a latent model: recognition (frames to potentials) and observation (latents to likelihood).

A network is two swappable halves, a trunk (to features) and a head (from them), beside a linear map y ≈ W x + b:

| network   | linear map | correction                             | recognition | observation |
|-----------|------------|----------------------------------------|-------------|-------------|
| affine    | yes        | none                                   | yes         | yes         |
| mlp       | no         | MLP on the frame or latent             | yes         | yes         |
| residual  | yes        | MLP on the frame or latent             | yes         | yes         |
| conv      | yes        | convolutions over the image            | yes         | yes         |
| temporal  | yes        | convolutions over time                 | yes         |             |
| recurrent | yes        | GRU forward and backward over time     | yes         |             |

The linear map starts as a random partial isometry and the correction starts small, so that a network starts at its
linear map; `with_linear_map` sets it, in recognition and observation alike. Temporal networks have no observation
side because p(y_t | x_t) looks at one latent.

A recognition is called on one sequence, `recognize(y (T, *event), mask (T,)) -> expfam.Gaussian`; an observation has
`log_prob`, `mean`, `simulate`, `draw` and `kl`. An event is (), (P,), (H, W) or (H, W, C); NaN is a missing entry.
"""

from svae.nets.conjugate import Conjugate, conjugate
from svae.nets.likelihoods import (
    LEAST_SD,
    Bernoulli,
    FixedScale,
    GaussianNoise,
    LearnedScale,
    NetworkScale,
    Poisson,
    StudentT,
)
from svae.nets.linear import partial_isometry, with_linear_map
from svae.nets.observation import (
    LIKELIHOODS,
    OBSERVATION_NETWORKS,
    START_SD,
    VARIANCES,
    Observation,
    after_noise_step,
    bends,
    make_observation,
    surer,
    with_noise,
)
from svae.nets.places import Places, no_places
from svae.nets.plane import Plane, SeenFrame, SeenLatent, as_it_is, plane_at
from svae.nets.protocols import AbstractLikelihood, ObserveProtocol, RecognizeProtocol, likelihood_of
from svae.nets.recognition import (
    PRECISIONS,
    RECOGNITION_NETWORKS,
    Recognition,
    RecognitionNetwork,
    make_recognition,
    with_precision,
)
from svae.nets.trunks import ACTIVATIONS
from svae.nets.weights import GaussianWeights

__all__ = [
    "ACTIVATIONS",
    "LEAST_SD",
    "LIKELIHOODS",
    "OBSERVATION_NETWORKS",
    "PRECISIONS",
    "RECOGNITION_NETWORKS",
    "START_SD",
    "VARIANCES",
    "AbstractLikelihood",
    "Bernoulli",
    "Conjugate",
    "FixedScale",
    "GaussianNoise",
    "GaussianWeights",
    "LearnedScale",
    "NetworkScale",
    "Observation",
    "ObserveProtocol",
    "Places",
    "Plane",
    "Poisson",
    "Recognition",
    "RecognitionNetwork",
    "RecognizeProtocol",
    "SeenFrame",
    "SeenLatent",
    "StudentT",
    "after_noise_step",
    "as_it_is",
    "bends",
    "conjugate",
    "likelihood_of",
    "make_observation",
    "make_recognition",
    "no_places",
    "partial_isometry",
    "plane_at",
    "surer",
    "with_linear_map",
    "with_noise",
    "with_precision",
]
