"""One sequence of a million steps of every reference chain in float32: its error, its time and its peak of memory.

python benchmarks/longest.py --forms sequential kernels --out longest.json

Each chain is smoothed in a fresh process, whose peak counts the process itself, its potentials and its answer; dynamics
are one entry, potentials one for every step. Errors are in posterior sd, against a float64 smoother in numpy. The chain
of 30 dimensions has 3.6 GB of potentials at a million steps, so it takes --long-d30 of them.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from benchmarks.numerics import LENGTHS, TARGETS, model


def potentials(name: str, T: int):
    """A, Q_sqrt, J and h (T, D), with the draws of numerics.py."""
    A, Q, C, R = model(name)
    root, rng = np.linalg.cholesky((Q + Q.T) / 2), np.random.default_rng(1)
    x = np.zeros((T, len(A)))
    x[0] = rng.normal(size=len(A))
    noise = rng.normal(size=x.shape) @ root.T
    for t in range(1, T):
        x[t] = A @ x[t - 1] + noise[t]
    y = x @ C.T + rng.normal(size=(T, len(R))) @ np.linalg.cholesky(R).T
    found = A, root, C.T @ np.linalg.inv(R) @ C, y @ np.linalg.inv(R) @ C
    return [array.astype(np.float32) for array in found]


def peak_mb() -> float:
    """Of this process alone; getrusage would count the one that started it."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1e3 for line in file if line.startswith("VmHWM"))


def smoothed(form: str, file: str) -> dict:
    """Run in a process of its own; the answer and its errors come after the peak is read."""
    import jax
    import jax.numpy as jnp

    from svae.messages import GaussianChain

    smooth = jax.jit(importlib.import_module(f"svae.messages.gaussian.{form}").smooth)
    with np.load(file) as kept:
        A, root, J, h = (kept[key] for key in ("A", "root", "J", "h"))
    T, D = h.shape
    every = jnp.broadcast_to(J, (T, D, D))
    chain = GaussianChain(jnp.zeros(D), jnp.eye(D), A[None], jnp.zeros((1, D)), root[None], every, jnp.asarray(h))
    started = time.time()
    q = jax.block_until_ready(smooth(chain))
    found = {"seconds": time.time() - started, "peak_mb": peak_mb()}
    with np.load(file) as kept:
        error = float(np.max(np.abs(np.asarray(q.mean) - kept["mean"]) / kept["sd"]))
    roots = np.diagonal(np.asarray(q.sqrt), axis1=-2, axis2=-1)
    not_finite = int(sum(np.sum(~np.isfinite(np.asarray(x))) for x in q))
    return found | {"error_sd": error, "not_psd": int(np.sum(~np.all(roots > 0, -1))), "not_finite": not_finite}


def answer(A, root, J, h):
    """Means and sds by the textbook smoother in float64, step by step."""
    A, Q, J, h = A.astype(float), root.astype(float) @ root.T.astype(float), J.astype(float), h.astype(float)
    T, D = h.shape
    m, P, filtered, predicted = np.zeros(D), np.eye(D), [], []
    for t in range(T):
        predicted.append((m, P))
        P = np.linalg.solve(np.eye(D) + P @ J, P)
        P = (P + P.T) / 2
        m = m + P @ (h[t] - J @ m)
        filtered.append((m, P))
        m, P = A @ m, A @ P @ A.T + Q
    (m, P), means, sds = filtered[-1], np.zeros((T, D)), np.zeros((T, D))
    means[-1], sds[-1] = m, np.sqrt(np.diag(P))
    for t in range(T - 2, -1, -1):
        (mf, Pf), (mp, Pp) = filtered[t], predicted[t + 1]
        G = np.linalg.solve(Pp, A @ Pf).T
        m, P = mf + G @ (m - mp), Pf + G @ (P - Pp) @ G.T
        means[t], sds[t] = m, np.sqrt(np.diag(P))
    return means, sds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=10**6)
    parser.add_argument("--long-d30", type=int, default=20_000)
    parser.add_argument("--forms", nargs="*", default=["sequential", "kernels"])
    parser.add_argument("--chains", nargs="*", choices=list(LENGTHS), default=list(LENGTHS))
    parser.add_argument("--out", default="longest.json")
    parser.add_argument("--smoothed", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.smoothed:
        print(json.dumps(smoothed(*options.smoothed)))
        return
    rows = []
    for name in options.chains:
        T = options.long_d30 if name == "d30" else options.length
        with tempfile.NamedTemporaryFile(suffix=".npz") as file:
            A, root, J, h = potentials(name, T)
            mean, sd = answer(A, root, J, h)
            np.savez(file.name, A=A, root=root, J=J, h=h, mean=mean, sd=sd)
            for form in options.forms:
                told = subprocess.run(
                    [sys.executable, __file__, "--smoothed", form, file.name],
                    check=True,
                    capture_output=True,
                    text=True,
                )
                rows.append({"chain": name, "T": T, "form": form, "target_sd": TARGETS[name]} | json.loads(told.stdout))
                print(json.dumps(rows[-1]), flush=True)
    with open(options.out, "w") as out:
        json.dump(rows, out, indent=1)


if __name__ == "__main__":
    main()
