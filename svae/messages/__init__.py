"""Message passing on chains, one sequence at a time, knowing nothing of models.

`gaussian` and `hmm` ask `served.TABLE`, one table, which form serves a chain of this kind and size on this backend:
compiled kernels on the CPU, fused CUDA kernels on a GPU, sequential or time-parallel pure JAX where neither serve. They
ask at the first use, because asking for the backend initialises it. A form by name is a module of the chain's folder:
`gaussian.sequential`, `gaussian.parallel`, `gaussian.compiled`, `gaussian.fused`, and of `hmm` alike. `hsmm`, chains of
bouts, has one form for each way to say how long a bout lasts.
"""

from svae.messages import gaussian, gpu, hmm, hsmm, kernels
from svae.messages.algebra.compensated import compensated_sum
from svae.messages.algebra.fixed_point import FixedPoint, fixed_point, one_step, unrolled
from svae.messages.gaussian.chain import GaussianChain, GaussianFiltered, GaussianSmoothed
from svae.messages.hmm.chain import HMMChain, HMMFiltered, HMMPairs, HMMSmoothed
from svae.messages.hsmm.chain import HSMMChain, HSMMPath, HSMMSmoothed, begins, residual_life

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
    "gaussian",
    "gpu_kernels",
    "hmm",
    "hsmm",
    "one_step",
    "residual_life",
    "unrolled",
]


def cpu_kernels() -> str:
    """One sentence: which compiled kernels serve on the CPU, or why pure JAX does.

    Returns:
        A sentence.
    """
    serve, reason = kernels.status()
    return reason if serve else f"pure JAX: {reason}"


def gpu_kernels() -> str:
    """One sentence: what serves on the GPU.

    Returns:
        A sentence.
    """
    serve, reason = gpu.status()
    return reason if serve else f"time-parallel pure JAX: {reason}"
