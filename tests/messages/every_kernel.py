"""What the compiled kernels give on small chains, alone and in lanes: run as a script it is saved to a file."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

from svae.messages import GaussianChain, HMMChain
from svae.messages.gaussian import compiled as gaussian_compiled
from svae.messages.hmm import compiled as hmm_compiled
from tests.messages import oracles


def gaussian(B: int, T: int, D: int, dtype):
    """Smoothed moments, filtered moments, a draw and their pulled cotangents, of B sequences."""
    chains = [oracles.gaussian_chain(np.random.default_rng(i), T, D, missing=0.3) for i in range(B)]
    stacked = GaussianChain(*(jnp.asarray(np.stack(x), dtype) for x in zip(*chains, strict=True)))

    def everything(chain):
        q = gaussian_compiled.smooth(chain)
        return q, gaussian_compiled.filter(chain), gaussian_compiled.sample(q, key=jax.random.key(0))

    return _pulled(everything, stacked)


def hidden(B: int, T: int, K: int, dtype):
    """Smoothed states, log Z and their pulled cotangents, of B sequences of different lengths under one matrix."""
    rng = np.random.default_rng(B)
    log_trans, node = np.log(rng.dirichlet(np.ones(K), size=K)), 3 * rng.normal(size=(B, T, K))
    node[1::3] *= 100  # too far apart for products of probabilities
    mask = np.arange(T) < rng.integers(1, T + 1, size=(B, 1))

    def everything(nodes, init, trans):
        chains, axes = HMMChain(init, trans, nodes, jnp.asarray(mask)), HMMChain(None, None, 0, 0)
        return jax.vmap(hmm_compiled.smooth, (axes,))(chains), jax.vmap(hmm_compiled.filter, (axes,))(chains)

    q, pull = jax.vjp(everything, *(jnp.asarray(x, dtype) for x in (node, np.zeros(K), log_trans)))
    finite = jax.tree.map(lambda x: jnp.where(jnp.isfinite(x), x, 0), q)
    return q, pull(jax.tree.map(jnp.cos, finite))


def varying(B: int, T: int, K: int, dtype):
    """Smoothed states and pairs, log states and pulled cotangents, of B sequences with a matrix for every step."""
    rng = np.random.default_rng(B)
    log_trans, node = np.log(rng.dirichlet(np.ones(K), size=(B, T - 1, K))), 3 * rng.normal(size=(B, T, K))
    mask = jnp.asarray(np.arange(T) < rng.integers(1, T + 1, size=(B, 1)))

    def one(*chain):
        chain = HMMChain(*chain)
        forms = hmm_compiled.smooth_pairs, hmm_compiled.filter
        q, pull = jax.vjp(lambda *p: [f(HMMChain(*p, chain.mask)) for f in forms], *chain[:3])
        return q, pull(jax.tree.map(jnp.cos, q))

    return jax.vmap(one)(*(jnp.asarray(x, dtype) for x in (np.zeros((B, K)), log_trans, node)), mask)


def _pulled(f, chain):
    def one(chain):
        q, pull = jax.vjp(f, chain)
        return q, pull(jax.tree.map(jnp.cos, q))

    return jax.vmap(one)(chain)


def everything() -> list[np.ndarray]:
    """All chains, alone in single precision, in batches in both."""
    cases = [(1, np.dtype("float32")), (18, np.dtype("float32")), (18, np.dtype("float64"))]
    with jax.enable_x64(True):
        runs = [jax.jit(f, static_argnums=(0, 1, 2, 3)) for f in (gaussian, hidden, varying)]
        found = [run(B, 5, n, dtype) for run, n in zip(runs, (10, 7, 7), strict=True) for B, dtype in cases]
    return [np.asarray(x) for x in jax.tree.leaves(found)]


if __name__ == "__main__":
    np.savez(sys.argv[1], *everything())
