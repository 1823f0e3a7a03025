"""Message passing on chains beside its peers, on the same arrays in one run: prints and writes times and ratios.

python benchmarks/chains.py --peers FOLDER --out chains.json
FOLDER holds dynamax where it is not installed. Times are ns per time step and sequence: the fastest of several rounds,
the contestants of a round taken in turn, so that a busy machine slows all of them alike; `cpu` is processor time.
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
from svae.messages import GaussianChain, HMMChain, gaussian_kernels, gaussian_sequential, hmm_kernels, hmm_sequential


def gaussian_chains(B, T, D, seed=0):
    """B chains with potentials and dynamics of their own, in float32."""
    rng = np.random.default_rng(seed)

    def spd(*shape):
        X = rng.normal(size=(*shape, D, D))
        return X @ np.swapaxes(X, -1, -2) / D + 0.1 * np.eye(D)

    roots = np.linalg.cholesky(spd(B)), np.linalg.cholesky(spd(B, T - 1))
    A = 0.9 * rng.normal(size=(B, T - 1, D, D)) / np.sqrt(D)
    chain = GaussianChain(
        rng.normal(size=(B, D)),
        roots[0],
        A,
        rng.normal(size=(B, T - 1, D)),
        roots[1],
        spd(B, T),
        rng.normal(size=(B, T, D)),
    )
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), chain)


def observations(chain):
    """The same chains for peers: y = F^-1 h observed through F' with unit noise, J = F F'."""
    F = np.linalg.cholesky(np.asarray(chain.J, np.float64))
    y = np.linalg.solve(F, np.asarray(chain.h, np.float64)[..., None])[..., 0]
    return F, y


def dynamax_smoother(chain):
    from dynamax.linear_gaussian_ssm import lgssm_smoother
    from dynamax.linear_gaussian_ssm.inference import make_lgssm_params

    F, y = (jnp.asarray(x, jnp.float32) for x in observations(chain))
    D = y.shape[-1]

    def pad(X):  # dynamax wants the transition into each step; that into the first is not used
        return jnp.concatenate([X[:1], X])

    def smooth(c, F, y):
        Q = c.Q_sqrt @ jnp.swapaxes(c.Q_sqrt, -1, -2)
        params = make_lgssm_params(
            c.mean0, c.sqrt0 @ c.sqrt0.T, pad(c.A), pad(Q), jnp.swapaxes(F, -1, -2), jnp.eye(D), pad(c.b)
        )
        return lgssm_smoother(params, y)

    run = jax.jit(jax.vmap(smooth))
    return lambda: run(chain, F, y).smoothed_means


def statsmodels_smoother(chain):
    """One sequence; float32 as the others."""
    from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

    c = jax.tree.map(lambda x: np.asarray(x[0], np.float64), chain)
    F, y = (x[0].astype(np.float32) for x in observations(chain))
    D = y.shape[1]

    def last(X):
        return np.asfortranarray(np.moveaxis(np.concatenate([X, X[-1:]]), 0, -1), dtype=np.float32)

    def smooth():
        ks = KalmanSmoother(k_endog=D, k_states=D, tolerance=0, dtype=np.float32)
        ks.bind(y)
        ks["design"] = np.asfortranarray(np.moveaxis(np.swapaxes(F, -1, -2), 0, -1))
        ks["obs_cov"] = ks["selection"] = np.eye(D, dtype=np.float32)
        ks["transition"], ks["state_intercept"] = last(c.A), last(c.b)
        ks["state_cov"] = last(c.Q_sqrt @ np.swapaxes(c.Q_sqrt, -1, -2))
        ks.initialize_known(c.mean0.astype(np.float32), (c.sqrt0 @ c.sqrt0.T).astype(np.float32))
        return ks.smooth().smoothed_state.T[None]

    return smooth


def ours(form, chain):
    smooth = jax.jit(jax.vmap(form.smooth))
    return lambda: smooth(chain)


def ours_with_gradient(form, chain):
    """Everything the smoother gives, and the derivative in everything it takes."""

    @jax.jit
    def run(chain):
        q, pull = jax.vjp(jax.vmap(form.smooth), chain)
        return q, pull(q)

    return lambda: run(chain)


def hidden_chains(B, T, K, seed=0):
    rng = np.random.default_rng(seed)
    log_trans = np.log(rng.dirichlet(np.ones(K), size=K))
    arrays = np.full(K, -np.log(K)), log_trans, 3 * rng.normal(size=(B, T, K))
    return HMMChain(*(jnp.asarray(x, jnp.float32) for x in arrays), jnp.ones(T, bool))


def ours_hidden(form, chain):
    smooth = jax.jit(jax.vmap(form.smooth, (HMMChain(None, None, 0, None),)))
    return lambda: smooth(chain)


def ours_hidden_with_gradient(form, chain):
    @jax.jit
    def run(init, trans, node):
        smooth = jax.vmap(lambda i, t, n: form.smooth(HMMChain(i, t, n, chain.mask)), (None, None, 0))
        q, pull = jax.vjp(smooth, init, trans, node)
        return q, pull(q)

    return lambda: run(*chain[:3])


def dynamax_hidden(chain):
    from dynamax.hidden_markov_model import hmm_smoother

    run = jax.jit(jax.vmap(hmm_smoother, (None, None, 0)))
    init, trans = jnp.exp(chain.log_init), jnp.exp(chain.log_trans)
    return lambda: run(init, trans, chain.node).smoothed_probs


def hmmlearn_hidden(chain):
    """Its C++ forward, backward and pair counts for one sequence."""
    from hmmlearn import _hmmc

    init, trans, node = (
        np.asarray(x, np.float64) for x in (jnp.exp(chain.log_init), jnp.exp(chain.log_trans), chain.node[0])
    )

    def run():
        _, forward = _hmmc.forward_log(init, trans, node)
        backward = _hmmc.backward_log(init, trans, node)
        _hmmc.compute_log_xi_sum(forward, trans, backward, node)
        states = forward + backward
        states = np.exp(states - states.max(1, keepdims=True))
        return (states / states.sum(1, keepdims=True))[None]

    return run


def race(contestants, steps, rounds):
    """Fastest time of each over the rounds, in turn."""
    best = dict.fromkeys(contestants, (np.inf, np.inf))
    for run in contestants.values():
        jax.block_until_ready(run())
    for _ in range(rounds):
        for name, run in contestants.items():
            wall, cpu = time.perf_counter(), time.process_time()
            jax.block_until_ready(run())
            took = time.perf_counter() - wall, time.process_time() - cpu
            best[name] = tuple(map(min, best[name], took))
    return {name: {"ns": 1e9 * w / steps, "cpu_ns": 1e9 * c / steps} for name, (w, c) in best.items()}


def show(title, result, base):
    print(title)
    for name, times in result.items():
        ratio, cpu = result[base]["ns"] / times["ns"], result[base]["cpu_ns"] / max(times["cpu_ns"], 1e-9)
        print(
            f"  {name:34s} {times['ns']:10.0f} ns   {base} / this = {ratio:7.1f}   (processor time: {cpu:.1f})",
            flush=True,
        )


def agree(name, got, want, tolerance):
    error = float(np.max(np.abs(np.asarray(got) - np.asarray(want))))
    assert error < tolerance, f"{name} differs by {error}"


def gaussian_race(B, T, D, rounds):
    chain = gaussian_chains(B, T, D)
    contestants = {
        "kernels": ours(gaussian_kernels, chain),
        "kernels, value and gradient": ours_with_gradient(gaussian_kernels, chain),
        "pure JAX": ours(gaussian_sequential, chain),
        "pure JAX, value and gradient": ours_with_gradient(gaussian_sequential, chain),
        "dynamax": dynamax_smoother(chain),
    }
    agree("dynamax", contestants["dynamax"](), contestants["kernels"]().mean, 1e-2)
    if B == 1:
        contestants["statsmodels"] = statsmodels_smoother(chain)
        agree("statsmodels", contestants["statsmodels"](), contestants["kernels"]().mean, 1e-2)
    result = race(contestants, B * T, rounds)
    show(f"Gaussian chain, D = {D}, T = {T}, batch {B}, float32, own potentials", result, "dynamax")
    return result


def hidden_race(B, T, K, rounds):
    chain = hidden_chains(B, T, K)
    contestants = {
        "kernels": ours_hidden(hmm_kernels, chain),
        "kernels, value and gradient": ours_hidden_with_gradient(hmm_kernels, chain),
        "pure JAX": ours_hidden(hmm_sequential, chain),
        "dynamax": dynamax_hidden(chain),
    }
    agree("dynamax", contestants["dynamax"](), contestants["kernels"]().states, 1e-3)
    if B == 1:
        contestants["hmmlearn"] = hmmlearn_hidden(chain)
        agree("hmmlearn", contestants["hmmlearn"](), contestants["kernels"]().states, 1e-3)
    result = race(contestants, B * T, rounds)
    show(f"Hidden Markov chain, K = {K}, T = {T}, batch {B}, float32", result, "dynamax")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", help="a folder with dynamax")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--T", type=int, default=1000)
    parser.add_argument("--out", default="chains.json")
    options = parser.parse_args()
    if options.peers:
        sys.path.append(options.peers)
    warnings.simplefilter("ignore")
    print(messages.cpu_kernels())
    result = {"kernels": messages.cpu_kernels()}
    for B in (1, 32):
        result[f"gaussian_{B}"] = gaussian_race(B, options.T, 10, options.rounds)
        result[f"hmm_{B}"] = hidden_race(B, options.T, 30, options.rounds)
    with open(options.out, "w") as file:
        json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
