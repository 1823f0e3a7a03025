"""Segments of labelled recordings against their labels: ours and plain models on the same frames.

python -m benchmarks.segmentation --data ../shared/data --out rows.jsonl --seeds 3 --states true twice --jobs 2

Every fit is a process of its own, its linear algebra on one thread. Its row is appended to --out when it ends, its
states are kept beside it in a folder, and a row that is there is not made again. Ours is the command
`svae fit DATA --states K`; --ours adds options to it. Plain models get the same number of states (`peers.py`). No fit
sees a label.
`python -m benchmarks.segmentation.table rows.jsonl` makes the table.
"""

import argparse
import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import numpy as np

from benchmarks.segmentation import ours, peers, scores, sets

METHODS = ("ours", *peers.PEERS)
NUMBERS = {"true": 1, "twice": 2, "unset": None}  # what a method is told, as a multiple of the true number of states
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
KEY = ("part", "method", "states", "seed", "options")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("segmentation.jsonl"))
    parser.add_argument("--sets", nargs="+", default=list(sets.SETS), help="sets, or parts such as skab/valve1_0")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--states", nargs="+", choices=NUMBERS, default=["true"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--ours", default="", help='options added to ours, such as "--steps 100 --max-time 10min"')
    parser.add_argument("--through", default="", help='a command that each fit is run through, such as "nice"')
    parser.add_argument("--one", nargs=4, metavar=("PART", "METHOD", "STATES", "SEED"), help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = arguments()
    if options.one:
        part, method, number, seed = options.one
        print(json.dumps(one(part, method, number, int(seed), options)))
        return
    there = {tuple(str(row.get(name, "")) for name in KEY) for row in rows(options.out) if "error" not in row}
    wanted = [key for key in all_keys(options) if key not in there]
    print(f"{len(wanted)} fits to run, {len(there)} rows are there", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        for fit in as_completed([pool.submit(run, key, options) for key in wanted]):
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(fit.result()) + "\n")


def rows(path: Path) -> list[dict]:
    """Rows of a file of results; the last one of each fit."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines if line.strip()]
    return list({tuple(str(row.get(name, "")) for name in KEY): row for row in found}.values())


def all_keys(options):
    """Every fit that is asked for: all sets with the first seed, then with the next."""
    for seed in range(options.seeds):
        for number in options.states:
            for part in sets.parts(options.sets):
                for method in options.methods:
                    if method == "ours" or NUMBERS[number]:
                        yield part, method, number, str(seed), options.ours if method == "ours" else ""


def run(key, options):
    """The row of one fit, made by a process of its own."""
    line = [*shlex.split(options.through), sys.executable, "-m", "benchmarks.segmentation", "--one", *key[:4]]
    line += ["--data", str(options.data), "--out", str(options.out), f"--ours={options.ours}"]
    done = subprocess.run(line, capture_output=True, text=True, env=os.environ | ONE_THREAD)
    last = done.stdout.strip().splitlines()[-1:] if done.returncode == 0 else []
    row = dict(zip(KEY, key, strict=True)) | {"seed": int(key[3])}
    row |= json.loads(last[0]) if last else {"error": done.stderr[-1000:]}
    print(json.dumps(row), flush=True)
    return row


def one(name, method, number, seed, options):
    """One fit and its scores; labels are looked at when it is done."""
    with tempfile.TemporaryDirectory() as scratch:
        part = sets.read(name, options.data, Path(scratch))
        states = NUMBERS[number] and NUMBERS[number] * part.true_states
        began, facts = time.time(), {}
        if method == "ours":
            found, facts = ours.segmented(part, states, seed, shlex.split(options.ours), Path(scratch))
        else:
            found = peers.segmented(method, part.sequences, states, seed)
        facts |= {"seconds": round(time.time() - began, 1), "processor_seconds": round(processor_seconds(), 1)}
    keep(found, options.out, f"{name}-{method}-{number}-{seed}")
    row = {"number": states, "true_number": part.true_states} | scores.scores(part.score, part.labels, found)
    true_shape = {f"true_{name}": value for name, value in scores.shape(part.labels).items()}
    return row | scores.shape(found) | true_shape | {"fps": part.fps} | facts


def processor_seconds():
    """Processor time of this process and of those that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def keep(found, out, name):
    """The states, for the agreement of seeds."""
    folder = out.with_suffix(".states")
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / f"{name.replace('/', '-')}.npy", np.concatenate(found).astype(np.int16))


if __name__ == "__main__":
    main()
