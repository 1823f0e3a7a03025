"""What estimators ask of the model that they have fitted."""

from typing import Any

import equinox as eqx
import jax
import numpy as np

from svae.config import Config
from svae.data import DataError
from svae.model import SVAE, make
from svae.queries import generate
from svae.sklearn._as_given import sequences


def remember_names(estimator: Any, X: Any) -> None:
    """Column names of a data frame, as scikit-learn keeps them."""
    names = getattr(X, "columns", None)
    vars(estimator).pop("feature_names_in_", None)
    if names is not None and all(isinstance(name, str) for name in names):
        estimator.feature_names_in_ = np.asarray(names, object)


def ask(estimator: Any, X: Any) -> tuple[SVAE, list[np.ndarray]]:
    """The fitted model and the recordings to ask it about."""
    model, data = fitted(estimator), sequences(X)
    name, expected = type(estimator).__name__, estimator.n_features_in_
    for y in data:
        if np.prod(y.shape[1:]) != expected:
            raise DataError(
                f"X has {np.prod(y.shape[1:])} features, but {name} is expecting {expected} features as input."
            )
    return model, data


def fitted(estimator: Any) -> SVAE:
    """The model, or scikit-learn's error for an estimator that has none yet."""
    if not hasattr(estimator, "model_"):
        raise _not_fitted()(f"This {type(estimator).__name__} is not fitted yet; call fit first.")
    return estimator.model_


def _not_fitted() -> type[Exception]:
    """scikit-learn's error where it is installed."""
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return ValueError
    return NotFittedError


def arrays_of(model: SVAE) -> SVAE:
    """The leaves that are arrays."""
    return eqx.filter(model, eqx.is_array)


def rebuilt(shape: tuple[int, ...], config: Config, leaves: list[np.ndarray]) -> SVAE:
    """The model of this shape and configuration with these arrays."""
    model = make(shape, config)
    structure = jax.tree.structure(arrays_of(model))
    filled = jax.tree.unflatten(structure, [jax.numpy.asarray(leaf) for leaf in leaves])
    return eqx.combine(filled, model)


@eqx.filter_jit
def decode(model: SVAE, x: Any) -> Any:
    """E[y | x] in model units."""
    return model.observe.mean(x)


def drawn(estimator: Any, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """New frames and their states: one recording of a chain, else frames each by itself."""
    model = fitted(estimator)
    length, number = (n_samples, 1) if estimator.ORDERED else (1, n_samples)
    found = generate(model, length, samples=number, key=jax.random.key(model.config.seed))
    return found.samples.reshape(n_samples, *model.shape), found.states.reshape(n_samples)
