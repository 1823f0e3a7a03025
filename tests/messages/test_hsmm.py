"""The hidden semi-Markov chain against the enumeration of all segmentations, and against hidden Markov chains."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from svae.messages import HMMChain, HSMMChain, begins, hsmm, residual_life
from svae.messages.hmm import sequential as hmm_sequential
from tests.messages.segmentations import enumerate_segmentations, hsmm_chain

CASES = [
    {"T": 1, "K": 3, "longest": 4},
    {"T": 2, "K": 3, "longest": 4},
    {"T": 4, "K": 1, "longest": 3},
    {"T": 4, "K": 2, "longest": 1},
    {"T": 3, "K": 2, "longest": 7},
    {"T": 6, "K": 3, "longest": 4},
    {"T": 7, "K": 3, "longest": 3, "real": 5},
    {"T": 6, "K": 3, "longest": 4, "real": 5, "impossible": True},
]


# Programs, not operation by operation: each is compiled once for all chains of one size.
SMOOTH, FILTER, VITERBI, AHEAD, LOG_Z = map(
    jax.jit, (hsmm.smooth, hsmm.filter, hsmm.viterbi, hsmm.ahead, hsmm.log_normalizer)
)
GRADIENT = jax.jit(jax.grad(hsmm.log_normalizer, allow_int=True))
DRAW = jax.jit(jax.vmap(lambda chain, key: hsmm.sample(chain, key=key), (None, 0)))


def on_device(chain, dtype=None):
    return HSMMChain(*(jnp.asarray(x, dtype) for x in chain[:4]), jnp.asarray(chain.mask))


def changing(chain, rng):
    """The chain with transitions of its own for every step, as impossible as they were."""
    more = rng.normal(size=(len(chain.node) - 1, *chain.log_trans.shape))
    return chain._replace(log_trans=chain.log_trans + more)


@pytest.mark.parametrize(
    "case, varies", [*((case, False) for case in CASES), *((case, True) for case in (CASES[0], CASES[3], *CASES[-2:]))]
)
def test_everything_is_the_enumeration(x64, case, varies):
    rng = np.random.default_rng(0)
    chain = hsmm_chain(rng, **case)
    chain = changing(chain, rng) if varies else chain
    log_z, (states, start, switches, durations), (z, spent) = enumerate_segmentations(chain)
    q, n = SMOOTH(on_device(chain)), len(states)
    np.testing.assert_allclose(q.log_z.sum(), log_z, rtol=1e-13)
    np.testing.assert_allclose(q.states[:n], states, atol=1e-12)
    np.testing.assert_allclose(q.states[n:], np.broadcast_to(states[-1:], q.states[n:].shape), atol=1e-12)
    np.testing.assert_allclose(q.start, start, atol=1e-12)
    np.testing.assert_allclose(q.transitions, switches if varies else switches.sum(0), atol=1e-12)
    np.testing.assert_allclose(q.durations, durations, atol=1e-12)
    node = np.where(np.isfinite(chain.node), chain.node, 0)
    np.testing.assert_allclose(q.kl[:n], (np.sum(node * q.states, -1) - q.log_z)[:n], atol=1e-11)
    assert not np.any(q.kl[n:]) and not np.any(q.log_z[n:])
    best = VITERBI(on_device(chain))
    np.testing.assert_array_equal(best.states[:n], z)
    np.testing.assert_array_equal(best.spent[:n], spent)


@pytest.mark.parametrize("case", CASES[-3:])
def test_gradient_of_log_z_is_the_statistics(x64, case):
    chain = hsmm_chain(np.random.default_rng(1), **case)
    _, (states, start, switches, durations), _ = enumerate_segmentations(chain)
    gradient = GRADIENT(on_device(chain))
    np.testing.assert_allclose(gradient.node[: len(states)], states, atol=1e-12)
    np.testing.assert_allclose(gradient.log_start, start, atol=1e-12)
    np.testing.assert_allclose(gradient.log_trans, switches.sum(0), atol=1e-12)
    np.testing.assert_allclose(gradient.log_durations, durations, atol=1e-12)


@pytest.mark.parametrize("varies", [False, True])
@pytest.mark.parametrize("quantity", ["smooth", "filter"])
def test_gradients_are_those_of_differences(x64, varies, quantity):
    """Of every output, the increments of log Z one by one among them."""
    rng = np.random.default_rng(2)
    chain = hsmm_chain(rng, T=6, K=3, longest=4, real=5)
    chain = chain._replace(log_trans=rng.normal(size=(5, 3, 3) if varies else (3, 3)))
    mask = jnp.asarray(chain.mask)
    f = jax.jit(lambda *p: tuple(getattr(hsmm, quantity)(HSMMChain(*p, mask))))
    check_grads(f, tuple(map(jnp.asarray, chain[:4])), order=1, modes=["rev"], atol=1e-6, rtol=1e-6)


def test_gradients_are_finite_beside_impossible_paths():
    chain = on_device(hsmm_chain(np.random.default_rng(3), T=6, K=3, longest=4, real=5, impossible=True), np.float32)
    loss = lambda *p: sum(jnp.sum(jnp.sin(x)) for x in hsmm.smooth(HSMMChain(*p, chain.mask)))  # noqa: E731
    gradient = jax.jit(jax.grad(loss, (0, 1, 2, 3)))(*chain[:4])
    assert all(np.all(np.isfinite(g)) for g in gradient)


def test_one_state_that_must_end_makes_no_nan():
    """No segmentation is possible: log Z is -inf, statistics and gradients are numbers."""
    chain = HSMMChain(
        jnp.zeros((1, 2)), jnp.full((1, 1), -jnp.inf), jnp.zeros((1, 2)), jnp.zeros((4, 1)), jnp.ones(4, bool)
    )

    @jax.jit
    def pulled(node):
        q, pull = jax.vjp(lambda node: hsmm.smooth(chain._replace(node=node)), node)
        return q, pull(jax.tree.map(jnp.ones_like, q))[0]

    q, gradient = pulled(chain.node)
    assert q.log_z[2] == -jnp.inf
    assert np.all(np.isfinite(q.states)) and np.all(np.isfinite(gradient))


@pytest.mark.parametrize("case", [*CASES[3:5], *CASES[6:]])  # the last has the size of the one left out
def test_draws_have_the_statistics(case):
    chain = hsmm_chain(np.random.default_rng(4), **case)
    _, (states, start, _, durations), _ = enumerate_segmentations(chain)
    K, n = len(start), len(states)
    keys = jax.random.split(jax.random.key(0), 20_000)
    z, spent, remaining = (np.asarray(x) for x in DRAW(on_device(chain), keys))
    np.testing.assert_allclose(np.eye(K)[z].mean(0)[:n], states, atol=0.02)
    for x in (z, spent, remaining):
        np.testing.assert_array_equal(x[:, n:], np.broadcast_to(x[:, n - 1 : n], x[:, n:].shape))
    inside = spent[:, 1:n] > 1
    assert np.all((z[:, 1:n] == z[:, : n - 1])[inside]) and np.all(
        spent[:, 1:n][inside] == spent[:, : n - 1][inside] + 1
    )
    np.testing.assert_array_equal(remaining[:, : n - 1][inside], remaining[:, 1:n][inside] + 1)
    assert not np.any(remaining[:, : n - 1][~inside]) and np.all(spent[:, 0] == 1)
    lengths, begun = (spent + remaining)[:, :n], (spent == 1)[:, :n]
    for counts, frames in ((start, np.arange(n) == 0), (durations, np.arange(n) > 0)):
        at = begun & frames
        found = np.zeros_like(counts)
        np.add.at(found, (z[:, :n][at], lengths[at] - 1), 1 / len(z))
        np.testing.assert_allclose(found, counts, atol=0.03)


@pytest.mark.parametrize("cut", [1, 8])  # fewer frames than the longest bout, and more
def test_a_chain_that_goes_on_is_the_whole(x64, cut):
    chain = on_device(hsmm_chain(np.random.default_rng(5), T=12, K=3, longest=6))
    first = chain._replace(node=chain.node[:cut], mask=chain.mask[:cut])
    padded = first._replace(node=jnp.pad(first.node, ((0, 2), (0, 0))), mask=jnp.pad(first.mask, (0, 2)))
    start = AHEAD(padded, chain.log_trans)
    rest = chain._replace(log_start=start, node=chain.node[cut:], mask=chain.mask[cut:])
    whole, got = FILTER(chain), FILTER(rest)
    np.testing.assert_allclose(got.log_states, whole.log_states[cut:], atol=1e-12)
    np.testing.assert_allclose(LOG_Z(first) + got.log_z.sum(), whole.log_z.sum(), rtol=1e-13)


def test_a_window_that_begins_within_a_recording(x64):
    """Frames far into a recording that says nothing have the stationary residual life of a bout."""
    rng = np.random.default_rng(6)
    durations = rng.dirichlet(np.ones(5), size=2)
    log_trans = np.log(np.array([[1e-300, 1.0], [1.0, 1e-300]]))
    chain = HSMMChain(begins(jnp.log(jnp.array([0.5, 0.5])), jnp.log(durations)), jnp.asarray(log_trans),
                      jnp.log(durations), jnp.zeros((400, 2)), jnp.ones(400, bool))  # fmt: skip
    means = durations @ np.arange(1, 6)
    want = residual_life(jnp.log(means / means.sum()), jnp.log(durations))
    np.testing.assert_allclose(np.exp(AHEAD(chain, chain.log_trans)), np.exp(want), atol=1e-10)
    np.testing.assert_allclose(np.exp(want).sum(), 1, rtol=1e-13)


def geometric(rng, T, K, longest):
    """A hidden Markov chain, and the same as bouts of geometric length that are truncated at `longest`."""
    stay, switch = rng.uniform(0.3, 0.6, size=K), rng.dirichlet(np.ones(K - 1), size=K)
    leave = np.zeros((K, K))
    leave[~np.eye(K, dtype=bool)] = switch.ravel()
    log_init, node = np.log(rng.dirichlet(np.ones(K))), 2 * rng.normal(size=(T, K))
    log_trans = np.log(np.diag(stay) + (1 - stay)[:, None] * leave)
    log_durations = np.arange(longest) * np.log(stay)[:, None] + np.log1p(-stay)[:, None]
    with np.errstate(divide="ignore"):
        arrays = begins(jnp.asarray(log_init), jnp.asarray(log_durations)), np.log(leave), log_durations, node
    mask = jnp.arange(T) < T - 3
    return HMMChain(*map(jnp.asarray, (log_init, log_trans, node)), mask), HSMMChain(*map(jnp.asarray, arrays), mask)


def test_geometric_bouts_are_a_hidden_markov_chain(x64):
    hmm, bouts = geometric(np.random.default_rng(7), T=40, K=4, longest=80)
    want, got = jax.jit(hmm_sequential.smooth)(hmm), SMOOTH(bouts)
    for name in ("states", "log_z", "kl"):
        np.testing.assert_allclose(getattr(got, name), getattr(want, name), atol=1e-11)
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(got.transitions[off], want.transitions[off], atol=1e-11)


def test_residual_life_of_geometric_bouts_is_their_length(x64):
    _, bouts = geometric(np.random.default_rng(8), T=10, K=3, longest=80)
    log_init = jnp.log(jnp.array([0.2, 0.3, 0.5]))
    normal = bouts.log_durations
    np.testing.assert_allclose(np.exp(residual_life(log_init, normal)), np.exp(begins(log_init, normal)), atol=1e-10)


def test_a_batch_is_each_alone(x64):
    """Different lengths, padding inside, and starts of both kinds."""
    rng = np.random.default_rng(9)
    chains = [hsmm_chain(rng, T=9, K=3, longest=5, real=real) for real in (9, 6, 1)]
    chains[0] = chains[0]._replace(mask=np.arange(9) != 4)
    chains[1] = chains[1]._replace(log_start=residual_life(jnp.zeros(3), jnp.asarray(chains[1].log_durations)))
    batch = jax.tree.map(lambda *x: jnp.stack(x), *map(on_device, chains))
    together = jax.jit(jax.vmap(hsmm.smooth))(batch)
    for i, chain in enumerate(chains):
        alone = SMOOTH(on_device(chain))
        jax.tree.map(lambda a, b, i=i: np.testing.assert_allclose(a[i], b, atol=1e-12), together, alone)
    without = chains[0]._replace(node=np.delete(chains[0].node, 4, 0), mask=np.ones(8, bool))
    np.testing.assert_allclose(together.states[0][np.arange(9) != 4], SMOOTH(on_device(without)).states, atol=1e-12)


@jax.jit
def pulled(*potentials):
    smooth = lambda *p: hsmm.smooth(HSMMChain(*p, jnp.ones(len(p[3]), bool)))  # noqa: E731
    q, pull = jax.vjp(smooth, *potentials)
    return q, pull(jax.tree.map(jnp.cos, q))


@pytest.mark.parametrize("T, K, longest, scale", [(2000, 4, 50, 1.0), (200, 12, 40, 100.0), (200, 12, 40, 1000.0)])
def test_float32_is_its_own_float64(T, K, longest, scale):
    """Marginals to 1e-5, counts to 1e-5 of the largest, gradients to 1e-4 (1e-3 at scale 1,000) of the largest."""
    rng = np.random.default_rng(10)
    log_trans = np.where(np.eye(K, dtype=bool), -np.inf, np.log(rng.dirichlet(np.ones(K), size=K)))
    log_durations, node = np.log(rng.dirichlet(np.ones(longest), size=K)), scale * rng.normal(size=(T, K))
    arrays = log_durations - np.log(K), log_trans, log_durations, node
    single = [jnp.asarray(x, jnp.float32) for x in arrays]
    q, gradient = jax.tree.map(np.asarray, pulled(*single))
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves((q, gradient)))
    with jax.enable_x64(True):
        double = [jnp.asarray(np.asarray(x), jnp.float64) for x in single]
        exact, exact_gradient = jax.tree.map(np.asarray, pulled(*double))
    np.testing.assert_allclose(q.states, exact.states, atol=1e-5)
    for got, want in ((q.transitions, exact.transitions), (q.durations, exact.durations)):
        np.testing.assert_allclose(got, want, atol=1e-5 * np.max(want))
    np.testing.assert_allclose(q.log_z.sum(dtype=np.float64), exact.log_z.sum(), rtol=1e-7)
    for got, want in zip(gradient, exact_gradient, strict=True):
        np.testing.assert_allclose(got, want, atol=max(1e-4, scale * 1e-6) * np.max(np.abs(want)))


def test_memory_holds_few_grids():
    """The derivative of the smoother keeps about sqrt(T) grids of states by frames had, not T of them."""
    T, K, longest = 4096, 6, 256
    chain = on_device(hsmm_chain(np.random.default_rng(0), T=2, K=K, longest=longest), np.float32)
    chain = chain._replace(node=jnp.zeros((T, K)), mask=jnp.ones(T, bool))
    loss = lambda chain: sum(jnp.sum(jnp.sin(x)) for x in hsmm.smooth(chain))  # noqa: E731
    compiled = jax.jit(jax.grad(loss, allow_int=True)).lower(chain).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < T * K * longest * 4 / 2
