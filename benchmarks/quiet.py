"""Waiting for a quiet machine (Linux)."""

import time

import numpy as np


def wait_for_quiet(seconds: float) -> None:
    """Waits at most so long until nobody uses the processors (Linux)."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end and _busy(0.1) > 0.05:
        time.sleep(0.2)


def _busy(seconds: float) -> float:
    """The share of processor time that was used in the next seconds."""

    def ticks():
        with open("/proc/stat") as file:
            return np.array([int(x) for x in file.readline().split()[1:9]])

    before = ticks()
    time.sleep(seconds)
    used = ticks() - before
    return 1 - (used[3] + used[4]) / max(1, used.sum())
