"""Bouts of several phases against the dense chain over states and phases, and against tables of durations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from scipy import stats

from svae.messages import HMMChain, HSMMChain, begins, hsmm, residual_life
from svae.messages.hmm import sequential as hmm_sequential
from svae.messages.hsmm import phases
from svae.messages.hsmm.phases import PhasedChain

CASES = [
    {"T": 1, "K": 2, "R": 3},
    {"T": 2, "K": 3, "R": 1},
    {"T": 5, "K": 1, "R": 3},
    {"T": 9, "K": 3, "R": 3, "real": 7},
]


def random_chain(rng, T, K, R, real=None, varies=False):
    """Unnormalised, with phases that some states cannot have, and padding inside where frames are many."""
    log_phases, log_start = rng.normal(size=(2, K, R))
    log_phases[0, : R // 2] = -np.inf
    mask = np.arange(T) < (T if real is None else real)
    if T > 6:
        mask[3] = False
    arrays = log_start, rng.normal(size=(T - 1, K, K) if varies else (K, K)), log_phases, *rng.normal(size=(2, K))
    return PhasedChain(*map(jnp.asarray, arrays), jnp.asarray(2 * rng.normal(size=(T, K)) + 20), jnp.asarray(mask))


def dense(chain):
    """The same as a hidden Markov chain of K R states with a matrix for every step."""
    chain = jax.tree.map(np.asarray, chain)
    (T, K), R = chain.node.shape, chain.log_start.shape[1]
    log_trans = np.broadcast_to(chain.log_trans, (T - 1, K, K))
    full = np.full((T - 1, K, R, K, R), -np.inf)
    for k in range(K):
        for m in range(R):
            if m:
                full[:, k, m, k, m - 1] = chain.log_move[k]
            else:
                full[:, k, 0] = chain.log_move[k] + log_trans[:, k, :, None] + chain.log_phases
            full[:, k, m, k, m] = np.logaddexp(full[:, k, m, k, m], chain.log_stay[k])
    arrays = chain.log_start.reshape(-1), full.reshape(T - 1, K * R, K * R), np.repeat(chain.node, R, 1), chain.mask
    return HMMChain(*map(jnp.asarray, arrays))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("varies", [False, True])
def test_everything_is_the_dense_chain(x64, case, varies):
    """Values, and through the increments and marginals all statistics."""
    chain = random_chain(np.random.default_rng(0), varies=varies, **case)
    wide, (K, R) = dense(chain), chain.log_start.shape
    q, want = phases.smooth(chain), hmm_sequential.smooth_pairs(wide)
    np.testing.assert_allclose(q.log_z, want.log_z, atol=1e-12)
    np.testing.assert_allclose(q.kl, want.kl, atol=1e-11)
    np.testing.assert_allclose(q.states, want.states.reshape(-1, K, R).sum(-1), atol=1e-12)
    np.testing.assert_allclose(q.start, want.states[0].reshape(K, R), atol=1e-12)
    np.testing.assert_allclose(q.transitions.sum(), q.phases.sum(), atol=1e-12)
    frames = int(chain.mask.sum())
    np.testing.assert_allclose(q.stays.sum() + q.moves.sum(), frames - 1, atol=1e-12)
    filtered, wide_filtered = phases.filter(chain), hmm_sequential.filter(wide)
    states = np.exp(wide_filtered.log_states).reshape(-1, K, R).sum(-1)
    np.testing.assert_allclose(np.exp(filtered.log_states), states, atol=1e-12)
    gradient = jax.grad(phases.log_normalizer, allow_int=True)(chain)
    got = q.start, q.transitions, q.phases, q.stays, q.moves
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), tuple(gradient[:5]), got)


def test_the_most_probable_path_is_that_of_the_dense_chain(x64):
    chain = random_chain(np.random.default_rng(1), T=9, K=3, R=3, real=7)
    chain = chain._replace(log_trans=jnp.where(jnp.eye(3, dtype=bool), -jnp.inf, chain.log_trans))
    path, want = phases.viterbi(chain), hmm_sequential.viterbi(dense(chain))
    np.testing.assert_array_equal(3 * path.states + path.left - 1, want)


def test_draws_have_the_marginals():
    chain = random_chain(np.random.default_rng(2), T=9, K=3, R=3, real=7)
    want = hmm_sequential.smooth_pairs(dense(chain))
    draws = jax.jit(jax.vmap(lambda key: phases.sample(chain, key=key)))(jax.random.split(jax.random.key(0), 20_000))
    both = np.eye(9)[3 * np.asarray(draws.states) + np.asarray(draws.left) - 1]
    np.testing.assert_allclose(both.mean(0), want.states, atol=0.02)
    pairs = np.einsum("nti,ntj->tij", both[:, :-1], both[:, 1:]) / len(both)
    np.testing.assert_allclose(pairs[np.asarray(chain.mask)[1:]], want.pairs[chain.mask[1:]], atol=0.02)


def test_gradients_are_those_of_differences(x64):
    chain = random_chain(np.random.default_rng(3), T=5, K=2, R=3)
    chain = chain._replace(log_phases=jnp.where(jnp.isfinite(chain.log_phases), chain.log_phases, 0))
    f = jax.jit(lambda *p: tuple(phases.smooth(PhasedChain(*p, chain.mask))))
    check_grads(f, tuple(chain[:6]), order=1, modes=["rev"], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("start", [begins, residual_life])
def test_lengths_are_negative_binomial(x64, start):
    """A table of these durations, truncated far, is the same chain; windows within a recording too."""
    rng, r, move = np.random.default_rng(4), np.array([1, 2, 4]), np.array([0.5, 0.6, 0.7])
    durations = stats.nbinom.logpmf(np.arange(1, 101)[None] - r[:, None], r[:, None], move[:, None])
    log_trans = np.where(np.eye(3, dtype=bool), -np.inf, np.log(rng.dirichlet(np.ones(3), size=3)))
    node, log_init, mask = (
        jnp.asarray(2 * rng.normal(size=(60, 3))),
        jnp.log(jnp.array([0.2, 0.3, 0.5])),
        jnp.ones(60, bool),
    )
    fixed = jnp.where(np.arange(1, 5) == r[:, None], 0, -jnp.inf)
    chain = PhasedChain(
        start(log_init, fixed), jnp.asarray(log_trans), fixed, jnp.log1p(-move), jnp.log(move), node, mask
    )
    table = HSMMChain(start(log_init, jnp.asarray(durations)), chain.log_trans, jnp.asarray(durations), node, mask)
    got, want = phases.smooth(chain), hsmm.smooth(table)
    for name in ("states", "log_z", "kl", "transitions"):
        np.testing.assert_allclose(getattr(got, name), getattr(want, name), atol=1e-10)


def test_a_chain_that_goes_on_is_the_whole(x64):
    chain = random_chain(np.random.default_rng(5), T=6, K=3, R=3)
    first = chain._replace(node=chain.node[:4], mask=chain.mask[:4])
    rest = chain._replace(log_start=phases.ahead(first, chain.log_trans), node=chain.node[4:], mask=chain.mask[4:])
    np.testing.assert_allclose(phases.filter(rest).log_states, phases.filter(chain).log_states[4:], atol=1e-12)
    parts = phases.log_normalizer(first) + phases.log_normalizer(rest)
    np.testing.assert_allclose(parts, phases.log_normalizer(chain), rtol=1e-13)


@pytest.mark.parametrize("T, scale", [(5000, 1.0), (200, 100.0), (200, 1000.0)])
def test_float32_is_its_own_float64(T, scale):
    """Marginals to 1e-5, counts to 1e-5 of the largest; gradients are numbers."""
    rng, K, R = np.random.default_rng(6), 6, 4
    node, log_trans = scale * rng.normal(size=(T, K)), np.log(rng.dirichlet(np.ones(K), size=K))
    tables, stay = np.log(rng.dirichlet(np.ones(R), size=(2, K))), rng.uniform(0.5, 0.95, size=K)
    arrays = tables[0], log_trans, tables[1], np.log(stay), np.log1p(-stay), node
    single = [jnp.asarray(x, jnp.float32) for x in arrays]
    f = jax.jit(lambda *p: phases.smooth(PhasedChain(*p, jnp.ones(T, bool))))
    q, pull = jax.vjp(f, *single)
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves((q, pull(jax.tree.map(jnp.cos, q)))))
    with jax.enable_x64(True):
        exact = jax.tree.map(np.asarray, f(*(jnp.asarray(np.asarray(x), jnp.float64) for x in single)))
    np.testing.assert_allclose(q.states, exact.states, atol=1e-5)
    for name in ("transitions", "phases", "stays", "moves"):
        got, want = getattr(q, name), getattr(exact, name)
        np.testing.assert_allclose(got, want, atol=1e-5 * np.max(want))
