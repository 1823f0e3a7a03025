"""Does the pinwheel come out every time? Ten seeds, each with new data, a new start and 1,000 new points.

Run `python -m benchmarks.pinwheel_seeds [--seeds 10] [--processes 1] [--out runs/pinwheel-seeds]`: writes numbers.json
with one row per seed and a summary, and each seed's own numbers and figure in a folder of its own.
"""

import argparse
import json
import multiprocessing
from pathlib import Path

import numpy as np


def one_seed(job: tuple[int, Path]) -> dict:
    """The row of one seed."""
    from svae.experiments import pinwheel
    from svae.progress import quiet

    seed, out = job
    numbers = pinwheel.run(out / f"seed-{seed}", seed=seed, progress=quiet)
    row = {"seed": seed} | {name: value for name, value in numbers["svae"].items() if name != "usage"}
    row |= {f"vae_{name}": value for name, value in numbers["vae"].items()}
    return row | {name: numbers[name]["log_likelihood"] for name in ("gmm_5", "gmm_15") if name in numbers}


def summary(rows: list[dict]) -> dict:
    """How many seeds reach each target, and means over seeds."""
    good = [row["components_in_use"] == 5 and row["purity"] >= 0.95 for row in rows]
    mean = lambda name: float(np.mean([row[name] for row in rows if name in row]))  # noqa: E731
    names = ("held_out_bound", "importance_bound", "vae_held_out_bound", "vae_importance_bound", "gmm_5", "gmm_15")
    return {
        "seeds": len(rows),
        "five_components_and_purity_95": sum(good),
        "above_vae": sum(row["held_out_bound"] > row["vae_held_out_bound"] for row in rows),
        "above_gmm_5": sum(row["held_out_bound"] > row.get("gmm_5", -np.inf) for row in rows),
        "means": {name: mean(name) for name in names if name in rows[0]},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/pinwheel-seeds"))
    options = parser.parse_args()
    jobs = [(seed, options.out) for seed in range(options.seeds)]
    rows = []
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for row in pool.imap(one_seed, jobs):
            rows.append(row)
            print(json.dumps(row), flush=True)
    from svae.experiments._figures import save_numbers

    print(json.dumps(save_numbers({"summary": summary(rows), "rows": rows}, options.out)["summary"], indent=2))


if __name__ == "__main__":
    main()
