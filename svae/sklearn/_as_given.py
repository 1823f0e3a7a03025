"""X as people give it: one array (frames, *event), or a list of such; answers come back in the same form."""

from typing import Any

import numpy as np

from svae.data import DataError


def _is_list(X):
    """Several recordings: a list of arrays, not a list of rows."""
    return isinstance(X, list | tuple) and len(X) > 0 and all(np.ndim(x) >= 2 for x in X)


def sequences(X: Any) -> list[np.ndarray]:
    """The recordings that X holds."""
    return [_array(x) for x in X] if _is_list(X) else [_array(X)]


def labels_as(X: Any, y: Any) -> list[np.ndarray]:
    """The labels of each recording that X holds; they come in the same form."""
    several = list(y) if _is_list(X) else [y]
    return [np.asarray(one) for one in several]


def as_given(X: Any, answers: list) -> Any:
    """A list of answers for a list, the only one for an array."""
    return answers if _is_list(X) else answers[0]


def _array(X):
    """Numbers of shape (frames, *event); the sentences hold the words that scikit-learn looks for."""
    if hasattr(X, "toarray"):
        raise TypeError("Sparse data are not supported; give X.toarray().")
    X = np.asarray(X)
    if X.dtype.kind == "c":
        raise DataError("Complex data not supported; give real and imaginary parts as columns.")
    if X.dtype.kind in "OUS":
        X = X.astype(np.float64)
    if X.ndim < 2:
        raise DataError(f"X has shape {X.shape}. Reshape your data: X.reshape(-1, 1) for one column of many frames.")
    if X.size == 0:
        what = "sample(s)" if len(X) == 0 else "feature(s)"
        raise DataError(f"Found array with 0 {what} (shape={X.shape}) while a minimum of 1 is required.")
    return X
