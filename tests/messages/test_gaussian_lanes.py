"""Gaussian chains in lanes, in pure JAX: batches of every layout against one sequence at a time, and the algebra."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from svae.messages import GaussianChain, gaussian_lanes, lanes, lanes_roots
from svae.messages.lanes_layout import LANES, layout
from tests.messages import oracles
from tests.messages.test_gaussian import cov, hard, on_device
from tests.messages.test_shared_dynamics import ORACLE, assert_close, pulled, symmetric

OWN, SHARED = GaussianChain(0, 0, 0, 0, 0, 0, 0), GaussianChain(0, 0, None, None, None, 0, 0)
MIXED = GaussianChain(None, 0, None, 0, 0, None, 0)  # a prior mean and J that all share, too


def batch(B, T, D, axes=OWN, steady=()):
    """B chains in float64, of which some leaves are shared and some have one entry for all steps."""
    chains = [oracles.gaussian_chain(np.random.default_rng(i), T, D, missing=0.3) for i in range(B)]
    stacked = jax.tree.map(lambda *x: np.stack(x), *chains)
    stacked = stacked._replace(**{name: getattr(stacked, name)[:, :1] for name in steady})
    return on_device(GaussianChain(*(x[0] if axis is None else x for x, axis in zip(stacked, axes, strict=True))))


def both(form, axes):
    """Smoothed moments and pulled cotangents of a batch."""
    return jax.jit(lambda chains: pulled(jax.vmap(lambda c: form.smooth(symmetric(c)), (axes,)), chains))


@functools.cache
def smooth(axes=OWN):
    return jax.jit(jax.vmap(gaussian_lanes.smooth, (axes,)))


@pytest.mark.parametrize(
    "B, T, D, axes, steady",
    [
        (5, 60, 3, OWN, ()),  # two blocks of two groups of 25 steps, the last of them partly padding
        (LANES + 3, 3, 2, MIXED, ("b",)),  # a step fills the lanes by itself
        (1, 300, 2, OWN, ("A", "b", "Q_sqrt")),
        (3, 7, 5, SHARED, ("A", "Q_sqrt")),
        (2, 1, 1, OWN, ()),
        (7, 2, 1, SHARED, ()),
    ],
)
def test_a_batch_is_one_sequence_after_another(x64, B, T, D, axes, steady):
    chains = batch(B, T, D, axes, steady)
    got, want = (both(form, axes)(chains) for form in (gaussian_lanes, ORACLE))
    assert_close(got, want, 1e-10)


def test_blocks_are_as_the_cases_above_say():
    sizes = [(5, 60), (LANES + 3, 3), (1, 300), (2, 1)]
    assert [(to.G, to.M, to.blocks) for to in (layout(*size) for size in sizes)] == [
        (25, 2, 2),
        (1, 2, 2),
        (128, 2, 2),
        (1, 1, 1),
    ]


def test_two_batch_axes_and_a_shared_operand(x64):
    chains = batch(6, 3, 2, SHARED)
    square = GaussianChain(
        *(x if a is None else x.reshape(2, 3, *x.shape[1:]) for x, a in zip(chains, SHARED, strict=True))
    )
    twice = jax.jit(jax.vmap(jax.vmap(gaussian_lanes.smooth, (SHARED,)), (SHARED,)))(square)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a.reshape(b.shape), b), twice, smooth(SHARED)(chains))


def test_cotangents_may_have_a_batch_where_the_chain_has_none(x64):
    chain = on_device(oracles.gaussian_chain(np.random.default_rng(0), 3, 2))

    def jacobian(form):
        return jax.jit(jax.jacrev(lambda h: form.smooth(chain._replace(h=h)).mean))(chain.h)

    np.testing.assert_allclose(*map(jacobian, (gaussian_lanes, ORACLE)), atol=1e-12)


@pytest.mark.parametrize("name, target", [("random walk", 5e-5), ("constant velocity", 5e-4)])
def test_float32_on_smooth_latents(name, target):
    chain = hard(name, 100)
    mean, S = oracles.rts(chain)
    chains = jax.tree.map(lambda x: jnp.stack([x] * 5), on_device(chain, np.float32))
    q = jax.tree.map(lambda x: x[4], smooth()(chains))
    assert np.max(np.abs(q.mean - mean) / np.sqrt(np.diagonal(S, axis1=-2, axis2=-1))) < target
    assert all(np.all(np.isfinite(x)) for x in q)
    assert np.all(np.linalg.eigvalsh(cov(q.sqrt)) > 0)


def test_a_nan_stays_in_its_sequence(x64):
    chains = batch(5, 60, 3)
    clean, q = smooth()(chains), smooth()(chains._replace(h=chains.h.at[4, 2, 1].set(np.nan)))
    assert np.all(np.isnan(q.mean[4])) and np.isnan(q.log_z[4, 2])
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[:4], b[:4]), q, clean)


def test_a_large_dimension_goes_one_sequence_at_a_time():
    def folds(D):
        shapes = [(D,), (D, D), (1, D, D), (1, D), (1, D, D), (2, D, D), (2, D)]
        chain = GaussianChain(*(jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes))
        return "custom_vmap" in str(jax.make_jaxpr(gaussian_lanes.smooth)(chain))

    assert folds(lanes.LARGEST) and not folds(lanes.LARGEST + 1)


# --- the algebra --------------------------------------------------------------------------------------------------


def matrices(D, n=3, lanes=2):
    """n draws of `lanes` matrices (D, D) with the lanes first, and the same with the lanes last."""
    X = np.random.default_rng(D).normal(size=(n, lanes, D, D))
    return X, jnp.moveaxis(jnp.asarray(X), 1, -1)


@pytest.mark.parametrize("D", [1, 2, 3, 4, 7, 8, 11, 12])
def test_products_of_every_size(x64, D):
    (X, Y, _), (x, y, _) = matrices(D)
    for product, want in [
        (lanes.mm, X @ Y),
        (lanes.mm_nt, X @ np.swapaxes(Y, -1, -2)),
        (lanes.mm_tn, np.swapaxes(X, -1, -2) @ Y),
        (lanes.mm_tt, np.swapaxes(X, -1, -2) @ np.swapaxes(Y, -1, -2)),
    ]:
        np.testing.assert_allclose(jnp.moveaxis(product(x, y), -1, 0), want, atol=1e-13)


@pytest.mark.parametrize("D", [1, 3, lanes.LARGEST])
def test_roots_and_quotients(x64, D):
    (X, Y, Z), (_, y, z) = matrices(D)
    P = cov(X) + np.eye(D)
    L = np.linalg.cholesky(P)
    last, first = (lambda a: jnp.moveaxis(a, 0, -1)), (lambda a: np.moveaxis(np.asarray(a), -1, 0))
    close = functools.partial(np.testing.assert_allclose, atol=1e-11)
    close(first(lanes_roots.cholesky(last(P))), L)
    close(first(lanes_roots.solve(last(L), y)), np.linalg.solve(L, Y))
    close(first(lanes_roots.divide(y, last(L))), Y @ np.linalg.inv(L))
    F, pivots = map(first, lanes_roots.eliminate(last(P), y))
    close(cov(F), Y @ np.linalg.inv(P) @ np.swapaxes(Y, -1, -2))
    close(np.log(pivots).sum(-1), np.linalg.slogdet(L)[1])
    close(first(lanes_roots.join(lanes.mT(y), last(L))), np.linalg.cholesky(cov(Y) + P))
    close(first(lanes_roots.tria(jnp.concatenate([lanes.mT(y), lanes.mT(z)]))), np.linalg.cholesky(cov(Y) + cov(Z)))
