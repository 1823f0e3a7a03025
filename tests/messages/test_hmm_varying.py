"""Hidden chains whose transitions change in time against the enumeration of their K^T paths."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from svae.messages import HMMChain, kernels
from svae.messages.hmm import parallel as hmm_parallel
from svae.messages.hmm import sequential as hmm_sequential
from tests.messages import oracles
from tests.messages.test_hmm import on_device

FORMS = [hmm_sequential, hmm_parallel]
if kernels.status().serve:
    from svae.messages.hmm import compiled as hmm_compiled

    FORMS.append(hmm_compiled)
CASES = [
    {"T": 1, "K": 3},
    {"T": 2, "K": 3},
    {"T": 4, "K": 1},
    {"T": 5, "K": 3},
    {"T": 6, "K": 3, "real": 4},
    {"T": 5, "K": 3, "real": 4, "impossible": True},
]
QUANTITIES = ("filter", "smooth", "smooth_pairs")


def varying(rng, T, K, real=None, impossible=False):
    """A random chain in float64 with a matrix for every step."""
    chain = oracles.hmm_chain(rng, T, K, real, impossible)
    log_trans = 2 * rng.normal(size=(T - 1, K, K))
    if impossible:
        log_trans[1, 0, 2] = log_trans[2, :, 1] = -np.inf
    return chain._replace(log_trans=log_trans)


def padded_inside(chain):
    return chain._replace(mask=chain.mask & (np.arange(len(chain.mask)) != 2))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_everything_is_the_enumeration(x64, form, case):
    chain = varying(np.random.default_rng(0), **case)
    log_z, states, pairs, best = oracles.enumerate_pairs(chain)
    n = len(states)
    q, pairwise = form.smooth(on_device(chain)), form.smooth_pairs(on_device(chain))
    for found in (q, pairwise):
        np.testing.assert_allclose(found.states[:n], states, atol=1e-12)
        np.testing.assert_allclose(found.states[n:], np.broadcast_to(states[-1:], q.states[n:].shape), atol=1e-12)
        np.testing.assert_allclose(found.log_z.sum(), log_z, rtol=1e-13)
        node = np.where(np.isfinite(chain.node), chain.node, 0)
        np.testing.assert_allclose(found.kl[:n], (np.sum(node * q.states, -1) - q.log_z)[:n], atol=1e-11)
        assert not np.any(found.kl[n:]) and not np.any(found.log_z[n:])
    np.testing.assert_allclose(q.transitions, pairs.sum(0), atol=1e-12)
    np.testing.assert_allclose(pairwise.pairs[: n - 1], pairs, atol=1e-12)
    assert pairwise.pairs.shape == chain.log_trans.shape and not np.any(pairwise.pairs[n - 1 :])
    np.testing.assert_array_equal(form.viterbi(on_device(chain))[:n], best)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_gradient_of_log_z_is_the_statistics(x64, form, case):
    chain = varying(np.random.default_rng(1), **case)
    _, states, pairs, _ = oracles.enumerate_pairs(chain)
    gradient = jax.grad(form.log_normalizer, allow_int=True)(on_device(chain))
    np.testing.assert_allclose(gradient.node[: len(states)], states, atol=1e-12)
    np.testing.assert_allclose(gradient.log_trans[: len(pairs)], pairs, atol=1e-12)
    assert not np.any(gradient.log_trans[len(pairs) :])
    np.testing.assert_allclose(gradient.log_init, states[0], atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_gradients_are_those_of_differences(x64, form, quantity):
    chain = on_device(varying(np.random.default_rng(2), T=5, K=3, real=4))
    f = jax.jit(lambda *potentials: tuple(getattr(form, quantity)(HMMChain(*potentials, chain.mask))))
    check_grads(f, tuple(chain[:3]), order=1, modes=["rev"], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("one", [np.array, lambda x: x[None]])
def test_pairs_of_a_steady_chain(x64, form, one):
    """Their derivative too, where one matrix serves all steps."""
    chain = oracles.hmm_chain(np.random.default_rng(3), T=5, K=3, real=4)
    _, states, pairs, _ = oracles.enumerate_pairs(chain)
    single = on_device(chain._replace(log_trans=one(chain.log_trans)))
    q = form.smooth_pairs(single)
    np.testing.assert_allclose(q.states[:4], states, atol=1e-12)
    np.testing.assert_allclose(q.pairs[:3], pairs, atol=1e-12)
    f = lambda *potentials: tuple(form.smooth_pairs(HMMChain(*potentials, single.mask)))  # noqa: E731
    check_grads(f, tuple(single[:3]), order=1, modes=["rev"], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("repeats", [1, 39])
def test_a_constant_table_is_the_constant_chain(x64, form, quantity, repeats):
    chain = padded_inside(oracles.hmm_chain(np.random.default_rng(4), T=40, K=5, real=33, impossible=True))

    def pulled(log_trans):
        f = lambda *p: getattr(form, quantity)(HMMChain(*p, chain.mask))  # noqa: E731
        q, pull = jax.vjp(f, chain.log_init, log_trans, chain.node)
        finite = jax.tree.map(lambda x: jnp.where(jnp.isfinite(x), jnp.sin(x), 0), q)
        d_init, d_trans, d_node = pull(finite)
        return q, d_init, d_trans.reshape(-1, 5, 5).sum(0), d_node

    chain = on_device(chain)
    got, want = pulled(jnp.stack([chain.log_trans] * repeats)), pulled(chain.log_trans)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-10), got, want)
    varied = chain._replace(log_trans=jnp.stack([chain.log_trans] * repeats))
    np.testing.assert_array_equal(form.viterbi(varied), form.viterbi(chain))
    key = jax.random.key(0)
    np.testing.assert_array_equal(form.sample(varied, key=key), form.sample(chain, key=key))


@pytest.mark.parametrize("form", FORMS)
def test_samples_have_the_marginals_and_pairs(form):
    chain = varying(np.random.default_rng(5), T=5, K=3, real=4, impossible=True)
    _, states, pairs, _ = oracles.enumerate_pairs(chain)
    keys = jax.random.split(jax.random.key(0), 20_000)
    z = np.asarray(jax.jit(jax.vmap(lambda key: form.sample(on_device(chain), key=key)))(keys))
    hot = np.eye(3)[z]
    np.testing.assert_allclose(hot.mean(0)[:4], states, atol=0.02)
    np.testing.assert_allclose(np.einsum("nti,ntj->tij", hot[:, :3], hot[:, 1:4]) / len(z), pairs, atol=0.02)
    np.testing.assert_array_equal(z[:, 4], z[:, 3])


@pytest.mark.parametrize("form", FORMS[1:])
def test_forms_agree_on_a_batch_of_longer_chains(x64, form):
    rng = np.random.default_rng(6)
    chains = [padded_inside(varying(rng, T=50, K=17, real=41, impossible=True)) for _ in range(3)]
    batch = on_device(HMMChain(*map(np.stack, zip(*chains, strict=True))))
    for quantity in QUANTITIES:
        a, b = (jax.jit(jax.vmap(getattr(f, quantity)))(batch) for f in (form, hmm_sequential))
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-10), a, b)
    paths = [jax.vmap(f.viterbi)(batch) for f in (form, hmm_sequential)]
    np.testing.assert_array_equal(*paths)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("steps", [1, 8])
def test_a_batch_that_shares_its_tables_is_each_alone(x64, form, steps):
    """Its pairs and the gradient of the tables, one for all sequences."""
    rng = np.random.default_rng(10)
    tables, node = jnp.asarray(rng.normal(size=(steps, 5, 5))), jnp.asarray(rng.normal(size=(3, 9, 5)))
    mask = jnp.asarray(np.arange(9) < np.array([9, 4, 1])[:, None])
    smooth = lambda tables, node, mask: form.smooth_pairs(HMMChain(jnp.zeros(5), tables, node, mask))  # noqa: E731
    together, pull = jax.vjp(lambda tables: jax.vmap(smooth, (None, 0, 0))(tables, node, mask), tables)
    gradient = 0.0
    for i in range(3):
        alone, pull_one = jax.vjp(lambda tables, i=i: smooth(tables, node[i], mask[i]), tables)
        jax.tree.map(lambda a, b, i=i: np.testing.assert_allclose(a[i], b, atol=1e-12), together, alone)
        gradient = gradient + pull_one(jax.tree.map(jnp.sin, alone))[0]
    np.testing.assert_allclose(pull(jax.tree.map(jnp.sin, together))[0], gradient, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("T, K, scale", [(60, 50, 100.0), (60, 30, 1000.0), (5000, 5, 1.0)])
def test_float32_is_its_own_float64(form, T, K, scale):
    """Marginals to 1e-5, also at 5,000 steps; gradients are numbers."""
    rng = np.random.default_rng(7)
    node, log_trans = scale * rng.normal(size=(T, K)), np.log(rng.dirichlet(np.ones(K), size=(T - 1, K)))
    single = HMMChain(
        *(jnp.asarray(x, jnp.float32) for x in (np.full(K, -np.log(K)), log_trans, node)), jnp.ones(T, bool)
    )
    smooth = jax.jit(lambda *p: form.smooth_pairs(HMMChain(*p, jnp.ones(T, bool))))
    q, pull = jax.vjp(smooth, *single[:3])
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves((q, pull(jax.tree.map(jnp.cos, q)))))
    with jax.enable_x64(True):
        exact = jax.tree.map(np.asarray, smooth(*(jnp.asarray(x, jnp.float64) for x in single[:3])))
    np.testing.assert_allclose(q.states, exact.states, atol=1e-5)
    np.testing.assert_allclose(q.pairs, exact.pairs, atol=1e-5)
    np.testing.assert_allclose(np.asarray(q.log_z, np.float64).sum(), exact.log_z.sum(), rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_finite_beside_impossible_paths(form):
    chain = on_device(varying(np.random.default_rng(8), T=5, K=3, real=4, impossible=True))

    def loss(*potentials):
        return sum(jnp.sum(jnp.sin(x)) for x in form.smooth_pairs(HMMChain(*potentials, chain.mask)))

    gradient = jax.grad(loss, (0, 1, 2))(*(x.astype(np.float32) for x in chain[:3]))
    assert all(np.all(np.isfinite(g)) for g in gradient)


def test_a_table_of_another_length_is_refused():
    chain = on_device(varying(np.random.default_rng(9), T=5, K=3))
    with pytest.raises(ValueError, match=r"log_trans is 3x3x3; a chain of 5 steps and 3 states takes KxK, 1xKxK"):
        hmm_sequential.smooth(chain._replace(log_trans=chain.log_trans[1:]))
