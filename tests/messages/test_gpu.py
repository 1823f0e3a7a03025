"""The fused GPU kernels against the dense matrix, the enumeration and the CPU; without a GPU, on emulated threads."""

import ctypes
import importlib
import operator
import os
import shutil
import subprocess
from pathlib import Path

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
import pytest

from svae.messages import GaussianChain, HMMChain, gpu, kernels, served
from svae.messages.gaussian import fused as gaussian_fused
from svae.messages.gaussian.chain import every_step
from svae.messages.hmm import chain as hmm_chain
from svae.messages.hmm import fused as hmm_fused
from tests.messages import oracles
from tests.messages.test_gaussian import assert_is_the_dense_matrix, cov, hard, on_device
from tests.messages.test_hmm import CASES
from tests.messages.test_shared_dynamics import AXES, assert_close, chain_of, pulled

HAS_GPU = jax.default_backend() == "gpu"
# Compiled kernels are the oracle where they are: they need no time to compile here.
oracle = "compiled" if kernels.status().serve and not HAS_GPU else "sequential"
gaussian_oracle = importlib.import_module(f"svae.messages.gaussian.{oracle}")
hmm_oracle = importlib.import_module(f"svae.messages.hmm.{oracle}")

CLOSE = {"atol": 1e-10, "rtol": 1e-10}


@pytest.fixture(scope="module", autouse=True)
def emulator(tmp_path_factory):
    """The kernels' own sources, compiled for the host: each thread of a block is a fiber."""
    if HAS_GPU:
        return  # the kernels themselves
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("needs a GPU or a C++ compiler")
    path = tmp_path_factory.mktemp("gpu") / "emulator.so"
    headers = Path(jaxlib.__file__).parent / "include"
    flags = ["-std=c++17", "-O0", "-fPIC", "-shared", "-w", "-DSVAE_RUN_ON_CPU", f"-I{headers}"]
    more = os.environ.get("CXXFLAGS", "").split()  # sanitizers
    subprocess.run([compiler, *flags, *more, str(gpu.FOLDER / "ffi.cc"), "-o", str(path)], check=True)
    library = ctypes.CDLL(str(path))
    for name in gpu.OPERATIONS:
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(library, name)), platform="cpu")


def symmetric(chain):
    return chain._replace(J=(chain.J + jnp.swapaxes(chain.J, -1, -2)) / 2)


@pytest.mark.parametrize("T, D", [(1, 1), (1, 3), (2, 3), (5, 1), (6, 3), (4, 12), (90, 3)])  # the last in chunks
def test_smoother_and_filter_are_the_dense_matrix(x64, T, D):
    chain = oracles.gaussian_chain(np.random.default_rng(T), T, D, missing=0.3)
    assert_is_the_dense_matrix(gaussian_fused, chain)


def test_roots_of_the_noise_need_not_be_triangular(x64):
    chain = on_device(oracles.gaussian_chain(np.random.default_rng(0), 5, 3))
    turn = jnp.linalg.qr(jax.random.normal(jax.random.key(0), (3, 3)))[0]
    turned = chain._replace(Q_sqrt=chain.Q_sqrt @ turn, sqrt0=chain.sqrt0 @ turn)
    (got, pull_turned), (want, pull) = (jax.vjp(gaussian_fused.smooth, c) for c in (turned, chain))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **CLOSE), got, want)
    (got,), (want,) = (back(jax.tree.map(jnp.cos, want)) for back in (pull_turned, pull))
    want = want._replace(Q_sqrt=want.Q_sqrt @ turn, sqrt0=want.sqrt0 @ turn)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **CLOSE), got, want)


@pytest.mark.parametrize("T, D", [(1, 3), (5, 3), (90, 3), (70, 1)])  # the last two in chunks
def test_values_and_gradients_are_those_of_the_cpu(x64, T, D):
    chain = on_device(oracles.gaussian_chain(np.random.default_rng(6), T, D, missing=0.5))

    def loss(form):
        def total(chain):
            q = form.smooth(symmetric(chain))
            x = form.sample(q, key=jax.random.key(0))
            return sum(jnp.sum(jnp.sin(y)) for y in (*q, x)) + jnp.sin(form.log_normalizer(symmetric(chain)))

        return total

    got, want = (jax.jit(jax.value_and_grad(loss(form)))(chain) for form in (gaussian_fused, gaussian_oracle))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-9), got, want)


def test_gradient_of_log_z_is_the_smoothed_statistics(x64):
    chain = on_device(oracles.gaussian_chain(np.random.default_rng(4), 6, 3, missing=0.3))
    gradient, q = jax.grad(gaussian_fused.log_normalizer)(chain), gaussian_fused.smooth(chain)
    np.testing.assert_allclose(gradient.h, q.mean, **CLOSE)
    second = cov(q.sqrt) + np.asarray(q.mean)[:, :, None] * np.asarray(q.mean)[:, None]
    np.testing.assert_allclose(2 * gradient.J, -second, **CLOSE)


def test_two_batch_axes_and_a_shared_operand(x64):
    chains = [oracles.gaussian_chain(np.random.default_rng(i), 3, 3) for i in range(6)]
    stacked = on_device(jax.tree.map(lambda *x: np.stack(x), *chains))._replace(A=on_device(chains[0]).A)
    axes = GaussianChain(0, 0, None, 0, 0, 0, 0)

    def pulled(chain):
        q, pull = jax.vjp(gaussian_fused.smooth, chain)
        return q, pull(jax.tree.map(jnp.cos, q))[0]

    square = GaussianChain(
        *(x if a is None else x.reshape(2, 3, *x.shape[1:]) for x, a in zip(stacked, axes, strict=True))
    )
    twice = jax.vmap(jax.vmap(pulled, (axes,)), (axes,))(square)
    for i in range(6):
        alone = pulled(GaussianChain(*(x if a is None else x[i] for x, a in zip(stacked, axes, strict=True))))
        one = jax.tree.map(operator.itemgetter((i // 3, i % 3)), twice)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **CLOSE), one, alone)


@pytest.mark.parametrize("name, target", [("random walk", 5e-5), ("constant velocity", 5e-4)])
def test_float32_on_smooth_latents(name, target):
    chain = hard(name, 100)  # in chunks
    mean, S = oracles.rts(chain)
    q = gaussian_fused.smooth(on_device(chain, np.float32))
    sd = np.sqrt(np.diagonal(S, axis1=-2, axis2=-1))
    assert np.max(np.abs(q.mean - mean) / sd) < target
    assert all(np.all(np.isfinite(x)) for x in q)
    assert np.all(np.linalg.eigvalsh(cov(q.sqrt)) > 0)


def test_a_nan_stays_in_its_sequence():
    chain = on_device(hard("random walk", 5), np.float32)
    chains = jax.tree.map(lambda x: jnp.stack([x] * 3), chain)
    q = jax.vmap(gaussian_fused.smooth)(chains._replace(h=chains.h.at[1, 2, 1].set(np.nan)))
    assert np.all(np.isnan(q.mean[1])) and np.isnan(q.log_z[1, 2])
    assert all(np.all(np.isfinite(x[0])) and np.all(np.isfinite(x[2])) for x in q)


def test_the_kernels_serve_where_there_is_a_gpu():
    assert (served.backend() == served.GPU) == gpu.status().serve


# --- the hidden Markov chain --------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [c for c in CASES if c["K"] == 3])
def test_the_hidden_chain_is_the_enumeration(x64, case):
    chain = oracles.hmm_chain(np.random.default_rng(0), **case)
    log_z, states, pairs, best = oracles.enumerate_paths(chain)
    n, chain = len(states), HMMChain(*map(jnp.asarray, chain))
    q = hmm_fused.smooth(chain)
    np.testing.assert_allclose(q.states[:n], states, atol=1e-12)
    np.testing.assert_allclose(q.transitions, pairs, atol=1e-12)
    np.testing.assert_allclose(q.log_z.sum(), log_z, rtol=1e-13)
    np.testing.assert_array_equal(hmm_fused.viterbi(chain)[:n], best)
    gradient = jax.grad(hmm_fused.log_normalizer, allow_int=True)(chain)
    np.testing.assert_allclose(gradient.node[:n], states, atol=1e-12)
    np.testing.assert_allclose(gradient.log_trans, pairs, atol=1e-12)


def derivatives(form, chain):
    """Smoothed, and the cotangents of what goes in from such as no sum of them would give."""
    q, pull = jax.vjp(lambda *x: form.smooth(HMMChain(*x, chain.mask)), *chain[:3])
    return q, pull(jax.tree.map(lambda x: jnp.cos(jnp.arange(x.size, dtype=x.dtype)).reshape(x.shape), q))


def plain(chain) -> bool:
    """Whether the messages were sent as plain numbers: then they are large, and logarithms are not."""
    kept = hmm_fused._smooth_forward(*hmm_fused._potentials(hmm_chain.centre(chain).chain))[1]
    return bool(jnp.max(kept[3][jnp.argmax(chain.mask)]) > 1000)


@pytest.mark.parametrize(
    "T, K, real, scale, impossible", [(12, 40, 10, 1, False), (60, 3, 57, 30, False), (12, 40, 10, 300, True)]
)
def test_the_hidden_chain_and_its_gradients_are_those_of_the_cpu(x64, T, K, real, scale, impossible):
    chain = oracles.hmm_chain(np.random.default_rng(6), T=T, K=K, real=real, impossible=impossible)
    gaps = chain.mask & ~np.isin(np.arange(T), (4, 6, 7))
    chain = HMMChain(*map(jnp.asarray, chain._replace(node=(chain.node - 20) * scale, mask=gaps)))
    assert plain(chain) is not impossible
    got, want = derivatives(hmm_fused, chain), derivatives(hmm_oracle, chain)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-9, rtol=1e-9), got, want)
    key = jax.random.key(0)
    np.testing.assert_array_equal(hmm_fused.sample(chain, key=key), hmm_oracle.sample(chain, key=key))


@pytest.mark.parametrize("price, numbers", [(60, True), (90, False)])  # nats of a switch
def test_hidden_chain_in_float32_whose_switches_are_dear(price, numbers):
    chain = oracles.hmm_chain(np.random.default_rng(3), T=50, K=30)
    trans = np.where(np.eye(30, dtype=bool), 0, chain.log_trans - price)
    arrays = chain.log_init, trans, 30 * (chain.node - 20)
    chain = HMMChain(*(jnp.asarray(x, jnp.float32) for x in arrays), jnp.asarray(chain.mask))
    assert plain(chain) is numbers
    (got, pulled), (want, wanted) = derivatives(hmm_fused, chain), derivatives(hmm_oracle, chain)
    np.testing.assert_allclose(got.states, want.states, atol=2e-4)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=5e-3, rtol=1e-4), pulled, wanted)


def test_hidden_chain_in_float32_with_steep_nodes():
    chain = oracles.hmm_chain(np.random.default_rng(0), T=20, K=30)
    chain = chain._replace(node=(chain.node * 300).astype(np.float32).astype(np.float64))
    single = HMMChain(*(jnp.asarray(x, jnp.float32) for x in chain[:3]), jnp.asarray(chain.mask))
    q = hmm_fused.smooth(single)
    np.testing.assert_allclose(q.states, hmm_oracle.smooth(single).states, atol=1e-5)
    assert all(np.all(np.isfinite(x)) for x in q)


# --- one transition for all steps ----------------------------------------------------------------------------------


@pytest.mark.parametrize("T, D", [(1, 3), (2, 3), (3, 3), (6, 1), (5, 12), (90, 3)])  # the last in chunks
def test_one_transition_stands_for_all(x64, T, D):
    chain = symmetric(on_device(chain_of(T, T, D)))

    def run(chain):
        return gaussian_fused.smooth(chain), gaussian_fused.log_normalizer(chain)

    assert_close(pulled(run, chain), pulled(lambda c: run(every_step(c)), chain), 1e-11)
    assert_close(gaussian_fused.filter(chain), gaussian_fused.filter(every_step(chain)), 1e-11)


@pytest.mark.parametrize("axes", AXES.values(), ids=AXES)
def test_a_batch_with_one_transition(x64, axes):
    stacked = jax.tree.map(lambda *x: np.stack(x), *(chain_of(i, 70, 3) for i in range(12)))
    chains = on_device(GaussianChain(*(x[0] if axis is None else x for x, axis in zip(stacked, axes, strict=True))))

    def run(form):
        return pulled(jax.vmap(lambda chain: form.smooth(symmetric(chain)), (axes,)), chains)

    assert_close(run(gaussian_fused), run(gaussian_oracle), 1e-9)


def test_roots_of_shared_noise_need_not_be_triangular(x64):
    chain = on_device(chain_of(0, 5, 3))
    turn = jnp.linalg.qr(jax.random.normal(jax.random.key(0), (3, 3)))[0]
    got, want = (gaussian_fused.smooth(c) for c in (chain._replace(Q_sqrt=chain.Q_sqrt @ turn), chain))
    assert_close(got, want, 1e-10)


# --- both ways at once: a large batch with one transition ----------------------------------------------------------

MANY = 353  # more than the fewest for which it is chosen (ffi.cc)


@jax.jit
def wanted(chain):
    return pulled(lambda c: gaussian_oracle.smooth(symmetric(c)), chain)


def repeated(chains):
    """A batch of MANY that takes these in turn."""
    return jax.tree.map(lambda *x: jnp.stack([x[i % len(x)] for i in range(MANY)]), *chains)


@pytest.mark.parametrize("T, D", [(3, 3), (33, 3), (64, 1), (5, 12)])  # one stretch of time, several, one of them short
def test_a_large_batch_goes_both_ways(x64, T, D):
    chains = [symmetric(on_device(chain_of(i, T, D))) for i in range(3)]
    batch = repeated(chains)
    alone, got = jax.vmap(gaussian_fused.smooth)(batch), pulled(jax.vmap(gaussian_fused.smooth), batch)
    jax.tree.map(np.testing.assert_array_equal, alone, got[0])
    for i, chain in enumerate(chains):
        want = wanted(chain)
        for n in (i, i + 3, i + 3 * (MANY // 3 - 1)):
            assert_close(jax.tree.map(operator.itemgetter(n), got), want, 1e-10)


def test_a_large_batch_with_a_shared_transition_and_turned_roots(x64):
    chains = [symmetric(on_device(chain_of(i, 34, 3))) for i in range(2)]
    turn = jnp.linalg.qr(jax.random.normal(jax.random.key(0), (3, 3)))[0]
    shared = chains[0]
    chains = [c._replace(A=shared.A, b=shared.b, Q_sqrt=shared.Q_sqrt) for c in chains]
    axes = GaussianChain(0, 0, None, None, None, 0, 0)
    batch = repeated([c._replace(Q_sqrt=c.Q_sqrt @ turn, sqrt0=c.sqrt0 @ turn) for c in chains])
    batch = GaussianChain(*(x[0] if axis is None else x for x, axis in zip(batch, axes, strict=True)))
    got, gradient = pulled(jax.vmap(gaussian_fused.smooth, (axes,)), batch)
    want = [wanted(c) for c in chains]
    assert_close(jax.tree.map(operator.itemgetter(1), got), want[1][0], 1e-10)
    many = MANY - MANY // 2, MANY // 2  # of each
    total = jax.tree.map(lambda x, y: many[0] * x + many[1] * y, want[0][1], want[1][1])
    own = want[1][1]._replace(sqrt0=want[1][1].sqrt0 @ turn, A=total.A, b=total.b, Q_sqrt=total.Q_sqrt @ turn)
    assert_close(GaussianChain(*(x[1] if axis == 0 else x for x, axis in zip(gradient, axes, strict=True))), own, 1e-10)


def test_gradient_of_log_z_of_a_large_batch(x64):
    chains = [symmetric(on_device(chain_of(i, 65, 3))) for i in range(2)]  # stretches whose weights are all the same
    got = jax.vmap(jax.grad(gaussian_fused.log_normalizer))(repeated(chains))
    for i, chain in enumerate(chains):
        want = jax.jit(jax.grad(lambda c: gaussian_oracle.log_normalizer(symmetric(c))))(chain)
        assert_close(jax.tree.map(operator.itemgetter(i + 2), got), want, 1e-10)


def test_cotangents_of_another_batch_than_was_smoothed(x64):
    """What was kept says how it was smoothed."""
    chain = symmetric(on_device(chain_of(0, 4, 3)))
    one, pull = jax.vjp(gaussian_fused.smooth, chain)
    _, pull_many = jax.vjp(jax.vmap(gaussian_fused.smooth), repeated([chain]))
    cotangents = jax.tree.map(lambda x: jnp.cos(jnp.arange(MANY * x.size, dtype=x.dtype)).reshape(MANY, *x.shape), one)
    want = jax.vmap(pull)(cotangents)
    twice = jax.tree.map(lambda x: jnp.stack([x, 2 * x]), cotangents)
    assert_close(pull_many(cotangents), want, 1e-11)
    assert_close(jax.vmap(pull_many)(twice), jax.tree.map(lambda x: jnp.stack([x, 2 * x]), want), 1e-11)


@pytest.mark.parametrize("name", ["random walk", "constant velocity"])
def test_float32_gradients_on_smooth_latents_of_a_large_batch(name):
    chain = hard(name, 100)
    one = on_device(chain._replace(A=chain.A[:1], b=chain.b[:1], Q_sqrt=chain.Q_sqrt[:1]), np.float32)
    got = pulled(jax.vmap(gaussian_fused.smooth), repeated([one]))[1]
    with jax.enable_x64(True):
        want = wanted(on_device(jax.tree.map(np.asarray, one), np.float64))[1]
    for x, y in zip(map(np.asarray, got), map(np.asarray, want), strict=True):
        assert np.max(np.abs(x[-1] - y)) < 1e-5 * np.max(np.abs(y))


@pytest.mark.parametrize("name, target", [("random walk", 5e-5), ("constant velocity", 5e-4)])
def test_float32_on_smooth_latents_of_a_large_batch(name, target):
    chain = hard(name, 100)
    mean, S = oracles.rts(chain)
    one = on_device(chain._replace(A=chain.A[:1], b=chain.b[:1], Q_sqrt=chain.Q_sqrt[:1]), np.float32)
    batch = repeated([one])
    q = jax.vmap(gaussian_fused.smooth)(batch._replace(h=batch.h.at[1, 2, 1].set(np.nan)))
    sd = np.sqrt(np.diagonal(S, axis1=-2, axis2=-1))
    assert np.max(np.abs(q.mean[0] - mean) / sd) < target and np.max(np.abs(q.mean[-1] - mean) / sd) < target
    assert np.all(np.isnan(q.mean[1])) and np.isnan(q.log_z[1, 2])
    assert all(np.all(np.isfinite(x[np.arange(MANY) != 1])) for x in q)
