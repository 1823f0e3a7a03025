"""The hidden Markov chain against the enumeration of its K^T paths."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from svae.messages import HMMChain
from svae.messages.hmm import parallel as hmm_parallel
from svae.messages.hmm import sequential as hmm_sequential
from tests.messages import oracles

FORMS = [hmm_sequential, hmm_parallel]
CASES = [
    {"T": 1, "K": 3},
    {"T": 2, "K": 3},
    {"T": 5, "K": 3},
    {"T": 5, "K": 3, "real": 3},
    {"T": 5, "K": 3, "real": 4, "impossible": True},
]


def on_device(chain):
    return HMMChain(*map(jnp.asarray, chain))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_everything_is_the_enumeration(x64, form, case):
    chain = oracles.hmm_chain(np.random.default_rng(0), **case)
    log_z, states, pairs, best = oracles.enumerate_paths(chain)
    n = len(states)
    q = jax.jit(form.smooth)(on_device(chain))
    np.testing.assert_allclose(q.states[:n], states, atol=1e-12)
    np.testing.assert_allclose(q.states[n:], np.broadcast_to(states[-1:], q.states[n:].shape), atol=1e-12)
    np.testing.assert_allclose(q.transitions, pairs, atol=1e-12)
    np.testing.assert_allclose(q.log_z.sum(), log_z, rtol=1e-13)
    np.testing.assert_array_equal(jax.jit(form.viterbi)(on_device(chain))[:n], best)
    node = np.where(np.isfinite(chain.node), chain.node, 0)
    np.testing.assert_allclose(q.kl[:n], (np.sum(node * q.states, -1) - q.log_z)[:n], atol=1e-11)
    assert not np.any(q.kl[n:]) and not np.any(q.log_z[n:])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_gradient_of_log_z_is_the_statistics(x64, form, case):
    chain = oracles.hmm_chain(np.random.default_rng(1), **case)
    _, states, pairs, _ = oracles.enumerate_paths(chain)
    gradient = jax.jit(jax.grad(form.log_normalizer, allow_int=True))(on_device(chain))
    np.testing.assert_allclose(gradient.node[: len(states)], states, atol=1e-12)
    np.testing.assert_allclose(gradient.log_trans, pairs, atol=1e-12)
    np.testing.assert_allclose(gradient.log_init, states[0], atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_gradients_of_the_smoother(x64, form):
    chain = on_device(oracles.hmm_chain(np.random.default_rng(2), T=5, K=3, real=4))
    smooth = jax.jit(lambda *potentials: tuple(form.smooth(HMMChain(*potentials, chain.mask))))
    check_grads(smooth, tuple(chain[:3]), order=1, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_finite_beside_impossible_paths(form):
    chain = on_device(oracles.hmm_chain(np.random.default_rng(3), T=5, K=3, real=4, impossible=True))

    def loss(*potentials):
        return sum(jnp.sum(jnp.sin(x)) for x in form.smooth(HMMChain(*potentials, chain.mask)))

    gradient = jax.jit(jax.grad(loss, (0, 1, 2)))(*(x.astype(np.float32) for x in chain[:3]))
    assert all(np.all(np.isfinite(g)) for g in gradient)


def test_filter_is_the_smoother_of_the_past(x64):
    chain = oracles.hmm_chain(np.random.default_rng(4), T=5, K=3)
    for form in FORMS:
        q = jax.jit(form.filter)(on_device(chain))
        log_z, states, *_ = oracles.enumerate_paths(chain._replace(node=chain.node[:3], mask=chain.mask[:3]))
        np.testing.assert_allclose(np.exp(q.log_states[2]), states[-1], atol=1e-12)
        np.testing.assert_allclose(q.log_z[:3].sum(), log_z, rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_samples_have_the_marginals_and_pairs(form):
    chain = oracles.hmm_chain(np.random.default_rng(5), T=5, K=3, real=4, impossible=True)
    _, states, pairs, _ = oracles.enumerate_paths(chain)
    keys = jax.random.split(jax.random.key(0), 20_000)
    z = np.asarray(jax.jit(jax.vmap(lambda key: form.sample(on_device(chain), key=key)))(keys))
    hot = np.eye(3)[z]
    np.testing.assert_allclose(hot.mean(0)[:4], states, atol=0.02)
    np.testing.assert_allclose(np.einsum("nti,ntj->ij", hot[:, :3], hot[:, 1:4]) / len(z), pairs, atol=0.04)
    np.testing.assert_array_equal(z[:, 4], z[:, 3])


def test_parallel_is_sequential_on_a_longer_chain(x64):
    chain = on_device(oracles.hmm_chain(np.random.default_rng(6), T=50, K=6, real=41, impossible=True))
    a, b = (jax.jit(form.smooth)(chain) for form in FORMS)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-10), a, b)
    np.testing.assert_array_equal(*(jax.jit(form.viterbi)(chain) for form in FORMS))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("K, scale", [(100, 100.0), (30, 1000.0)])
def test_hostile_likelihoods_in_float32(form, K, scale):
    rng = np.random.default_rng(7)
    node, log_trans = scale * rng.normal(size=(60, K)), np.log(rng.dirichlet(np.ones(K), size=K))
    double = HMMChain(np.full(K, -np.log(K)), log_trans, node.astype(np.float32).astype(np.float64), np.ones(60, bool))
    with jax.enable_x64(True):
        exact = jax.tree.map(np.asarray, jax.jit(hmm_sequential.smooth)(on_device(double)))
    single = HMMChain(*(jnp.asarray(x, jnp.float32) for x in double[:3]), jnp.asarray(double.mask))
    q = jax.jit(form.smooth)(single)
    assert all(np.all(np.isfinite(x)) for x in q)
    np.testing.assert_allclose(q.states, exact.states, atol=1e-3 * scale / 100)
    np.testing.assert_allclose(q.log_z.sum(), exact.log_z.sum(), rtol=1e-6)
