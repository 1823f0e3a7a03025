"""Runs the time-parallel smoother many times in watched subprocesses and counts the runs that never end.

python benchmarks/hangs.py --runs 100 --steps 100000 --timeout 120 --out hangs.json
"""

import argparse
import json
import subprocess
import sys
import time

CHILD = """
import sys, jax, jax.numpy as jnp
from svae.messages import GaussianChain, gaussian_parallel
T, D, runs = int(sys.argv[1]), 4, int(sys.argv[2])
eye = jnp.broadcast_to(jnp.eye(D), (T, D, D))
def chain(seed):
    h = jax.random.normal(jax.random.key(seed), (T, D))
    return GaussianChain(h[0], eye[0], 0.9 * eye[1:], 0 * h[1:], eye[1:], eye, h)
smooth = jax.jit(gaussian_parallel.smooth)
for seed in range(runs):
    q = jax.block_until_ready(smooth(chain(seed)))
    assert bool(jnp.all(jnp.isfinite(q.mean))), "not finite"
    print("done", flush=True)
"""


def watch(steps, runs, timeout):
    """One process of `runs` smoothings: how many ended in time, the seconds taken, its complaint if any."""
    start = time.time()
    try:
        child = subprocess.run(
            [sys.executable, "-c", CHILD, str(steps), str(runs)], timeout=timeout, capture_output=True, text=True
        )
        ended, error = child.stdout.count("done"), child.stderr[-300:] if child.returncode else ""
    except subprocess.TimeoutExpired as expired:
        ended, error = (expired.stdout or b"").count(b"done"), "timeout"
    return {"ended": ended, "seconds": round(time.time() - start, 1), "error": error}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--per-process", type=int, default=10)
    parser.add_argument("--out", default="hangs.json")
    options = parser.parse_args()
    rows = []
    for _ in range(0, options.runs, options.per_process):
        rows.append(watch(options.steps, options.per_process, options.timeout))
        print(rows[-1], flush=True)
    result = {
        "runs": options.runs,
        "steps": options.steps,
        "ended": sum(row["ended"] for row in rows),
        "hangs": sum(row["error"] == "timeout" for row in rows),
        "processes": rows,
    }
    print({key: result[key] for key in ("runs", "steps", "ended", "hangs")})
    with open(options.out, "w") as file:
        json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
