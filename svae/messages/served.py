"""Which form serves which chain where: the dispatch, the documentation and `svae doctor` are made from this table."""

import importlib
from typing import Any, NamedTuple

import jax

from svae.messages import gpu, kernels

CPU, PLAIN, GPU, OTHER = "CPU, kernels", "CPU, no kernels", "NVIDIA GPU, kernels", "elsewhere"
ALL = CPU, PLAIN, GPU, OTHER


class Form(NamedTuple):
    """A chain and one of its forms, the module `svae.messages.{module}`.

    Of the rows for a chain the first serves that is for the backend and whose `largest` (D or K) is not exceeded.
    """

    chain: str
    module: str
    backends: tuple[str, ...]
    largest: int | None
    batch: str
    derivative: str
    oracle: str


BY_HAND, BY_JAX, BY_RULE = "reverse, two more sweeps", "forward and reverse, by JAX", "reverse, of the statistics"
GAUSSIAN, STEADY, VARYING = "Gaussian", "hidden Markov, one matrix", "hidden Markov, a matrix a step"
TABLE = (
    Form(GAUSSIAN, "gaussian.compiled", (CPU,), 64, "lanes and threads", BY_HAND, "dense matrix"),
    Form(GAUSSIAN, "gaussian.fused", (GPU,), 16, "blocks and chunks of time", BY_HAND, "dense matrix"),
    Form(GAUSSIAN, "gaussian.parallel", (GPU, OTHER), None, "vmap", BY_JAX, "dense matrix"),
    Form(GAUSSIAN, "gaussian.sequential", (CPU, PLAIN), None, "vmap", BY_JAX, "dense matrix, statsmodels"),
    Form(STEADY, "hmm.compiled", (CPU,), None, "lanes and threads", BY_HAND, "all paths"),
    Form(STEADY, "hmm.fused", (GPU,), 64, "blocks", BY_HAND, "all paths"),
    Form(STEADY, "hmm.parallel", (GPU, OTHER), None, "vmap", BY_JAX, "all paths"),
    Form(STEADY, "hmm.sequential", (PLAIN,), None, "vmap, one product a step", BY_JAX, "all paths"),
    Form(VARYING, "hmm.compiled", (CPU,), None, "threads", BY_HAND, "all paths"),
    Form(VARYING, "hmm.parallel", (GPU, OTHER), None, "vmap", BY_JAX, "all paths"),
    Form(VARYING, "hmm.sequential", (PLAIN,), None, "vmap, in logarithms", BY_JAX, "all paths"),
    Form("bouts, a table of durations", "hsmm.durations", ALL, None, "vmap", BY_RULE, "all paths"),
    Form("bouts, durations by phases", "hsmm.phases", ALL, None, "vmap", BY_RULE, "all paths"),
)


def backend() -> str:
    """What this process computes chains on. The first call initialises jax's backend."""
    if jax.default_backend() == "cpu":
        return CPU if kernels.status().serve else PLAIN
    return GPU if gpu.status().serve else OTHER


def row(chain: str, size: int, on: str) -> Form:
    """The row that serves a chain of D dimensions or K states on a backend."""
    return next(f for f in TABLE if f.chain == chain and on in f.backends and (f.largest is None or size <= f.largest))


def form(chain: str, size: int) -> Any:
    """The module that serves a chain of this size here."""
    return importlib.import_module(f"svae.messages.{row(chain, size, backend()).module}")


def here() -> list[Form]:
    """The rows that may serve on this backend, in the order in which they are asked."""
    found = backend()
    return [f for f in TABLE if found in f.backends]


HEADER = "chain", "form", "where", "largest D or K", "a batch by", "derivative", "tested against"


def cells(f: Form) -> tuple[str, ...]:
    """A row for people."""
    where = "everywhere" if f.backends == ALL else "; ".join(f.backends)
    largest = "any" if f.largest is None else str(f.largest)
    return f.chain, f"`{f.module}`", where, largest, f.batch, f.derivative, f.oracle


def markdown() -> str:
    """The table for the documentation."""
    rows = [HEADER, ["---"] * len(HEADER), *map(cells, TABLE)]
    return "\n".join(f"| {' | '.join(words)} |" for words in rows).replace("| --- ", "|---").replace("|--- |", "|---|")
