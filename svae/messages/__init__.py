"""Message passing on chains, one sequence at a time, knowing nothing of models.

`gaussian` and `hmm` are the forms for the default backend, by one rule: compiled kernels on the CPU, or pure JAX where
they were not built, with Gaussian chains in lanes (D up to 12; larger ones and hidden chains sequential); on a GPU
fused CUDA kernels, which pick their chunks of time from T and the batch (D up to 16 and K to 64, larger chains in
time-parallel pure JAX); time-parallel pure JAX elsewhere. SVAE_FORM in the environment overrides it: sequential,
parallel, kernels, fused, or lanes, which for hidden chains is sequential. The rule is applied at the first use, because
asking for the backend initialises it.

One form by name: `gaussian_sequential`, `gaussian_parallel`, `gaussian_kernels`, `gaussian_fused`, `hmm_` alike, and
`gaussian_lanes`. `hsmm` and `phases`, chains of bouts, have one form. `served.TABLE` says what serves which chain.
Kernels, compiled or fused, lanes and smoothers of bouts have reverse-mode derivatives only; forward mode is
for the other pure forms.
"""

import importlib
import os

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


_FORMS = [f"{chain}_{form}" for chain in ("gaussian", "hmm") for form in ("sequential", "parallel", "kernels", "fused")]
_FORMS += ["gaussian_lanes", "hsmm", "phases"]


def _form() -> str:
    import jax

    from svae.messages import gpu, kernels

    if os.environ.get("SVAE_FORM"):
        return os.environ["SVAE_FORM"]
    if jax.default_backend() != "cpu":
        return "fused" if gpu.status().serve else "parallel"
    return "kernels" if kernels.status().serve else "lanes"


def cpu_kernels() -> str:
    """One sentence: which compiled kernels serve on the CPU, or why pure JAX does."""
    from svae.messages import kernels

    serve, reason = kernels.status()
    return reason if serve else f"pure JAX: {reason}"


def gpu_kernels() -> str:
    """One sentence: what serves on the GPU."""
    from svae.messages import gpu

    serve, reason = gpu.status()
    if not serve:
        return f"time-parallel pure JAX: {reason}"
    return reason if _form() == "fused" else f"{_form()} pure JAX, as SVAE_FORM asks, in place of {reason}"


def __getattr__(name: str):
    if name in ("gaussian", "hmm"):
        form = f"{name}_{_form()}"
        name = "hmm_sequential" if form == "hmm_lanes" else form
    if name in _FORMS:
        return importlib.import_module(f"svae.messages.{name}")
    raise AttributeError(f"module 'svae.messages' has no attribute {name!r}")
