"""Which form serves which chain on which backend; the table of docs/performance.md is this one."""

from typing import NamedTuple


class Served(NamedTuple):
    """A chain, and what serves it on a CPU with compiled kernels and without, on an NVIDIA GPU, and elsewhere."""

    chain: str
    kernels: str
    plain: str
    gpu: str
    elsewhere: str


HEADER = Served("chain", "CPU, kernels built", "CPU, pure JAX", "GPU, fused kernels", "elsewhere")
TABLE = (
    Served(
        "Gaussian",
        "kernels, D ≤ 64; then sequential",
        "lanes, D ≤ 12; then sequential",
        "kernels, D ≤ 16; then parallel",
        "parallel",
    ),
    Served(
        "hidden Markov, one matrix for all steps",
        "kernels, sequences in lanes",
        "sequential, by products",
        "kernels, K ≤ 64; then parallel",
        "parallel",
    ),
    Served(
        "hidden Markov, a matrix for every step; `smooth_pairs`",
        "kernels, each sequence alone",
        "sequential, in logarithms",
        "parallel",
        "parallel",
    ),
    Served("bouts by a table of durations (`hsmm`) or by phases (`phases`)", *["sequential"] * 4),
)


def markdown() -> str:
    """The table for the documentation."""
    rows = [HEADER, Served(*["---"] * len(HEADER)), *TABLE]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows).replace("| --- ", "|---").replace("|--- |", "|---|")
