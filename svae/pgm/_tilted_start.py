"""Where transitions that lean start: multinomial regression of the next state on what was before, in numpy."""

import jax.numpy as jnp
import numpy as np

from svae.pgm._tilted import Tilt

STEPS = 50
MOST_STEPS = 50_000  # steps of the data that the regression sees, evenly spread


def fitted(tilt: Tilt, counts: np.ndarray, own: list, weights: list, x: list | None, inputs: list | None) -> Tilt:
    """R and S by maximum a posteriori, under a standard normal and with the rows of `counts` (M, K, K).

    The states `own` (T_i, K) are soft, those of the tables (T_i - 1, M) too; a step counts for its likeliest row. Each
    update solves against half of the regressors' scatter, which bounds the curvature: none makes it worse.
    """
    parts = [] if x is None else [np.concatenate([a[:-1] for a in x])]
    parts += [] if inputs is None else [np.concatenate([np.asarray(a)[1:] for a in inputs])]
    v = np.concatenate(parts, 1).astype(float)
    left, entered = (np.concatenate([w[part] for w in own]) for part in (slice(None, -1), slice(1, None)))
    table = np.concatenate(weights).argmax(1)
    seen = slice(None, None, -(-len(v) // MOST_STEPS))
    log_rows = np.log(counts / counts.sum(-1, keepdims=True)).reshape(-1, *counts.shape[-2:])
    log_rows, v, entered = log_rows[table, left.argmax(1)][seen], v[seen], entered[seen]
    curvature, B = v.T @ v / 2 + np.eye(v.shape[1]), np.zeros((v.shape[1], counts.shape[-1]))
    for _ in range(STEPS):
        scores = log_rows + v @ B
        p = np.exp(scores - scores.max(1, keepdims=True))
        B = B + np.linalg.solve(curvature, v.T @ (entered - p / p.sum(1, keepdims=True)) - B)
    D = 0 if tilt.R is None else tilt.R.shape[1]
    cut = lambda like, rows: None if like is None else jnp.asarray(rows.T, like.dtype)  # noqa: E731
    return Tilt(cut(tilt.R, B[:D]), cut(tilt.S, B[D:]))
