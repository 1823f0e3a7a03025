"""Message passing on chains, one sequence at a time, knowing nothing of models.

`gaussian` and `hmm` ask `served.TABLE`, one table, which form serves a chain of this kind and size on this backend:
compiled kernels on the CPU, fused CUDA kernels on a GPU, sequential or time-parallel pure JAX where neither serve. They
ask at the first use, because asking for the backend initialises it. One form by name: `gaussian_sequential`,
`gaussian_parallel`, `gaussian_kernels`, `gaussian_fused`, and `hmm_` alike. `hsmm` and `phases`, chains of bouts, have
one form.
"""

import importlib

from svae.messages.compensated import compensated_sum
from svae.messages.fixed_point import FixedPoint, fixed_point, one_step, unrolled
from svae.messages.gaussian_chain import GaussianChain, GaussianFiltered, GaussianSmoothed
from svae.messages.hmm_chain import HMMChain, HMMFiltered, HMMPairs, HMMSmoothed
from svae.messages.hsmm_chain import HSMMChain, HSMMPath, HSMMSmoothed, begins, residual_life

__all__ = [
    "FixedPoint",
    "GaussianChain",
    "GaussianFiltered",
    "GaussianSmoothed",
    "HMMChain",
    "HMMFiltered",
    "HMMPairs",
    "HMMSmoothed",
    "HSMMChain",
    "HSMMPath",
    "HSMMSmoothed",
    "begins",
    "compensated_sum",
    "cpu_kernels",
    "fixed_point",
    "gpu_kernels",
    "one_step",
    "residual_life",
    "unrolled",
]


_LAZY = {f"{chain}_{form}" for chain in ("gaussian", "hmm") for form in ("sequential", "parallel", "kernels", "fused")}
_LAZY |= {"gaussian", "hmm", "hsmm", "phases"}


def cpu_kernels() -> str:
    """One sentence: which compiled kernels serve on the CPU, or why pure JAX does.

    Returns:
        A sentence.
    """
    from svae.messages import kernels

    serve, reason = kernels.status()
    return reason if serve else f"pure JAX: {reason}"


def gpu_kernels() -> str:
    """One sentence: what serves on the GPU.

    Returns:
        A sentence.
    """
    from svae.messages import gpu

    serve, reason = gpu.status()
    return reason if serve else f"time-parallel pure JAX: {reason}"


def __getattr__(name: str):
    if name in _LAZY:
        return importlib.import_module(f"svae.messages.{name}")
    raise AttributeError(f"module 'svae.messages' has no attribute {name!r}")
