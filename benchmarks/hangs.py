"""Runs the time-parallel smoother many times in watched subprocesses and counts those that stop without an end.

python benchmarks/hangs.py --runs 100 --steps 100000 --timeout 120 --out hangs.json
"""

import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import time

CHILD = """
import sys, jax, jax.numpy as jnp
from svae.messages import GaussianChain
from svae.messages.gaussian import parallel as gaussian_parallel
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


def cpu_seconds(pid):
    """User and system seconds of a process so far (Linux)."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def verdict(child, timeout):
    """A smoothing is late: `hang` if the process then uses no CPU for a while, `slow` if it is still computing."""
    before = cpu_seconds(child.pid)
    time.sleep(10)
    return "hang" if cpu_seconds(child.pid) - before < 0.1 else f"slow: no result in {timeout} s, still computing"


def watch(steps, runs, timeout):
    """One process of `runs` smoothings; each may take `timeout` seconds (the first compiles too)."""
    command = [sys.executable, "-c", CHILD, str(steps), str(runs)]
    start, seconds, error = time.time(), [], ""
    with tempfile.TemporaryFile("w+") as complaints:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints, text=True)
        for _ in range(runs):
            ready = select.select([child.stdout], [], [], timeout)[0]
            if not ready:
                error = verdict(child, timeout)
                child.kill()
                break
            if not child.stdout.readline():
                complaints.seek(0)
                error = complaints.read()[-300:]
                break
            seconds.append(round(time.time() - start, 1))
        child.stdout.close()
        child.wait()
    return {"ended": len(seconds), "finished_at": seconds, "error": error}


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
        "hangs": sum(row["error"] == "hang" for row in rows),
        "slow": sum(row["error"].startswith("slow") for row in rows),
        "processes": rows,
    }
    print({key: result[key] for key in ("runs", "steps", "ended", "hangs", "slow")})
    with open(options.out, "w") as file:
        json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
