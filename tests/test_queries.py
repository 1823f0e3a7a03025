"""Queries against exact answers: a model that is linear and Gaussian, whose every question a dense Gaussian answers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import svae
from svae import expfam, nets
from svae.data import DataError, Standardize, recordings, standardize_entries
from svae.queries.batches import bucket
from svae.queries.inference import best_of_starts

T, P = 6, 3
SCALE, OFFSET = np.array([2.0, 0.5, 10.0]), np.array([5.0, -1.0, 100.0])


def sharp(family, c=1e7):
    """The same family, all but sure of its parameters: what it expects of them is what it draws."""
    if isinstance(family, expfam.Dirichlet):
        return expfam.Dirichlet(family.counts * c)
    if isinstance(family, expfam.NIW):
        return expfam.NIW(family.m, family.S * c, family.n * c, family.nu * c)
    return expfam.MNIW(family.M, family.S * c, family.K * c, family.nu * c)


def exact_model(kind, **options):
    """Linear-Gaussian observations with their conjugate recognition, a sure q(theta), and units of the data."""
    model = svae.make((P,), model=kind, states=2, latent_dim=2, network="affine", hidden=(), **options)
    units = Standardize(*(jnp.asarray(a, jnp.float32) for a in (OFFSET, SCALE, np.zeros(P))))
    parts = (expfam.map_families(sharp, model.q), nets.conjugate(model.observe), units)
    return eqx.tree_at(lambda m: (m.q, m.recognize, m.scaling), model, parts)


class Dense:
    """The LDS of `exact_model` as one Gaussian over y_1..y_N, in the units of the data."""

    def __init__(self, model, N):
        first, dynamics = (f.mean() for f in model.q.x)
        A, b = (np.asarray(a, float) for a in (dynamics.W[:, :-1], dynamics.W[:, -1]))
        Q, P0 = (np.asarray(f.sqrt, float) @ np.asarray(f.sqrt, float).T for f in (dynamics, first))
        mean, S = [np.asarray(first.W[:, 0], float)], np.zeros((N, N, 2, 2))
        S[0, 0] = P0
        for t in range(1, N):
            mean.append(A @ mean[-1] + b)
            S[t, t] = A @ S[t - 1, t - 1] @ A.T + Q
            for s in range(t):
                S[t, s] = A @ S[t - 1, s]
                S[s, t] = S[t, s].T
        W, c = (np.asarray(a, float) for a in (model.observe.linear.W, model.observe.linear.b))
        noise = np.exp(2 * np.asarray(model.observe.likelihood.scale.log_sd, float))
        wide = np.kron(np.eye(N), SCALE[:, None] * W)
        self.mean = (np.stack(mean) @ W.T + c).reshape(-1) * np.tile(SCALE, N) + np.tile(OFFSET, N)
        self.clean = wide @ S.transpose(0, 2, 1, 3).reshape(2 * N, 2 * N) @ wide.T
        self.cov = self.clean + np.diag(np.tile(noise * SCALE**2, N))

    def log_prob(self, y):
        seen = ~np.isnan(y.reshape(-1))
        return multivariate_normal(self.mean[seen], self.cov[np.ix_(seen, seen)]).logpdf(y.reshape(-1)[seen])

    def given(self, y, covariance):
        """Mean and covariance of everything given the entries of y that are not NaN."""
        flat = y.reshape(-1)
        seen = ~np.isnan(flat)
        gain = np.linalg.solve(self.cov[np.ix_(seen, seen)], self.clean[seen]).T
        return self.mean + gain @ (flat[seen] - self.mean[seen]), covariance - gain @ self.clean[seen]


@pytest.fixture(scope="module")
def lds():
    return exact_model("lds")


@pytest.fixture(scope="module")
def gappy(lds):
    """A draw of the model with a missing entry and a missing frame."""
    y = svae.generate(lds, T, samples=1, key=jax.random.key(1)).samples[0].copy()
    y[1, 2], y[3] = np.nan, np.nan
    return y


def test_importance_weighted_bound_is_the_marginal_likelihood_when_q_is_exact(lds, gappy):
    longer = svae.generate(lds, 5, samples=1, key=jax.random.key(2)).samples[0]
    found = svae.score(lds, [gappy, longer], key=jax.random.key(0), samples=2000, importance_samples=20)
    exact = [Dense(lds, T).log_prob(gappy), Dense(lds, 5).log_prob(longer)]
    assert found.importance_bound * (T + 5) == pytest.approx(sum(exact), abs=0.05)
    assert found.bound * (T + 5) == pytest.approx(sum(exact), abs=0.3)  # likelihood by sampling
    assert found.recordings == pytest.approx([exact[0] / T, exact[1] / 5], abs=0.05)
    spread = np.array(exact) - sum(exact) / (T + 5) * np.array([T, 5])
    assert found.importance_standard_error == pytest.approx(np.sqrt(2 * np.sum(spread**2)) / (T + 5), abs=0.02)


def test_imputation_is_the_conditional_gaussian(lds, gappy):
    found = svae.impute(lds, gappy, key=jax.random.key(3), samples=4000)
    mean, cov = Dense(lds, T).given(gappy, Dense(lds, T).cov)
    missing, sd = np.isnan(gappy), np.sqrt(np.diag(cov)).reshape(T, P)
    off = (found.frames[0] - mean.reshape(T, P)) / sd
    assert np.abs(off[missing]).max() < 0.08
    np.testing.assert_allclose(found.sd[0][missing], sd[missing], rtol=0.06)
    np.testing.assert_array_equal(found.frames[0][~missing], gappy[~missing])
    assert (found.sd[0][~missing] == 0).all()


def test_forecast_is_the_conditional_gaussian(lds, gappy):
    """Noise that is Q e in place of chol(Q) e would show in the covariance."""
    H, S = 2, 6000
    found = svae.forecast(lds, gappy, horizon=H, samples=S, key=jax.random.key(4))
    padded = np.concatenate([gappy, np.full((H, P), np.nan)])
    dense = Dense(lds, T + H)
    for drawn, covariance in ((found.samples[0], dense.cov), (found.means[0], dense.clean)):
        mean, cov = (a[..., -H * P :] for a in dense.given(padded, covariance))
        cov = cov[-H * P :]
        sd, flat = np.sqrt(np.diag(cov)), drawn.reshape(S, -1)
        assert np.abs((flat.mean(0) - mean) / sd).max() < 5 / np.sqrt(S)
        np.testing.assert_allclose(np.cov(flat.T) / np.outer(sd, sd), cov / np.outer(sd, sd), atol=6 / np.sqrt(S))
    assert found.latents[0].shape == (S, H, 2) and found.states[0].shape == (S, H)


def test_reconstruction_is_the_smoothed_mean_in_units(lds, gappy):
    mean, _ = Dense(lds, T).given(gappy, Dense(lds, T).clean)
    np.testing.assert_allclose(svae.reconstruct(lds, gappy).frames[0], mean.reshape(T, P), rtol=1e-4, atol=1e-2)


def test_mixture_bounds_against_enumeration():
    """plain bound <= importance-weighted bound <= log p(y), which for many samples it reaches, frame by frame."""
    model = exact_model("gmm")
    y = svae.generate(model, 12, key=jax.random.key(0)).samples[0]
    found = svae.score(model, y, key=jax.random.key(1), samples=400, importance_samples=400)
    theta, weights = model.q.x.normal.mean(), np.asarray(model.q.z.weights.mean(), float)
    W, b = (np.asarray(a, float) for a in (model.observe.linear.W, model.observe.linear.b))
    noise = np.diag(np.exp(2 * np.asarray(model.observe.likelihood.scale.log_sd, float)))
    z = (y - OFFSET) / SCALE
    parts = []
    for k, m, L in zip(weights, np.asarray(theta.W, float)[..., 0], np.asarray(theta.sqrt, float), strict=True):
        parts.append(np.log(k) + multivariate_normal(W @ m + b, W @ L @ L.T @ W.T + noise).logpdf(z))
    exact = np.mean(logsumexp(parts, 0)) - np.sum(np.log(SCALE))
    assert found.importance_bound == pytest.approx(exact, abs=0.05)
    assert found.bound < found.importance_bound + 0.05
    assert found.standard_error is not None  # over frames, which are independent here


def test_answers_do_not_depend_on_company_or_padding(lds, gappy):
    """A recording alone, without padding, and beside others of many lengths."""
    others = [svae.generate(lds, n, key=jax.random.key(n)).samples[0] for n in (5, 7)]
    alone = svae.infer(lds, gappy)
    together = svae.infer(lds, {"a": others[0], "b": gappy, "c": others[1]})
    assert together.names == ("a", "b", "c") and [len(m) for m in together.mean] == [5, 6, 7]
    np.testing.assert_allclose(together.mean[1], alone.mean[0], atol=1e-5)
    np.testing.assert_allclose(together.sd[1], alone.sd[0], atol=1e-5)
    short = svae.infer(lds, gappy[:5])  # padded to 6
    moments = expfam.moments(lds.q)
    scaled, mask = jnp.asarray(lds.scaling.apply(gappy[:5])), jnp.ones(5, bool)
    direct = lds.pgm.infer(moments, lds.recognize(scaled, mask), mask)
    np.testing.assert_allclose(short.mean[0], direct.mean(), atol=1e-5)
    np.testing.assert_allclose(short.kl[0], direct.kl, atol=1e-4)


def test_buckets_are_few_and_close():
    sizes = [bucket(n) for n in range(1, 2000)]
    assert all(n <= size <= 1.5 * n for n, size in enumerate(sizes, 1)) and len(set(sizes)) < 25


@pytest.fixture(scope="module")
def slds():
    model = svae.make((P,), model="slds", states=3, latent_dim=2, network="recurrent", hidden=(4,), stickiness=10.0)
    return eqx.tree_at(lambda m: m.q, model, expfam.map_families(lambda f: sharp(f, 100.0), model.q))


def test_forecast_sees_the_prefix_only(slds):
    rng = np.random.default_rng(0)
    y, other = rng.normal(size=(2, 12, P))
    later = np.concatenate([y[:9], other[9:]])
    key = jax.random.key(0)
    first = svae.forecast(slds, [y[:9], y], horizon=4, samples=3, key=key)
    again = svae.forecast(slds, [later[:9], later], horizon=4, samples=3, key=key)
    np.testing.assert_array_equal(first.samples[0], again.samples[0])
    np.testing.assert_array_equal(first.states[0], again.states[0])
    assert np.abs(first.samples[1] - again.samples[1]).max() > 0.01


def test_segment_gives_paths_and_marginals(slds):
    y = np.random.default_rng(1).normal(size=(12, P))
    found = svae.segment(slds, [y, y[:7]])
    assert [a.shape for a in found.labels] == [(12,), (7,)]
    assert [a.shape for a in found.marginals] == [(12, 3), (7, 3)]
    for labels, marginals in zip(found.labels, found.marginals, strict=True):
        np.testing.assert_allclose(marginals.sum(1), 1, atol=1e-6)
        assert marginals.max() <= 1
        assert set(labels) <= {0, 1, 2}
    np.testing.assert_array_equal(svae.segment(slds, y).labels[0], found.labels[0])


def test_more_starts_raise_the_surrogate_bound_over_a_gap(slds):
    y = np.random.default_rng(2).normal(size=(12, P)).astype(np.float32)
    y[4:9] = np.nan
    y, mask = jnp.asarray(y), jnp.ones(12, bool)
    find = eqx.filter_jit(lambda starts: best_of_starts(slds, y, mask, jax.random.key(0), starts))
    once, often = (float(jnp.sum(find(starts).log_normalizer)) for starts in (0, 8))
    assert often >= once - 1e-4


@pytest.mark.parametrize("data", [np.zeros((4, 2)), [np.zeros((4, P)), np.zeros((4, 2))], [], "abc", np.zeros(3)])
def test_data_of_the_wrong_form_are_refused_in_one_sentence(lds, data):
    for query in (svae.infer, svae.segment, svae.reconstruct):
        with pytest.raises(DataError) as caught:
            query(lds, data)
        assert len(str(caught.value)) < 200 and "\n" not in str(caught.value)


def test_data_far_from_the_fitted_are_refused(lds):
    y = np.zeros((4, P))
    y[2, 1] = 1e12
    with pytest.raises(DataError, match="column 1 at frame 2"):
        svae.infer(lds, y)


@pytest.mark.parametrize("bad", [0, -1, True])
def test_numbers_of_draws_are_checked(lds, bad):
    with pytest.raises(svae.ConfigError, match="at least 1"):
        svae.generate(lds, bad, key=jax.random.key(0))
    with pytest.raises(svae.ConfigError, match="at least 1"):
        svae.forecast(lds, np.zeros((2, P)), horizon=bad, samples=2, key=jax.random.key(0))


def test_an_offset_of_1e8_keeps_its_digits():
    y = 1e8 + np.random.default_rng(0).normal(size=(50, 2))
    units = standardize_entries(recordings(y)).in_float32((2,))
    model = eqx.tree_at(lambda m: m.scaling, svae.make((2,), model="vae"), Standardize(*map(jnp.asarray, units)))
    np.testing.assert_allclose(model.scaling.invert(model.scaling.apply(y)), y, atol=1e-6, rtol=0)
