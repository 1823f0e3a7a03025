"""Message passing on chains, one sequence at a time, knowing nothing of models.

`gaussian` and `hmm` are the forms for the default backend, by one rule: sequential on the CPU, time-parallel elsewhere.
The rule is applied at the first use, because asking for the backend initialises it. Values that only one form gives:
`gaussian_sequential`, `gaussian_parallel`, `hmm_sequential`, `hmm_parallel`.
"""

import importlib

from svae.messages.compensated import compensated_sum
from svae.messages.fixed_point import FixedPoint, fixed_point, one_step, unrolled
from svae.messages.gaussian_chain import GaussianChain, GaussianFiltered, GaussianSmoothed
from svae.messages.hmm_chain import HMMChain, HMMFiltered, HMMSmoothed

__all__ = [
    "FixedPoint",
    "GaussianChain",
    "GaussianFiltered",
    "GaussianSmoothed",
    "HMMChain",
    "HMMFiltered",
    "HMMSmoothed",
    "compensated_sum",
    "fixed_point",
    "one_step",
    "unrolled",
]


def _form() -> str:
    import jax

    return "sequential" if jax.default_backend() == "cpu" else "parallel"


def __getattr__(name: str):
    if name in ("gaussian", "hmm"):
        return importlib.import_module(f"svae.messages.{name}_{_form()}")
    if name in ("gaussian_sequential", "gaussian_parallel", "hmm_sequential", "hmm_parallel"):
        return importlib.import_module(f"svae.messages.{name}")
    raise AttributeError(f"module 'svae.messages' has no attribute {name!r}")
