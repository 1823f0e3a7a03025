"""The models as a segmenter of aeon."""

import copy
from typing import Any

import numpy as np
from aeon.segmentation.base import BaseSegmenter

from svae.sklearn import SLDS


class Segmenter(BaseSegmenter):
    """States of a series by one of the estimators of `svae.sklearn`, as aeon's segmenters give them.

    The answer is the state of every time point: two stretches with one number are the same state. `fit` may get the
    states that are known, -1 where they are not. NaN is missing.

    Args:
        estimator: One of `svae.sklearn` that has states, such as `SLDS(states=5)`; an SLDS unless given.

    Examples:
        >>> import numpy as np
        >>> from svae.adapters import Segmenter
        >>> from svae.sklearn import HMM
        >>> X = np.repeat([[0.0, 1.0]], 20, axis=0).reshape(1, 40) + np.random.default_rng(0).normal(size=(3, 40))
        >>> segmenter = Segmenter(HMM(states=2, latent_dim=2, hidden=(), steps=1, warmup_steps=0))
        >>> segmenter.fit_predict(X, axis=1).shape
        (40,)
    """

    _tags = {  # noqa: RUF012  aeon reads them from the class
        "X_inner_type": "np.ndarray",
        "capability:multivariate": True,
        "capability:missing_values": True,
        "fit_is_empty": False,
        "returns_dense": False,
        "non_deterministic": False,
    }

    def __init__(self, estimator: Any = None):
        self.estimator = estimator
        super().__init__(axis=0, n_segments=None)

    def _fit(self, X: np.ndarray, y: Any = None) -> "Segmenter":
        self.estimator_ = copy.copy(SLDS() if self.estimator is None else self.estimator).fit(X, y)
        return self

    def _predict(self, X: np.ndarray) -> np.ndarray:
        return self.estimator_.predict(X)

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        """Settings small enough for aeon's checks."""
        return {"estimator": SLDS(states=2, latent_dim=1, network="affine", steps=1, warmup_steps=0)}
