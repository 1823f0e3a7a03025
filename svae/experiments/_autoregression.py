"""Vector autoregression by ridge regression: the forecasts that a model with latents has to beat."""

import numpy as np
from jaxtyping import Float

RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)  # times the mean square of the regressors


def fit_var(y: Float[np.ndarray, "B T W"], order: int, prefix: int) -> Float[np.ndarray, "W U"]:
    """The ridge that forecasts the last fifth of the training sequences best over all horizons, then fitted to all."""
    cut = max(1, len(y) * 4 // 5)

    def error(ridge):
        found = roll(regress(y[:cut], order, ridge), y[cut:, :prefix], order, y.shape[1] - prefix)
        return np.mean((found - y[cut:, prefix:]) ** 2)

    return regress(y, order, min(RIDGES, key=error))


def regress(y: Float[np.ndarray, "B T W"], order: int, ridge: float) -> Float[np.ndarray, "W U"]:
    """y_t = C (y_{t-1}, ..., y_{t-order}, 1) by ridge regression; the offset pays none."""
    T = y.shape[1]
    u = np.concatenate([lagged(y[:, t - order : t]) for t in range(order, T)]).astype(float)
    targets = np.concatenate([y[:, t] for t in range(order, T)]).astype(float)
    penalty = ridge * np.mean(u[:, :-1] ** 2) * np.append(np.ones(u.shape[1] - 1), 0.0)
    return np.linalg.solve(u.T @ u + np.diag(penalty), u.T @ targets).T


def lagged(recent: Float[np.ndarray, "B p W"]) -> Float[np.ndarray, "B U"]:
    """Regressors from the last p frames: newest first, then 1."""
    return np.concatenate([recent[:, ::-1].reshape(len(recent), -1), np.ones((len(recent), 1))], 1)


def roll(C: Float[np.ndarray, "W U"], prefix: Float[np.ndarray, "B T W"], order: int, horizon: int) -> np.ndarray:
    """Forecasts (B, H, W): each frame from those before it, foretold ones included."""
    frames = list(np.moveaxis(prefix[:, -order:].astype(float), 1, 0))
    for _ in range(horizon):
        frames.append(lagged(np.stack(frames[-order:], 1)) @ C.T)
    return np.stack(frames[order:], 1)
