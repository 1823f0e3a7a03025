"""The models as a forecaster of sktime."""

import copy
from typing import Any

import jax
import numpy as np
import pandas as pd
from sktime.forecasting.base import BaseForecaster

from svae.queries import forecast
from svae.sklearn import LDS


class Forecaster(BaseForecaster):
    """Forecasts by one of the estimators of `svae.sklearn`, with the quantiles of its draws.

    A forecast sees all of the series that the forecaster was given: `update(y, update_params=False)` adds new time
    points without another fit. NaN is missing. Exogenous X are not used.

    Args:
        estimator: One of `svae.sklearn`; an LDS unless given.
        samples: The number of draws of the future.
        seed: The seed of the draws.

    Examples:
        >>> import numpy as np
        >>> import pandas as pd
        >>> from svae.adapters import Forecaster
        >>> from svae.sklearn import LDS
        >>> y = pd.DataFrame({"a": np.sin(np.arange(60) / 5), "b": np.cos(np.arange(60) / 5)})
        >>> forecaster = Forecaster(LDS(latent_dim=2, network="affine", steps=1, warmup_steps=0))
        >>> forecaster.fit(y).predict(fh=[1, 2, 3]).shape
        (3, 2)
    """

    _tags = {  # noqa: RUF012  sktime reads them from the class
        "y_inner_mtype": "pd.DataFrame",
        "capability:multivariate": True,
        "capability:missing_values": True,
        "capability:exogenous": False,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:update": True,
        "requires-fh-in-fit": False,
    }

    _config = {"remember_data": False}  # noqa: RUF012  `seen_` has what a forecast sees

    def __init__(self, estimator: Any = None, samples: int = 200, seed: int = 0):
        self.estimator, self.samples, self.seed = estimator, samples, seed
        super().__init__()

    def _fit(self, y: pd.DataFrame, X: Any, fh: Any) -> "Forecaster":
        self.seen_ = y
        self.estimator_ = copy.copy(LDS() if self.estimator is None else self.estimator).fit(y.to_numpy(float))
        return self

    def _update(self, y: pd.DataFrame, X: Any = None, update_params: bool = True) -> "Forecaster":
        self.seen_ = y.combine_first(self.seen_)
        return self._fit(self.seen_, X, None) if update_params else self

    def _predict(self, fh: Any, X: Any) -> pd.DataFrame:
        return pd.DataFrame(self._drawn(fh).mean(0), self._index(fh), self.seen_.columns)

    def _predict_quantiles(self, fh: Any, X: Any, alpha: list[float]) -> pd.DataFrame:
        found = np.quantile(self._drawn(fh), alpha, axis=0)  # (alpha, steps, columns)
        names = self._get_varnames()
        columns = pd.MultiIndex.from_product([names, alpha])
        return pd.DataFrame(found.transpose(1, 2, 0).reshape(len(found[0]), -1), self._index(fh), columns)

    def _drawn(self, fh: Any) -> np.ndarray:
        """Draws (samples, steps, columns) of the time points that are asked for."""
        steps = np.asarray(fh.to_relative(self.cutoff).to_pandas(), int)
        seen, key = self.seen_.to_numpy(float), jax.random.key(self.seed)
        ahead = forecast(self.estimator_.model_, seen, horizon=int(steps.max()), samples=self.samples, key=key)
        return ahead.samples[0][:, steps - 1]

    def _index(self, fh: Any) -> pd.Index:
        return fh.to_absolute(self.cutoff).to_pandas()

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        """Settings small enough for sktime's checks."""
        return {"estimator": LDS(latent_dim=1, network="affine", steps=1, warmup_steps=0), "samples": 20}
