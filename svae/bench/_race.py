"""Times of functions that run in turn, and what the machine could do at best."""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np


def once(run: Callable) -> tuple[float, float]:
    """Wall and processor seconds of one run."""
    wall, cpu = time.perf_counter(), time.process_time()
    jax.block_until_ready(run())
    return time.perf_counter() - wall, time.process_time() - cpu


def race(runs: dict[str, Callable], rounds: int) -> dict[str, np.ndarray]:
    """(rounds, 2) seconds of each, in turn, so that a busy machine slows all alike; their first runs are left out."""
    for run in runs.values():
        once(run)
    turns = [{who: once(run) for who, run in runs.items()} for _ in range(rounds)]
    return {who: np.array([turn[who] for turn in turns]) for who in runs}


def ratio(slow: np.ndarray, fast: np.ndarray) -> dict[str, float]:
    """slow / fast over the rounds: median and quartiles, and the median of processor times."""
    each = slow / np.maximum(fast, 1e-9)
    low, median, high = np.percentile(each[:, 0], [25, 50, 75])
    values = median, low, high, np.median(each[:, 1])
    return dict(zip(("median", "lower_quartile", "upper_quartile", "processor"), map(float, values), strict=True))


def ceilings() -> dict[str, float]:
    """GFLOP/s of a large product and GB/s of a large copy."""
    a, b = jnp.ones((2048, 2048), jnp.float32), jnp.ones(1 << 25, jnp.float32)
    product, copy = jax.jit(jnp.dot), jax.jit(lambda x: x + 1)
    taken = race({"product": lambda: product(a, a), "copy": lambda: copy(b)}, 5)
    fastest = {who: times[:, 0].min() for who, times in taken.items()}
    return {
        "product_gflops": float(2 * 2048**3 / fastest["product"] / 1e9),
        "copy_gb_per_s": float(2 * b.nbytes / fastest["copy"] / 1e9),
    }
