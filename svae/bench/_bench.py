"""What `svae bench` measures: ceilings, chains and one training step, in less than a minute."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from svae import messages
from svae.bench import _plain_chains, contestants
from svae.bench._race import ceilings, race, ratio
from svae.messages import GaussianChain, HMMChain

T, D, K = 500, 10, 30


def bench(model: str) -> dict[str, Any]:
    """Which kernels serve, ceilings, ns per step of the chains, and ms per training step of `model` (lds or slds)."""
    kernels = messages.cpu_kernels() if jax.default_backend() == "cpu" else messages.gpu_kernels()
    return {
        "message_passing": kernels,
        "ceilings": ceilings(),
        "chains": [_chain(kind, batch) for kind in ("gaussian", "hmm") for batch in (1, 32)],
        "step": _step(model),
    }


def _chain(kind: str, batch: int) -> dict[str, Any]:
    """Smoothing of chains with potentials of their own, ns per step and sequence."""
    ours, plain = (_gaussian if kind == "gaussian" else _hidden)(batch, np.random.default_rng(0))
    taken = race({"svae": ours, "plain": plain}, 5)
    best = {who: float(1e9 * times[:, 0].min() / (T * batch)) for who, times in taken.items()}
    found = ratio(taken["plain"], taken["svae"])
    return {"chain": kind, "batch": batch, "ns_per_step": best["svae"], "plain_ns_per_step": best["plain"]} | {
        "ratio": found["median"]
    }


def _gaussian(batch: int, rng: np.random.Generator):
    """Ours, and the plain information form, on random walks of D dimensions seen with noise."""
    A, h = 0.95 * np.eye(D), rng.normal(size=(batch, T, D))
    steps = lambda matrix, n: np.broadcast_to(matrix, (batch, n, *np.shape(matrix)))  # noqa: E731
    J = steps(np.eye(D), T) * rng.uniform(0.5, 2, (batch, T, 1, 1))
    arrays = np.zeros((batch, D)), steps(np.eye(D), 1)[:, 0], steps(A, T - 1), steps(np.zeros(D), T - 1)
    chain = GaussianChain(*(jnp.asarray(a, jnp.float32) for a in (*arrays, steps(np.eye(D), T - 1), J, h)))
    pair = _plain_chains.Pair(A.T @ A, -A.T, np.eye(D), np.zeros(D), np.zeros(D), np.zeros(()))
    first = jnp.eye(D), jnp.zeros(D), jnp.zeros(())
    pairs = jax.tree.map(lambda a: jnp.asarray(steps(a, T - 1), jnp.float32), pair)
    smooth = jax.jit(jax.vmap(messages.gaussian.smooth))
    plainly = jax.jit(jax.vmap(_plain_chains.smooth, (None, 0, 0, 0, 0)))
    return lambda: smooth(chain), lambda: plainly(first, pairs, chain.J, chain.h, jnp.zeros_like(chain.h))


def _hidden(batch: int, rng: np.random.Generator):
    """Ours, and forward-backward in logarithms."""
    log_trans = jnp.asarray(np.log(rng.dirichlet(np.ones(K), size=K)), jnp.float32)
    node, log_init = jnp.asarray(3 * rng.normal(size=(batch, T, K)), jnp.float32), jnp.full(K, -np.log(K), jnp.float32)
    one = lambda node: messages.hmm.smooth(HMMChain(log_init, log_trans, node, jnp.ones(T, bool)))  # noqa: E731
    smooth = jax.jit(jax.vmap(one))
    plainly = jax.jit(jax.vmap(_plain_chains.forward_backward, (None, None, 0)))
    return lambda: smooth(node), lambda: plainly(log_init, log_trans, node)


def _step(model: str) -> dict[str, Any]:
    """One step of 32 sequences of 200 frames of 30 x 30 pixels."""
    runs, sweeps = contestants.both(model)
    taken = race(runs, 5)
    ms = {who: float(1e3 * np.median(times[:, 0])) for who, times in taken.items()}
    shape = {"model": model, "sequences": 32, "frames": 200, "pixels": 900}
    return (
        shape
        | {"sweeps_of_mean_field": sweeps["svae"], "plain_sweeps": sweeps["plain"]}
        | {"ms": ms["svae"], "plain_ms": ms["plain"], "networks_ms": ms["networks"]}
        | {"ratio": ratio(taken["plain"], taken["svae"])}
    )
