"""A forecast of the memory and the time of a fit, from sizes alone and the speed of one product of matrices."""

import itertools
import math
import time
from typing import Any, NamedTuple

BASE_GB = 0.55  # a process with jax and its compiled programs
KEPT = 10  # numbers that a step keeps for each that inference holds, for its gradient
SWEEPS = 12  # of the mean field and its gradient, about
SHARE = 0.01  # of the speed of a product of matrices that a step reaches; seen in the fit of the demo
OVERHEAD = 0.015  # seconds of a step without any arithmetic
COMPILING = 25.0  # seconds, the first time


def forecast(recordings: Any, config: Any) -> dict[str, Any]:
    """A rough forecast from sizes, set by one fit (the demo) and not checked on others; --max-time bounds a fit."""
    from svae.data import find_preprocess

    event = find_preprocess(recordings, config).shape(tuple(recordings.sequences[0].shape[1:]))
    longest = max(map(len, recordings.sequences))
    batch = _batch_frames(config, longest, len(recordings.sequences), recordings.frames)
    work = _work(math.prod(event), config)
    per_step = OVERHEAD + batch * work.operations * config.restarts / (SHARE * _speed())
    taken = config.warmup_steps * OVERHEAD * 2 + config.steps * per_step
    answers = recordings.frames * work.operations / 3 / (SHARE * _speed())
    return {
        "frames": recordings.frames,
        "frames_in_a_step": batch,
        "memory_gb": round(BASE_GB + 4e-9 * KEPT * batch * work.numbers * config.restarts, 2),
        "seconds_compiling": COMPILING,
        "seconds_fitting": round(taken, 1),
        "seconds_answers": round(answers, 1),
    }


def _batch_frames(config, longest, count, frames):
    if config.model in ("vae", "gaussian", "gmm") and config.window is None:
        return min(config.batch_size, frames)
    window = longest if config.window is None else min(longest, config.window + 2 * config.overlap)
    windows = count if config.window is None else -(-frames // config.window)
    return min(config.batch_size, windows) * window


class _Work(NamedTuple):
    """Of one frame: numbers that inference holds, and operations of a step with its gradient."""

    numbers: float
    operations: float


def _work(P: int, config) -> _Work:
    K = (config.states or 10) if config.model in ("gmm", "hmm", "slds") else 1
    D, widths = config.latent_dim, config.hidden or (1,)
    layers = P * widths[0] + sum(a * b for a, b in itertools.pairwise(widths)) + 2 * D * widths[-1]
    chain = SWEEPS * (K * D * (D + 1) + 20 * D**3 * (config.model in ("lds", "slds")) + K * K)
    return _Work(2 * P + 2 * sum(widths) + K * D * (D + 1), 3 * 2 * 2 * layers + 6 * chain)


def _speed() -> float:
    """Operations in a second of a product of two matrices, the best of a few."""
    import numpy as np

    a = np.ones((384, 384), np.float32)
    best = math.inf
    for _ in range(5):
        started = time.perf_counter()
        a @ a
        best = min(best, time.perf_counter() - started)
    return 2 * 384**3 / best
