"""The compiled kernels against the dense matrix, the enumeration, differences, and pure JAX."""

import functools
import operator
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from svae import messages
from svae.messages import GaussianChain, HMMChain, kernels, served
from svae.messages.gaussian import sequential as gaussian_sequential
from svae.messages.hmm import sequential as hmm_sequential
from tests.messages import oracles
from tests.messages.test_gaussian import assert_is_the_dense_matrix, blocks, cov, hard, on_device
from tests.messages.test_hmm import CASES

if not kernels.status().serve:
    pytest.skip(kernels.status().reason, allow_module_level=True)

from svae.messages.gaussian import compiled as gaussian_compiled
from svae.messages.hmm import compiled as hmm_compiled
from tests.messages import every_kernel

ROOT = Path(__file__).parents[2]
CLOSE = {"atol": 1e-10, "rtol": 1e-10}


def batch(B, T, D, dtype=np.float64):
    """B different chains, all with the same A."""
    chains = [oracles.gaussian_chain(np.random.default_rng(i), T, D, missing=0.3) for i in range(B)]
    stacked = on_device(jax.tree.map(lambda *x: np.stack(x), *chains), dtype)
    return stacked._replace(A=stacked.A[0]), GaussianChain(0, 0, None, 0, 0, 0, 0)


def symmetric(chain):
    return chain._replace(J=(chain.J + jnp.swapaxes(chain.J, -1, -2)) / 2)


@pytest.mark.parametrize("T, D", [(1, 1), (1, 3), (2, 2), (5, 2), (4, 10), (3, 13)])
def test_smoother_and_filter_are_the_dense_matrix(x64, T, D):
    chain = oracles.gaussian_chain(np.random.default_rng(T), T, D, missing=0.3)
    assert_is_the_dense_matrix(gaussian_compiled, chain)


def test_roots_of_the_noise_need_not_be_triangular(x64):
    chain = on_device(oracles.gaussian_chain(np.random.default_rng(0), 5, 3))
    turn = jnp.linalg.qr(jax.random.normal(jax.random.key(0), (3, 3)))[0]
    turned = chain._replace(Q_sqrt=chain.Q_sqrt @ turn, sqrt0=chain.sqrt0 @ turn)
    got, want = gaussian_compiled.smooth(turned), gaussian_compiled.smooth(chain)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **CLOSE), got, want)


@pytest.mark.parametrize("T, D", [(1, 2), (5, 2), (3, 5)])
def test_gradients_are_those_of_differences(x64, T, D):
    chain = on_device(oracles.gaussian_chain(np.random.default_rng(5), T, D))

    def everything(chain):
        q = gaussian_compiled.smooth(symmetric(chain))
        return q, gaussian_compiled.filter(symmetric(chain)), gaussian_compiled.sample(q, key=jax.random.key(0))

    check_grads(jax.jit(everything), (chain,), order=1, modes=["rev"], atol=1e-6, rtol=1e-6, eps=1e-5)


def test_gradient_of_log_z_is_the_smoothed_statistics(x64):
    chain = on_device(oracles.gaussian_chain(np.random.default_rng(4), 6, 3, missing=0.3))
    gradient, q = jax.grad(gaussian_compiled.log_normalizer)(chain), gaussian_compiled.smooth(chain)
    np.testing.assert_allclose(gradient.h, q.mean, **CLOSE)
    second = cov(q.sqrt) + np.asarray(q.mean)[:, :, None] * np.asarray(q.mean)[:, None]
    np.testing.assert_allclose(2 * gradient.J, -second, **CLOSE)


def test_values_and_gradients_are_those_of_pure_jax(x64):
    chain = on_device(oracles.gaussian_chain(np.random.default_rng(6), 5, 2, missing=0.5))

    def loss(form):
        return lambda chain: sum(jnp.sum(jnp.sin(x)) for x in form.smooth(symmetric(chain)))

    got, want = (jax.jit(jax.value_and_grad(loss(form)))(chain) for form in (gaussian_compiled, gaussian_sequential))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-9), got, want)
    draws = [
        form.sample(gaussian_compiled.smooth(chain), key=jax.random.key(0))
        for form in (gaussian_compiled, gaussian_sequential)
    ]
    np.testing.assert_allclose(*draws, **CLOSE)


@pytest.mark.parametrize("B", [1, 3, 17, 33])
@pytest.mark.parametrize("D", [1, 3, 10])
def test_a_batch_in_lanes_is_each_sequence_alone(x64, B, D):
    chains, axes = batch(B, 4, D)

    def pulled(chain):
        q, pull = jax.vjp(gaussian_compiled.smooth, chain)
        return q, pull(jax.tree.map(jnp.cos, q))[0]

    together = jax.jit(jax.vmap(pulled, (axes,)))(chains)
    for i in {0, B // 2, B - 1}:
        alone = pulled(GaussianChain(*(x if axis is None else x[i] for x, axis in zip(chains, axes, strict=True))))
        one = jax.tree.map(operator.itemgetter(i), together)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **CLOSE), one, alone)


@pytest.mark.parametrize("dtype, close", [(np.float32, 3e-4), (np.float64, 1e-10)])
@pytest.mark.parametrize("D", [2, 4, 6, 7, 8, 11, 12, 16, 17])
def test_every_size_alone_and_in_lanes(x64, D, dtype, close):
    """Small sizes have code of their own, alone and in lanes."""
    T, (chains, axes) = 3, batch(5, 3, D, dtype)
    last = GaussianChain(*(x if axis is None else x[4] for x, axis in zip(chains, axes, strict=True)))
    mean, S, log_z = oracles.dense(jax.tree.map(lambda x: np.asarray(x, np.float64), last))
    lanes = jax.tree.map(operator.itemgetter(4), jax.vmap(gaussian_compiled.smooth, (axes,))(chains))
    for q in (lanes, gaussian_compiled.smooth(last)):
        np.testing.assert_allclose(q.mean, mean, atol=close, rtol=close)
        np.testing.assert_allclose(cov(q.sqrt), blocks(S, T, D)[range(T), range(T)], atol=close, rtol=close)
        np.testing.assert_allclose(q.log_z.sum(), log_z, atol=close, rtol=close)


def test_two_batch_axes_and_a_shared_operand(x64):
    chains, axes = batch(6, 3, 2)
    square = GaussianChain(
        *(x if a is None else x.reshape(2, 3, *x.shape[1:]) for x, a in zip(chains, axes, strict=True))
    )
    once = jax.vmap(gaussian_compiled.smooth, (axes,))(chains)
    twice = jax.vmap(jax.vmap(gaussian_compiled.smooth, (axes,)), (axes,))(square)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a.reshape(b.shape), b), twice, once)
    total = lambda c: sum(jnp.sum(jnp.sin(x)) for x in jax.vmap(gaussian_compiled.smooth, (axes,))(c))  # noqa: E731
    apart = chains._replace(A=jnp.broadcast_to(chains.A, (6, *chains.A.shape)))
    everywhere = lambda c: sum(jnp.sum(jnp.sin(x)) for x in jax.vmap(gaussian_compiled.smooth)(c))  # noqa: E731
    np.testing.assert_allclose(jax.grad(total)(chains).A, jax.grad(everywhere)(apart).A.sum(0), **CLOSE)


@pytest.mark.parametrize("name, target", [("random walk", 5e-5), ("constant velocity", 5e-4)])
def test_float32_on_smooth_latents(name, target):
    chain = hard(name, 100)
    mean, S = oracles.rts(chain)
    single = on_device(chain, np.float32)
    lanes = jax.vmap(gaussian_compiled.smooth)(jax.tree.map(lambda x: jnp.stack([x] * 17), single))
    sd = np.sqrt(np.diagonal(S, axis1=-2, axis2=-1))
    for q in (gaussian_compiled.smooth(single), jax.tree.map(lambda x: x[16], lanes)):
        assert np.max(np.abs(q.mean - mean) / sd) < target
        assert all(np.all(np.isfinite(x)) for x in q)
        assert np.all(np.linalg.eigvalsh(cov(q.sqrt)) > 0)


def test_a_nan_stays_in_its_sequence():
    chains, axes = batch(17, 5, 3, np.float32)
    clean = jax.vmap(gaussian_compiled.smooth, (axes,))(chains)
    q = jax.vmap(gaussian_compiled.smooth, (axes,))(chains._replace(h=chains.h.at[4, 2, 1].set(np.nan)))
    assert np.all(np.isnan(q.mean[4])) and np.isnan(q.log_z[4, 2])
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(np.delete(a, 4, 0), np.delete(b, 4, 0)), q, clean)
    chain = HMMChain(jnp.zeros(3), jnp.zeros((3, 3)), jnp.zeros((4, 3)).at[1, 1].set(jnp.nan), jnp.ones(4, bool))
    assert np.isnan(hmm_compiled.smooth(chain).log_z[1])


@pytest.mark.parametrize("node", [(5, 7), (4, 3), (5, 1), (3, 5), (1, 5, 3)])
def test_an_operand_of_another_size_is_refused(node):
    operands = [jnp.zeros(shape) for shape in ((3,), (3, 3), node, (5,))]
    shapes = (5, 3), (3, 3), (5,), (5,)
    with pytest.raises(Exception, match="operand 2 of a kernel has another type or shape"):
        jax.block_until_ready(kernels.call("svae_hmm_smooth", shapes, *operands, T=5, D=3))


# --- the hidden Markov chain --------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_the_hidden_chain_is_the_enumeration(x64, case):
    chain = oracles.hmm_chain(np.random.default_rng(0), **case)
    log_z, states, pairs, best = oracles.enumerate_paths(chain)
    n, chain = len(states), HMMChain(*map(jnp.asarray, chain))
    q = hmm_compiled.smooth(chain)
    np.testing.assert_allclose(q.states[:n], states, atol=1e-12)
    np.testing.assert_allclose(q.transitions, pairs, atol=1e-12)
    np.testing.assert_allclose(q.log_z.sum(), log_z, rtol=1e-13)
    np.testing.assert_array_equal(hmm_compiled.viterbi(chain)[:n], best)
    gradient = jax.grad(hmm_compiled.log_normalizer, allow_int=True)(chain)
    np.testing.assert_allclose(gradient.node[:n], states, atol=1e-12)
    np.testing.assert_allclose(gradient.log_trans, pairs, atol=1e-12)
    np.testing.assert_allclose(gradient.log_init, states[0], atol=1e-12)


def test_the_hidden_chain_is_pure_jax_on_a_longer_one(x64):
    chain = HMMChain(
        *map(jnp.asarray, oracles.hmm_chain(np.random.default_rng(6), T=50, K=21, real=41, impossible=True))
    )
    got, want = (jax.jit(form.smooth)(chain) for form in (hmm_compiled, hmm_sequential))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-11), got, want)
    key = jax.random.key(0)
    np.testing.assert_array_equal(hmm_compiled.viterbi(chain), hmm_sequential.viterbi(chain))
    np.testing.assert_array_equal(hmm_compiled.sample(chain, key=key), hmm_sequential.sample(chain, key=key))


def test_gradients_of_the_hidden_chain(x64):
    chain = HMMChain(*map(jnp.asarray, oracles.hmm_chain(np.random.default_rng(2), T=6, K=3, real=5)))

    def everything(*potentials):
        c = HMMChain(*potentials, chain.mask)
        return hmm_compiled.smooth(c), hmm_compiled.filter(c)

    check_grads(everything, tuple(chain[:3]), order=1, modes=["rev"], atol=1e-6, rtol=1e-6)


def test_gradients_beside_lost_probabilities_are_those_of_pure_jax(x64):
    """States that the product of probabilities loses to underflow go through logarithms, derivatives too."""
    rng = np.random.default_rng(8)
    trans = np.where(rng.random((9, 9)) < 0.5, -np.inf, 0) + 1000 * rng.normal(size=(9, 9)) * (rng.random((9, 9)) < 0.5)
    np.fill_diagonal(trans, 0)
    chain = HMMChain(*map(jnp.asarray, (np.zeros(9), trans, 800 * rng.normal(size=(12, 9)), np.ones(12, bool))))
    weights = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)), hmm_compiled.smooth(chain))

    def loss(form):
        return lambda *p: sum(
            jnp.sum(w * x) for w, x in zip(weights, form.smooth(HMMChain(*p, chain.mask)), strict=True)
        )

    got, want = (
        jax.jit(jax.value_and_grad(loss(form), (0, 1, 2)))(*chain[:3]) for form in (hmm_compiled, hmm_sequential)
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-8, rtol=1e-10), got, want)


@pytest.mark.parametrize("K, scale", [(100, 100.0), (30, 1000.0)])
def test_hostile_likelihoods_in_float32(K, scale):
    rng = np.random.default_rng(7)
    node, log_trans = scale * rng.normal(size=(60, K)), np.log(rng.dirichlet(np.ones(K), size=K))
    double = HMMChain(np.full(K, -np.log(K)), log_trans, node.astype(np.float32).astype(np.float64), np.ones(60, bool))
    with jax.enable_x64(True):
        exact = jax.tree.map(np.asarray, hmm_compiled.smooth(HMMChain(*map(jnp.asarray, double))))
    q = hmm_compiled.smooth(HMMChain(*(jnp.asarray(x, jnp.float32) for x in double[:3]), jnp.asarray(double.mask)))
    assert all(np.all(np.isfinite(x)) for x in q)
    np.testing.assert_allclose(q.states, exact.states, atol=1e-3 * scale / 100)
    np.testing.assert_allclose(q.log_z.sum(), exact.log_z.sum(), rtol=1e-6)


@pytest.mark.parametrize("K, T, B", [(30, 40, 18), (1, 3, 9), (33, 70, 17)])
def test_hidden_chains_in_lanes_are_each_alone(x64, K, T, B):
    """Sequences of different lengths, some of whose products underflow, values and gradients."""
    rng = np.random.default_rng(K)
    node, log_trans = 3 * rng.normal(size=(B, T, K)), np.log(rng.dirichlet(np.ones(K), size=K))
    node[3] *= 1000
    node[5, :, : K // 2] = -np.inf
    mask = jnp.asarray(np.arange(T) < rng.integers(1, T + 1, size=(B, 1)))

    def pulled(init, trans, node, mask):
        q, pull = jax.vjp(lambda *p: hmm_compiled.smooth(HMMChain(*p, mask)), init, trans, node)
        return q, pull(jax.tree.map(jnp.cos, q))

    shared = jnp.zeros(K), jnp.asarray(log_trans)
    together = jax.jit(jax.vmap(pulled, (None, None, 0, 0)))(*shared, jnp.asarray(node), mask)
    alone = jax.jit(pulled)
    for i in (0, 3, 5, B - 1):
        one = jax.tree.map(operator.itemgetter(i), together)
        want = alone(*shared, jnp.asarray(node[i]), mask[i])
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-11, rtol=1e-11), one, want)


# --- which form serves --------------------------------------------------------------------------------------------


def test_kernels_serve_on_the_cpu():
    assert served.form(served.GAUSSIAN, 3) is gaussian_compiled and served.form(served.STEADY, 3) is hmm_compiled
    assert "kernels" in messages.cpu_kernels()


@pytest.mark.skipif(platform.machine() != "x86_64" or not Path("/proc/cpuinfo").exists(), reason="asks Linux")
def test_the_widest_instructions_of_the_processor_are_taken():
    has = set(re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)[1].split())
    wants = {"avx512": {"avx512f", "avx512dq", "avx512vl", "avx512bw", "avx2", "fma"}, "avx2": {"avx2", "fma"}}
    widest = next((name for name, flags in wants.items() if flags <= has), "baseline")
    assert kernels.status().reason.endswith(os.environ.get("SVAE_KERNELS", widest))


@pytest.mark.parametrize("name", ["avx2", "baseline"])
def test_every_instruction_set_gives_the_same(tmp_path, name):
    """Values and gradients, alone and in lanes, in a process that may use fewer instructions."""
    script, saved = ROOT / "tests" / "messages" / "every_kernel.py", tmp_path / "found.npz"
    environment = os.environ | {"SVAE_KERNELS": name, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, script, saved], check=True, env=environment)
    with np.load(saved) as found:
        got = [found[key] for key in found.files]
    for a, b in zip(got, _every_kernel(), strict=True):
        tolerance = 3e-4 if a.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(a, b, atol=tolerance, rtol=tolerance)


@functools.cache
def _every_kernel():
    return every_kernel.everything()


@pytest.mark.parametrize("library", [None, b"no library"])
def test_without_a_library_pure_jax_serves(tmp_path, library):
    shutil.copytree(ROOT / "svae", tmp_path / "svae", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    if library:
        (tmp_path / "svae" / "messages" / "kernels" / kernels.LIBRARY.name).write_bytes(library)
    code = """from svae.messages import cpu_kernels, served
print(served.form(served.GAUSSIAN, 3).__name__, served.form(served.STEADY, 3).__name__, cpu_kernels())"""
    said = subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path, text=True)
    assert said.startswith("svae.messages.gaussian.sequential svae.messages.hmm.sequential pure JAX: ")
    assert said.count("\n") == 1
