"""Smoothing on a GPU beside dynamax's parallel form, on the same arrays in one run: prints and writes times and ratios.

python benchmarks/gpu.py --peers FOLDER --out gpu.json
FOLDER holds dynamax where it is not installed. Times are ms a call, the best of several rounds of calls in a row; the
floor is every operand read once and every result written once, at the speed of a copy measured in the same run.
"""

import argparse
import json
import sys
import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np

from svae import messages
from svae.messages import GaussianChain, HMMChain
from svae.messages.gaussian import fused as gaussian_fused
from svae.messages.hmm import fused as hmm_fused


def gaussian_chains(B, T, D, seed=0):
    """B chains with potentials and dynamics of their own, in float32."""
    rng, n = np.random.default_rng(seed), min(B, 64)  # larger batches repeat them

    def normal(*shape):
        return rng.standard_normal((n, *shape), dtype=np.float32)

    def spd(*shape):
        X = normal(*shape, D, D)
        return X @ np.swapaxes(X, -1, -2) / D + 0.1 * np.eye(D, dtype=np.float32)

    roots = np.linalg.cholesky(spd()), np.linalg.cholesky(spd(T - 1))
    A = 0.9 * normal(T - 1, D, D) / np.sqrt(D)
    chain = normal(D), roots[0], A, normal(T - 1, D), roots[1], spd(T), normal(T, D)
    return GaussianChain(*(jnp.tile(jnp.asarray(x, jnp.float32), (B // n, *[1] * (x.ndim - 1))) for x in chain))


def chains_with_one_transition(B, T, D):
    """The same potentials on chains whose dynamics do not change in time, as those of an LDS."""
    chain = gaussian_chains(B, T, D)
    return chain._replace(A=chain.A[:, :1], b=chain.b[:, :1], Q_sqrt=chain.Q_sqrt[:, :1])


def hidden_chains(B, T, K, seed=0):
    rng = np.random.default_rng(seed)
    arrays = np.full(K, -np.log(K)), np.log(rng.dirichlet(np.ones(K), size=K)), 3 * rng.normal(size=(B, T, K))
    return HMMChain(*(jnp.asarray(x, jnp.float32) for x in arrays), jnp.ones(T, bool))


def dynamax_smoother(chain):
    """A potential is an observation y = F^-1 h of F' x with unit noise, J = F F'."""
    from dynamax.linear_gaussian_ssm.inference import make_lgssm_params
    from dynamax.linear_gaussian_ssm.parallel_inference import lgssm_smoother

    F = jnp.linalg.cholesky(chain.J)
    y = jax.scipy.linalg.solve_triangular(F, chain.h[..., None], lower=True)[..., 0]
    D = y.shape[-1]

    def pad(X):  # dynamax wants the transition into each step, of which that into the first is not used, or one
        return jnp.concatenate([X[:1], X]) if len(X) > 1 else X[0]

    def smooth(c, F, y):
        Q = c.Q_sqrt @ jnp.swapaxes(c.Q_sqrt, -1, -2)
        params = make_lgssm_params(
            c.mean0, c.sqrt0 @ c.sqrt0.T, pad(c.A), pad(Q), jnp.swapaxes(F, -1, -2), jnp.eye(D), pad(c.b)
        )
        return lgssm_smoother(params, y)

    run = jax.jit(jax.vmap(smooth))
    return lambda: run(chain, F, y)


def dynamax_hidden(chain):
    from dynamax.hidden_markov_model.parallel_inference import hmm_smoother

    run = jax.jit(jax.vmap(hmm_smoother, (None, None, 0)))
    init, trans = jnp.exp(chain.log_init), jnp.exp(chain.log_trans)
    return lambda: run(init, trans, chain.node)


def ours(chain):
    run = jax.jit(jax.vmap(gaussian_fused.smooth))
    return lambda: run(chain)


def ours_with_gradient(chain):
    """Everything the smoother gives, and the derivative in everything it takes."""

    @jax.jit
    def run(chain):
        q, pull = jax.vjp(jax.vmap(gaussian_fused.smooth), chain)
        return q, pull(q)

    return lambda: run(chain)


def ours_hidden(chain):
    run = jax.jit(jax.vmap(hmm_fused.smooth, (HMMChain(None, None, 0, None),)))
    return lambda: run(chain)


def ours_hidden_with_gradient(chain):
    @jax.jit
    def run(init, trans, node):
        smooth = jax.vmap(lambda i, t, n: hmm_fused.smooth(HMMChain(i, t, n, chain.mask)), (None, None, 0))
        q, pull = jax.vjp(smooth, init, trans, node)
        return q, pull(q)

    return lambda: run(*chain[:3])


def measure(run, calls, rounds):
    """ms a call, the fastest round, and seconds to the first result."""
    start = time.perf_counter()
    jax.block_until_ready(run())
    first, best = time.perf_counter() - start, np.inf
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            out = run()
        jax.block_until_ready(out)
        best = min(best, (time.perf_counter() - start) / calls)
    return {"ms": 1e3 * best, "first_s": first}


def copy_speed(rounds):
    """Bytes read and written a second by a copy of 4 GB."""
    x = jnp.ones(2**30, jnp.float32)
    copy = jax.jit(lambda x: x + 1)
    return 2 * x.nbytes / (measure(lambda: copy(x), 5, rounds)["ms"] / 1e3)


def nbytes(tree):
    return sum(x.nbytes for x in jax.tree.leaves(tree))


def race(title, chain, contestants, speed, calls, rounds):
    """Times of all, and their ratio to dynamax's; the floor from what goes in and comes out of ours."""
    result = {name: measure(run, calls, rounds) for name, run in contestants.items()}
    result["floor"] = {"ms": 1e3 * (nbytes(chain) + nbytes(contestants["fused"]())) / speed}
    base = result.get("dynamax parallel", {"ms": float("nan")})["ms"]
    print(title)
    for name, times in result.items():
        note = f"first after {times['first_s']:.1f} s" if "first_s" in times else ""
        print(f"  {name:26s} {times['ms']:9.3f} ms   dynamax / this = {base / times['ms']:6.1f}   {note}", flush=True)
    return result


def gaussian_race(chain, peers, speed, calls, rounds):
    contestants = {"fused": ours(chain), "fused, value and gradient": ours_with_gradient(chain)}
    if peers:
        contestants["dynamax parallel"] = dynamax_smoother(chain)
        error = jnp.max(jnp.abs(contestants["dynamax parallel"]().smoothed_means - contestants["fused"]().mean))
        assert error < 1e-2, f"dynamax differs by {error}"
    (B, T, D), steps = chain.h.shape, chain.A.shape[1]
    title = f"Gaussian chain, {steps} transition{'s' * (steps > 1)}, D = {D}, T = {T}, batch {B}"
    return race(title, chain, contestants, speed, calls, rounds)


def hidden_race(chain, peers, speed, calls, rounds):
    B, T, K = chain.node.shape
    contestants = {"fused": ours_hidden(chain), "fused, value and gradient": ours_hidden_with_gradient(chain)}
    if peers:
        contestants["dynamax parallel"] = dynamax_hidden(chain)
        error = jnp.max(jnp.abs(contestants["dynamax parallel"]().smoothed_probs - contestants["fused"]().states))
        assert error < 1e-3, f"dynamax differs by {error}"
    return race(f"Hidden Markov chain, K = {K}, T = {T}, batch {B}", chain, contestants, speed, calls, rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="a folder with dynamax; without it, ours alone", default="")
    parser.add_argument("--shapes", default="1x1000,32x1000,128x1000,1024x1000,1x100000", help="batch x T")
    parser.add_argument("--each", default="1x1000,128x1000,1024x1000", help="likewise, a transition for each step")
    parser.add_argument("--hidden", default="1x1000,32x1000,128x1000")
    parser.add_argument("--calls", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", default="gpu.json")
    options = parser.parse_args()
    if options.peers:
        sys.path.append(options.peers)
    warnings.simplefilter("ignore")
    speed = copy_speed(options.rounds)
    print(f"{jax.devices()[0].device_kind}: {messages.gpu_kernels()}; copy {speed / 1e12:.2f} TB/s", flush=True)
    result = {"device": jax.devices()[0].device_kind, "kernels": messages.gpu_kernels(), "copy_bytes_per_s": speed}
    for name, shapes, chains, race_of, size in (
        ("gaussian", options.shapes, chains_with_one_transition, gaussian_race, 10),
        ("gaussian_each", options.each, gaussian_chains, gaussian_race, 10),
        ("hmm", options.hidden, hidden_chains, hidden_race, 30),
    ):
        for shape in filter(None, shapes.split(",")):
            B, T = map(int, shape.split("x"))
            result[f"{name}_{shape}"] = race_of(chains(B, T, size), options.peers, speed, options.calls, options.rounds)
            with open(options.out, "w") as file:  # after each: a run that is cut short keeps what it has
                json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
