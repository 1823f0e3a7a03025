"""Measures every row of the float32 targets against an independent float64 smoother, and prints and writes them.

python benchmarks/numerics.py --longest 1000000 --problems 1000 --out numerics.json
An error is the largest |mean error| in units of the posterior standard deviation.
"""

import argparse
import json
import time

import jax
import jax.numpy as jnp
import numpy as np

from svae.messages import GaussianChain, compensated_sum, kernels
from svae.messages.gaussian import parallel as gaussian_parallel
from svae.messages.gaussian import sequential as gaussian_sequential
from tests.messages import oracles

LENGTHS = {"easy": 10**6, "slow": 10**6, "rwalk": 100, "constvel": 100, "illQ": 10**6, "d30": 1000}
TARGETS = {"easy": 5e-6, "slow": 1e-4, "rwalk": 5e-5, "constvel": 5e-4, "illQ": 1e-2, "d30": None}


def rotation(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def block(*blocks):
    sizes = [len(b) for b in blocks]
    out, at = np.zeros((sum(sizes), sum(sizes))), 0
    for b in blocks:
        out[at : at + len(b), at : at + len(b)] = b
        at += len(b)
    return out


def model(name):
    """A, Q, C, R of the six chains; the order of the random draws is part of their definition."""
    rng = np.random.default_rng(0)
    I = np.eye
    if name == "easy":
        return block(0.95 * rotation(0.3), 0.9 * rotation(1.0)), 0.1 * I(4), rng.normal(size=(3, 4)), 0.5 * I(3)
    if name == "slow":
        return block(0.9999 * rotation(0.01), 0.999 * rotation(0.05)), 1e-4 * I(4), rng.normal(size=(3, 4)), I(3)
    if name == "rwalk":
        return I(2), 1e-6 * I(2), I(2), I(2)
    if name == "constvel":
        dt = 0.1
        q = 1e-4 * np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]])
        C = np.zeros((2, 4))
        C[0, 0] = C[1, 2] = 1
        return np.kron(I(2), np.array([[1, dt], [0, 1]])), np.kron(I(2), q), C, 1e-2 * I(2)
    if name == "illQ":
        U = np.linalg.qr(rng.normal(size=(4, 4)))[0]
        Q = U @ np.diag([1, 1e-2, 1e-5, 1e-8]) @ U.T
        return block(0.99 * rotation(0.1), 0.98 * rotation(0.4)), Q, rng.normal(size=(3, 4)), 1e-4 * I(3)
    A = rng.normal(size=(30, 30))
    A = A * 0.99 / np.max(np.abs(np.linalg.eigvals(A)))
    U = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    return A, U @ np.diag(np.logspace(0, -4, 30)) @ U.T, rng.normal(size=(10, 30)), 0.1 * I(10)


def chain_of(name, T):
    """The chain with its potentials from sampled observations (seed 1), rounded to float32 and held in float64."""
    A, Q, C, R = model(name)
    root, D, rng = np.linalg.cholesky((Q + Q.T) / 2), len(A), np.random.default_rng(1)
    x = np.zeros((T, D))
    x[0] = rng.normal(size=D)
    noise = rng.normal(size=(T, D)) @ root.T
    for t in range(1, T):
        x[t] = A @ x[t - 1] + noise[t]
    y = x @ C.T + rng.normal(size=(T, len(R))) @ np.linalg.cholesky(R).T
    J, h = C.T @ np.linalg.inv(R) @ C, y @ np.linalg.inv(R) @ C

    def tile(X, n):
        return np.broadcast_to(X, (n, *X.shape))

    chain = GaussianChain(
        np.zeros(D), np.eye(D), tile(A, T - 1), np.zeros((T - 1, D)), tile(root, T - 1), tile(J, T), h
    )
    return jax.tree.map(lambda x: x.astype(np.float32).astype(np.float64), chain)


def measure(form, chain, mean, S, name):
    single = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), chain)
    start = time.time()
    q = jax.tree.map(np.asarray, jax.jit(form.smooth)(single))
    sd = np.sqrt(np.diagonal(S, axis1=-2, axis2=-1))
    roots = np.abs(np.diagonal(q.sqrt, axis1=-2, axis2=-1))
    return {
        "chain": name,
        "T": len(mean),
        "form": form.__name__.split("_")[-1],
        "error_sd": float(np.max(np.abs(q.mean - mean) / sd)),
        "target": TARGETS[name],
        "not_psd": int(np.sum(~np.all(roots > 0, -1))),
        "not_finite": int(sum(np.sum(~np.isfinite(x)) for x in q)),
        "seconds_with_compilation": round(time.time() - start, 2),
    }


def random_problems(count):
    """The largest differences from statsmodels in float64: D 1-10, T 1-200, 0-100 % missing."""
    rng, worst = np.random.default_rng(0), np.zeros(3)
    shapes = [(int(rng.integers(1, 201)), int(rng.integers(1, 11))) for _ in range(20)] + [(1, 3), (2, 3)]
    with jax.enable_x64(True):
        smooth = jax.jit(gaussian_sequential.smooth)
        for i in range(count):
            T, D = shapes[i % len(shapes)]
            chain = oracles.gaussian_chain(rng, T, D, missing=rng.random())
            mean, S, log_z = oracles.statsmodels(chain)
            q = jax.tree.map(np.asarray, smooth(jax.tree.map(jnp.asarray, chain)))
            P, total = q.sqrt @ np.swapaxes(q.sqrt, -1, -2), q.log_z.sum()
            errors = [np.abs(q.mean - mean).max(), np.abs(P - S).max(), abs(total - log_z) / max(1, abs(log_z))]
            worst = np.maximum(worst, errors)
    return {"problems": count, "mean": worst[0], "covariance": worst[1], "log_z_relative": worst[2], "target": 1e-11}


def long_sum():
    x = (np.random.default_rng(0).normal(size=10**6) - 50).astype(np.float32)
    exact = x.astype(np.float64).sum()
    return {"terms": len(x), "relative_error": abs(float(compensated_sum(jnp.asarray(x))) / exact - 1), "target": 1e-7}


def forms(longest, longest_parallel):
    """Each form with its cap on T."""
    if kernels.status().serve:
        from svae.messages.gaussian import compiled as gaussian_compiled

        yield gaussian_compiled, longest
    yield from ((gaussian_sequential, longest), (gaussian_parallel, longest_parallel))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--longest", type=int, default=10**6, help="cap on T")
    parser.add_argument("--longest-parallel", type=int, default=10**4, help="cap on T of the parallel form")
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--out", default="numerics.json")
    options = parser.parse_args()
    result = {"sum": long_sum(), "statsmodels": random_problems(options.problems), "chains": []}
    print(json.dumps(result))
    for name, T in LENGTHS.items():
        for form, cap in forms(options.longest, options.longest_parallel):
            chain = chain_of(name, min(T, cap))
            result["chains"].append(measure(form, chain, *oracles.rts(chain), name))
            print(json.dumps(result["chains"][-1]), flush=True)
    with open(options.out, "w") as file:
        json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
