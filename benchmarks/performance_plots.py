"""Cost of message passing against T, D, K and batch, drawn from what benchmarks/messages.py measured.

Processor time, which a busy machine disturbs least.

python benchmarks/messages.py --sweep T D K batch --tasks none --out sweep.json
python benchmarks/performance_plots.py sweep.json docs/images
"""

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

AXES = {
    "T": ("time steps T of one sequence", "processor seconds for the sequence", 1),
    "D": ("latent dimensions D (batch 32, T = 200)", "processor ns per step and sequence", 3),
    "K": ("states K (batch 32, T = 200)", "processor ns per step and sequence", 2),
    "batch": ("sequences in a batch (T = 200)", "processor milliseconds for the batch", 1),
}
LOOKS = {"gaussian": ("#1f5f8b", "o", "Gaussian chain, D = 10"), "hmm": ("#c8553d", "s", "hidden Markov chain, K = 30")}


def swept(rows: list[dict], axis: str) -> list[dict]:
    """The rows of one sweep: those in which nothing else differs."""
    fixed = {"T": {"batch": 1}, "D": {"batch": 32, "T": 200}, "K": {"batch": 32, "T": 200}, "batch": {"T": 200}}[axis]
    usual = {"D": 10, "K": 30}
    held = fixed | {name: value for name, value in usual.items() if name != axis}
    return [row for row in rows if row["task"] == "smooth" and all(row[name] == v for name, v in held.items())]


def cost(row: dict, axis: str) -> float:
    """In the unit of the axis."""
    ns = row["times"]["svae"]["processor"]
    return {"T": ns * row["T"] / 1e9, "batch": ns * row["T"] * row["batch"] / 1e6}.get(axis, ns)


def draw(rows: list[dict], axis: str, file: Path) -> None:
    xlabel, ylabel, power = AXES[axis]
    figure, ax = plt.subplots(figsize=(5.2, 3.7), layout="constrained")
    for kind in [k for k in LOOKS if axis not in {"gaussian": "K", "hmm": "D"}[k]]:
        found = [(row[axis], cost(row, axis)) for row in swept(rows, axis) if row["kind"] == kind]
        x = np.unique([at for at, _ in found])
        y = np.array([min(took for at, took in found if at == point) for point in x])
        color, marker, label = LOOKS[kind]
        label = label if power == 1 else label.split(",")[0]
        ax.loglog(x, y, marker, color=color, markersize=6, linestyle="-", linewidth=1.6, label=label)
        guide = y[-1] * (x / x[-1]) ** power
        name = "linear" if power == 1 else f"power {power}"
        ax.loglog(x, guide, "--", color=color, alpha=0.45, linewidth=1, label=name)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if power > 1:
        ax.set_xticks(x, [str(point) for point in x])
        ax.minorticks_off()
    ax.grid(True, which="major", color="0.9", linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8.5)
    figure.savefig(file, dpi=160)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    rows = json.loads(options.measured.read_text())["rows"]
    for axis in AXES:
        if swept(rows, axis):
            draw(rows, axis, options.folder / f"performance-{axis.lower()}.png")


if __name__ == "__main__":
    main()
