"""Message passing beside its peers, on the same arrays in one run: times, ratios with their spread, and ceilings.

python benchmarks/messages.py                        all chains at batch 1 and 32, a few minutes
python benchmarks/messages.py --only gaussian --tasks smooth filter --batch 1 32 128
python benchmarks/messages.py --sweep T D K batch    our cost against each of them
python benchmarks/messages.py --peers FOLDER         a folder that holds peers which are not installed

`gaussian` is a batch under the dynamics of one LDS, `switching` has dynamics of its own at every step and sequence, as
in an SLDS; potentials are their own in both. What is smoothed is compared: `apart` is the largest difference from ours.
Times are ns per time step and sequence. Contestants of a round run in turn, so that a busy machine slows all alike,
each as often as fits into 50 ms, or once; a ratio is the median over rounds of peer / ours, with its quartiles and,
last, that of processor times; `processor` is the least processor time of a round.
"""

import argparse
import importlib
import json
import sys
import warnings

import jax
import numpy as np
from quiet import wait_for_quiet

from svae import messages
from svae.bench._race import ceilings, once

TURN = 0.05  # seconds that a contestant has in a round
KINDS = ("gaussian", "switching", "hmm")
GAUSSIAN = ("filter", "smooth", "smooth, value and gradient", "sample", "log normaliser", "log normaliser, gradient")
HIDDEN = ("smooth", "smooth, value and gradient", "viterbi", "log normaliser", "log normaliser, gradient")
SWEEPS = {
    "T": [{"T": T, "batch": 1} for T in (100, 1000, 10_000, 100_000, 1_000_000)],
    "D": [{"D": D, "batch": 32, "T": 200} for D in (2, 4, 8, 10, 16, 32, 64)],
    "K": [{"K": K, "batch": 32, "T": 200} for K in (2, 8, 30, 64, 100, 200)],
    "batch": [{"batch": B, "T": 200} for B in (1, 4, 16, 32, 128, 512, 1024)],
}


def race(contestants: dict, steps: int, rounds: int, patience: float) -> dict:
    """ns per step of each: fastest, median and quartiles over the rounds; ratios to the first of them."""
    for run in contestants.values():
        once(run)
    runs = {name: max(1, round(TURN / once(run)[0])) for name, run in contestants.items()}
    taken = {name: np.array([(0.0, 0.0)] * rounds) for name in contestants}
    for i in range(rounds):
        for name, run in contestants.items():
            wait_for_quiet(patience)
            once(run)  # what the others have driven out of the caches, and given back to the system
            taken[name][i] = np.mean([once(run) for _ in range(runs[name])], 0)
    ours = taken[next(iter(contestants))]
    return {name: _row(times * 1e9 / steps, times / np.maximum(ours, 1e-9)) for name, times in taken.items()}


def _row(ns, ratio) -> dict:
    low, median, high = np.percentile(ratio[:, 0], [25, 50, 75])
    return {
        "best": float(ns[:, 0].min()),
        "median": float(np.median(ns[:, 0])),
        "processor": float(np.median(ns[:, 1])),
        "least_processor": float(ns[:, 1].min()),
        "ratio": [float(low), float(median), float(high)],
        "processor_ratio": float(np.median(ratio[:, 1])),
    }


def tried(name: str, make, absent: dict):
    """The contestant, or None where its package is missing (said once) or it has no such task."""
    try:
        return make()
    except ImportError as error:
        if name not in absent:
            absent[name] = str(error)
            print(f"{name} is left out: {error}", flush=True)
        return None


def contestants(kind: str, task: str, chain, batch: int, options, absent: dict) -> dict:
    """Ours first; peers that know the task."""
    import message_peers as peers

    room = "hmm" if kind == "hmm" else "gaussian"
    ours, dynamax = {
        "gaussian": (peers.gaussian_ours, peers.gaussian_dynamax),
        "hmm": (peers.hidden_ours, peers.hidden_dynamax),
    }[room]
    found, makers = {"svae": ours(getattr(messages, room), task, chain)}, {}
    if options.pure:
        form = importlib.import_module(f"svae.messages.{room}.sequential")
        makers["svae, pure JAX"] = lambda: ours(form, task, chain)
    makers["dynamax"] = lambda: dynamax(task, chain, False)
    # Its associative scans over LAPACK calls can hang for good on two cores when they are long.
    if options.parallel and len(chain[-2 if kind == "hmm" else -1][0]) <= 1000:
        makers["dynamax, parallel"] = lambda: dynamax(task, chain, True)
    if batch == 1:
        one = {
            "gaussian": {"statsmodels": peers.gaussian_statsmodels, "pykalman": peers.gaussian_pykalman},
            "hmm": {"hmmlearn": peers.hidden_hmmlearn},
        }[room]
        makers |= {name: (lambda f=f: f(task, chain)) for name, f in one.items()}
    made = {name: tried(name, make, absent) for name, make in makers.items()}
    return found | {name: run for name, run in made.items() if run is not None}


def problem(kind: str, batch: int, T: int, D: int, K: int):
    import message_problems as problems

    if kind == "hmm":
        return problems.hidden_chains(batch, T, K)
    return (problems.gaussian_chains if kind == "gaussian" else problems.switching_chains)(batch, T, D)


def apart(runs: dict) -> dict:
    """The largest difference of what each has smoothed from ours."""
    import message_peers as peers

    found = {name: peers.smoothed(jax.block_until_ready(run())) for name, run in runs.items()}
    return {name: float(np.max(np.abs(x - found["svae"]))) for name, x in found.items()}


def show(row: dict) -> None:
    size = f"K = {row['K']}" if row["kind"] == "hmm" else f"D = {row['D']}"
    print(f"{row['kind']}, {row['task']}: {size}, T = {row['T']}, batch {row['batch']}")
    for name, r in row["times"].items():
        low, median, high = r["ratio"]
        spread = (
            "" if name == "svae" else f"  / svae = {median:6.1f} ({low:.1f} to {high:.1f}; {r['processor_ratio']:.1f})"
        )
        away = f"  apart {row['apart'][name]:.0e}" if row["apart"].get(name) else ""
        least = f"best {r['best']:.0f}, processor {r['least_processor']:.0f}"
        print(f"  {name:20s} {r['median']:9.0f} ns ({least}){spread}{away}", flush=True)


def measure(kind: str, task: str, options, absent: dict, batch: int, T: int, D: int, K: int, peers: bool) -> dict:
    chain = problem(kind, batch, T, D, K)
    runs = contestants(kind, task, chain, batch, options, absent)
    if not peers:
        runs = {"svae": runs["svae"]}
    row = {"kind": kind, "task": task, "batch": batch, "T": T, "D": D, "K": K}
    row["times"] = race(runs, batch * T, options.rounds, options.quiet)
    row["apart"] = apart(runs) if task == "smooth" else {}
    show(row)
    return row


def rows(options, absent: dict):
    """Every row that was asked for."""
    kinds = [k for k in KINDS if options.only in (None, k)]
    for kind in kinds:
        for task in HIDDEN if kind == "hmm" else GAUSSIAN:
            for batch in options.batch if task in options.tasks or not options.tasks else []:
                yield measure(kind, task, options, absent, batch, options.T, options.D, options.K, True)
    for axis in options.sweep:
        for kind in [k for k in kinds if axis != {"gaussian": "K", "hmm": "D"}.get(k, axis)]:
            for point in SWEEPS[axis]:
                sizes = {"T": options.T, "D": options.D, "K": options.K} | point
                yield measure(kind, "smooth", options, absent, peers=False, **sizes)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="a folder with peers that are not installed")
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--tasks", nargs="*", default=["smooth", "smooth, value and gradient", "viterbi"])
    parser.add_argument("--batch", nargs="*", type=int, default=[1, 32])
    parser.add_argument("--sweep", nargs="*", choices=SWEEPS, default=[])
    parser.add_argument("--pure", action="store_true", help="the pure JAX that serves without kernels too")
    parser.add_argument("--parallel", action="store_true", help="dynamax's parallel forms too")
    for name, value in (("T", 1000), ("D", 10), ("K", 30), ("rounds", 7)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--quiet", type=float, default=0, help="seconds that a run waits, at most, for a quiet machine")
    parser.add_argument("--out", default="messages.json")
    return parser.parse_args()


def main():
    options, absent = arguments(), {}
    if options.peers:
        sys.path.append(options.peers)
    warnings.simplefilter("ignore")
    result = {"kernels": messages.cpu_kernels(), "jax": jax.__version__, "ceilings": ceilings()}
    print(json.dumps(result))
    result |= {"rows": list(rows(options, absent)), "absent": absent}
    with open(options.out, "w") as file:
        json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
