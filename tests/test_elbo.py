"""Algorithm 1 as an estimator: minibatches, windows, samples, q(γ), and the other estimators by their definitions."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import svae
from svae import data, elbo, expfam, nets, value_and_grad
from svae.bound import value_and_grad_2016, value_and_grad_flat, value_and_grad_printed

D, P = 2, 3
KEY = jax.random.key(7)
compiled = lambda f: eqx.filter_jit(f, compiler_options={"xla_backend_optimization_level": 0})  # noqa: E731


def conjugate_model(name: str, **options) -> svae.SVAE:
    """Linear-Gaussian observations with their exact recognition, and q(theta) away from the prior."""
    model = svae.make((P,), model=name, latent_dim=D, states=2, network="affine", key=jax.random.key(0), **options)
    rng = np.random.default_rng(0)
    q = model.pgm.initialize([rng.normal(size=(20, D)).cumsum(0) / 2], [np.ones((20, 1))])
    return dataclasses.replace(model, q=q, recognize=nets.conjugate(model.observe))


def frames(B: int, T: int):
    return jnp.asarray(np.random.default_rng(1).normal(size=(B, T, P))), jnp.ones((B, T), bool)


@compiled
def posteriors(model, y, mask):
    return jax.vmap(lambda y, mask: model.pgm.infer(expfam.moments(model.q), model.recognize(y, mask), mask))(y, mask)


@compiled
def flat(q, natural):
    """A natural gradient in plain coordinates, as one vector."""
    return ravel_pytree(expfam.uncentre(q, natural))[0]


def test_minibatches_average_to_the_whole(x64):
    """N/|batch| times the data terms of disjoint minibatches average to the whole; the global KL is not scaled."""
    model, (y, mask) = conjugate_model("lds"), frames(6, 5)
    bound = compiled(lambda y, mask: elbo(model, y, mask, num_data=6, key=KEY))
    whole, parts = bound(y, mask), [bound(y[i : i + 2], mask[i : i + 2]) for i in (0, 2, 4)]
    assert len({float(p.global_kl) for p in (whole, *parts)}) == 1
    for field in ("local_kl", "usage"):  # the likelihood is a sample, with other noise for every batch
        np.testing.assert_allclose(np.mean([getattr(p, field) for p in parts], 0), getattr(whole, field), rtol=1e-12)
    np.testing.assert_allclose(whole.bound, whole.log_likelihood - whole.local_kl - whole.global_kl, rtol=1e-12)
    assert whole.weights_kl == 0


def test_sampled_likelihood_is_unbiased_and_samples_reduce_its_noise(x64):
    """Its mean over keys is the closed form of E_q* log p(y | x) for a linear-Gaussian observation."""
    (y, mask), keys = frames(2, 4), jax.random.split(KEY, 400)
    found = {}
    for samples in (1, 3):
        model = conjugate_model("gaussian", samples=samples)
        found[samples] = compiled(jax.vmap(lambda k, m=model: elbo(m, y, mask, num_data=2, key=k).log_likelihood))(keys)
    q = posteriors(model, y, mask)
    mean, root, W, b, log_sd = map(np.asarray, (q.factors.x.mean, q.factors.x.sqrt, *jax.tree.leaves(model.recognize)))
    second = (np.asarray(y) - mean @ W.T - b) ** 2 + np.sum((W @ root) ** 2, -1)
    exact = np.sum(-second / (2 * np.exp(2 * log_sd)) - log_sd - np.log(2 * np.pi) / 2)
    for draws in found.values():
        assert abs(np.mean(draws) - exact) < 5 * np.std(draws) / 20
    np.testing.assert_allclose(np.std(found[3]) / np.std(found[1]), 1 / np.sqrt(3), rtol=0.2)


def test_windows_that_tile_a_recording_sum_to_the_whole(x64):
    """Every frame is counted once; with enough overlap the context carries what the rest of the recording would say."""
    model, (y, mask) = conjugate_model("lds"), frames(1, 40)
    recording = data.recordings(np.asarray(y[0]))
    table = data.windows(recording, 10, 12)
    batch = data.batch(recording, table, np.arange(4))
    assert batch.counted.sum() == 40
    local_kl = compiled(
        lambda y, mask, counted: elbo(model, y, mask, num_data=len(y), key=KEY, counted=counted).local_kl
    )
    whole = local_kl(y, mask, mask)
    windowed = [jnp.asarray(a) for a in (batch.y.astype(float), batch.mask, batch.counted)]
    np.testing.assert_allclose(local_kl(*windowed), whole, rtol=1e-3)


def test_the_kl_of_the_weights_enters_once(x64):
    """q(γ): its KL is in the bound and in the gradient unscaled, whatever the number of data and samples."""
    model, (y, mask) = conjugate_model("gaussian"), frames(2, 4)
    bayesian = dataclasses.replace(model, observe=nets.GaussianWeights(model.observe))
    estimate = compiled(lambda n: value_and_grad(bayesian, y, mask, num_data=n, key=KEY))
    (one, gradient_1), (ten, gradient_10) = estimate(jnp.asarray(2.0)), estimate(jnp.asarray(20.0))
    assert one.weights_kl == ten.weights_kl == bayesian.observe.kl() > 0
    total = one.log_likelihood - one.local_kl - one.global_kl - one.weights_kl
    np.testing.assert_allclose(one.bound, total, rtol=1e-12)
    d_kl = compiled(eqx.filter_grad(lambda observe: observe.kl()))(bayesian.observe)
    trees = [eqx.filter(tree, eqx.is_array) for tree in (gradient_1.observe, gradient_10.observe, d_kl)]
    data_1, data_10, prior = (np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)]) for tree in trees)
    np.testing.assert_allclose(data_10 + prior, 10 * (data_1 + prior), rtol=1e-9, atol=1e-9)


@pytest.fixture(scope="module")
def estimates():
    """The four estimators on one conjugate model, data set and key."""
    with jax.enable_x64(True):
        model, (y, mask) = conjugate_model("gaussian"), frames(2, 4)
        kinds = (value_and_grad, value_and_grad_2016, value_and_grad_printed, value_and_grad_flat)
        return model, [compiled(lambda f=f: f(model, y, mask, num_data=6, key=KEY))() for f in kinds]


def test_estimators_differ_in_the_natural_gradient_only(estimates):
    _, found = estimates
    for bound, gradient in found[1:]:
        np.testing.assert_allclose(bound.bound, found[0][0].bound, rtol=1e-12)
        for a, b in zip(jax.tree.leaves(gradient[1:]), jax.tree.leaves(found[0][1][1:]), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)


def test_the_2016_estimator_is_a_step_of_conjugate_updating(estimates, x64):
    """prior - q + N/|batch| E t_x(x): for one Gaussian the statistics are sums of E xx', E x, 1 and 1."""
    model, found = estimates
    y, mask = frames(2, 4)
    q = posteriors(model, y, mask)
    m, L = np.asarray(q.factors.x.mean).reshape(-1, D), np.asarray(q.factors.x.sqrt).reshape(-1, D, D)
    second = np.einsum("nik,njk->ij", L, L) + m.T @ m
    stats = expfam.NIWNatural(*(3 * np.asarray(s, float) for s in (second, m.sum(0), len(m), len(m))))
    expected = jax.tree.map(
        lambda p, q, s: p - q + s, model.pgm.prior.x.normal.natural(), model.q.x.normal.natural(), stats
    )
    np.testing.assert_allclose(flat(model.q, found[1][1].q), ravel_pytree(expected)[0], rtol=1e-9, atol=1e-9)


def test_the_printed_estimator_adds_the_gradient_of_the_likelihood(estimates, x64):
    """The term beside prior - q: d(likelihood - KL) unbiased, d log Z in 2016, d(likelihood + log Z) printed."""
    model, found = estimates
    y, mask = frames(2, 4)

    def parts(moments):
        evidence = svae.bound.evidence(model, moments, y, mask, mask, KEY)
        return 3 * jnp.stack([evidence.log_likelihood, evidence.kl, evidence.log_normalizer])

    rows = compiled(jax.jacrev(parts))(expfam.moments(model.q))
    dual = compiled(lambda q, d: expfam.natural_gradient(q, q, d))
    natural = lambda i: flat(model.q, dual(model.q, jax.tree.map(lambda r: r[i], rows)))  # noqa: E731
    start = ravel_pytree(jax.tree.map(jnp.subtract, model.pgm.prior.x.normal.natural(), model.q.x.normal.natural()))[0]
    unbiased, old, printed = (flat(model.q, g.q) for _, g in found[:3])
    np.testing.assert_allclose(unbiased, start + natural(0) - natural(1), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(old, start + natural(2), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(printed, start + natural(0) + natural(2), rtol=1e-8, atol=1e-8)


def test_flat_gradients_are_fisher_times_natural(estimates, x64):
    model, found = estimates
    eta, unravel = ravel_pytree(expfam.natural(model.q))
    fisher = compiled(jax.hessian(lambda e: expfam.log_partition(expfam.from_natural(model.q, unravel(e)))))(eta)
    np.testing.assert_allclose(
        flat(model.q, found[3][1].q), fisher @ flat(model.q, found[0][1].q), rtol=1e-8, atol=1e-10
    )


def test_with_exact_recognition_the_2016_estimator_is_right_on_average(estimates, x64):
    """The surrogate is then the bound: the dropped term has mean zero over x ~ q*(x)."""
    model, found = estimates
    y, mask = frames(2, 4)
    estimate = lambda key: value_and_grad(model, y, mask, num_data=6, key=key)[1].q  # noqa: E731
    draws = compiled(jax.vmap(estimate))(jax.random.split(KEY, 2000))
    draws = np.asarray(jax.vmap(flat, (None, 0))(model.q, draws))
    error = draws.mean(0) - flat(model.q, found[1][1].q)
    assert np.all(np.abs(error) < 5 * draws.std(0) / np.sqrt(len(draws)) + 1e-9)
