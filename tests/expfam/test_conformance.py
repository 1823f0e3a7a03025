"""One suite for every exponential family in the registry: each test is a theorem of Appendix B."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from svae import expfam
from svae.expfam import FAMILIES, MNIW, NIW, Categorical, DiagonalGaussian, Dirichlet, Gaussian, TiltedDirichlet


def positive(key, *shape):
    A = jax.random.normal(key, (*shape, shape[-1]))
    return A @ jnp.swapaxes(A, -1, -2) + jnp.broadcast_to(jnp.eye(shape[-1]), A.shape)


def example(name: str, seed: int = 0, batch: tuple = ()):
    k = jax.random.split(jax.random.key(seed), 4)
    D, U = 3, 4
    normal = lambda key, *shape: jax.random.normal(key, (*batch, *shape))  # noqa: E731
    return {
        "Categorical": lambda: Categorical(normal(k[0], 5)),
        "Gaussian": lambda: Gaussian(positive(k[0], *batch, D), normal(k[1], D)),
        "DiagonalGaussian": lambda: DiagonalGaussian(0.3 + normal(k[0], D) ** 2, normal(k[1], D)),
        "Dirichlet": lambda: Dirichlet(0.4 + normal(k[0], 5) ** 2),
        "TiltedDirichlet": lambda: TiltedDirichlet(0.4 + normal(k[0], 5) ** 2),
        "NIW": lambda: NIW(
            normal(k[0], D), positive(k[1], *batch, D), 0.5 + normal(k[2]) ** 2, D + 4 + normal(k[3]) ** 2
        ),
        "MNIW": lambda: MNIW(
            normal(k[0], D, U), positive(k[1], *batch, D), positive(k[2], *batch, U), D + 4 + normal(k[3]) ** 2
        ),
    }[name]()


families = pytest.mark.parametrize("name", sorted(FAMILIES))
conjugate = pytest.mark.parametrize("name", sorted(expfam.CONJUGATE_PRIORS))


def leaves_close(a, b, **tolerance):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, **tolerance)


@families
def test_natural_round_trip(name, x64):
    family = example(name, batch=(2,))
    leaves_close(type(family).from_natural(family.natural()), family, rtol=1e-9, atol=1e-12)


@families
def test_expected_statistics_are_monte_carlo_means(name, x64):
    family = example(name)
    draws = jax.jit(jax.vmap(lambda key: family.sample(key=key)))(jax.random.split(jax.random.key(1), 40_000))
    if name == "Categorical":
        stats = Categorical.statistics(draws, 5)
    else:
        stats = jax.jit(jax.vmap(type(family).statistics))(draws)
    expected = expfam.expected_stats(family)
    for stat, mean in zip(jax.tree.leaves(stats), jax.tree.leaves(expected), strict=True):
        error = np.abs(np.mean(stat, 0) - mean) / (np.std(stat, 0) / 200 + 1e-12)
        assert np.max(error) < 5.5


@families
def test_kl_is_zero_at_equality_and_positive_elsewhere(name, x64):
    p, q = example(name, 0), example(name, 3)
    np.testing.assert_allclose(expfam.bregman_kl(q, q), 0, atol=1e-9)
    assert expfam.bregman_kl(q, p) > 0


@families
def test_out_of_domain_is_noticed(name, x64):
    family = example(name)
    assert np.all(family.in_domain())
    broken = jax.tree.map(lambda a: a * jnp.nan, family)
    assert not np.any(broken.in_domain())


@families
def test_batches_are_independent(name, x64):
    batch = example(name, batch=(3,))
    alone = jax.tree.map(lambda a: a[1], batch)
    np.testing.assert_allclose(batch.log_partition()[1], alone.log_partition(), rtol=1e-12)


@conjugate
def test_stable_kl_equals_the_bregman_divergence(name, x64):
    p, q = example(name, 0, (2,)), example(name, 3, (2,))
    np.testing.assert_allclose(expfam.kl(q, p), expfam.bregman_kl(q, p), rtol=1e-9)


@conjugate
def test_natural_gradient_is_the_gradient_in_the_dual(name, x64):
    """For any function f of the moments: prior - q + df/dE[t] in plain coordinates = Fisher^-1 d(f(q) - KL)/d eta."""
    q, prior = example(name, 0), example(name, 5)
    keys = iter(jax.random.split(jax.random.key(9), 8))
    weights = jax.tree.map(lambda m: jax.random.normal(next(keys), m.shape), expfam.moments(q))
    f = lambda moments: expfam.inner(weights, jax.tree.map(jnp.sin, moments))  # noqa: E731

    def objective(eta):
        family = type(q).from_natural(eta)
        return f(family.moments()) - expfam.bregman_kl(family, prior)

    eta = q.natural()
    natural = q.uncentre(q.natural_gradient(prior, jax.grad(f)(q.moments())))
    _, fisher_times_natural = jax.jvp(lambda e: expfam.expected_stats(type(q).from_natural(e)), (eta,), (natural,))
    leaves_close(fisher_times_natural, jax.grad(objective)(eta), rtol=1e-7, atol=1e-9)


@conjugate
def test_a_step_moves_the_natural_parameters(name, x64):
    q, prior = example(name, 0), example(name, 5)
    direction = jax.tree.map(jnp.subtract, prior.natural(), q.natural())
    moved = q.step(q.centre(direction), jnp.asarray(0.3))
    expected = jax.tree.map(lambda a, d: a + 0.3 * d, q.natural(), direction)
    leaves_close(moved.natural(), expected, rtol=1e-9, atol=1e-10)
    leaves_close(q.uncentre(q.centre(direction)), direction, rtol=1e-9, atol=1e-10)


@conjugate
def test_conjugacy_a_full_step_from_the_prior_is_the_posterior(name, x64):
    """q + (t_x, 1) of one datum is Bayes' rule: Z(posterior) / Z(prior) is its marginal likelihood."""
    if name != "NIW":
        pytest.skip("checked for the NIW, whose marginal likelihood is a Student t of scipy")
    prior = example("NIW")
    x = jnp.array([0.3, -1.0, 0.7])
    eta = jax.tree.map(jnp.add, prior.natural(), expfam.NIWNatural(jnp.outer(x, x), x, jnp.ones(()), jnp.ones(())))
    posterior = NIW.from_natural(eta)
    log_marginal = posterior.log_partition() - prior.log_partition() - 1.5 * np.log(2 * np.pi)
    df = prior.nu - 3 + 1
    shape = prior.S * (prior.n + 1) / (prior.n * df)
    oracle = scipy.stats.multivariate_t(np.array(prior.m), np.array(shape), df=float(df)).logpdf(np.array(x))
    np.testing.assert_allclose(log_marginal, oracle, rtol=1e-9)


def test_log_partitions_against_scipy(x64):
    counts = np.array([0.5, 2.0, 3.3])
    log_pi = np.log([0.2, 0.3, 0.5])
    ours = counts @ log_pi - Dirichlet(jnp.array(counts)).log_partition() - log_pi.sum()
    np.testing.assert_allclose(ours, scipy.stats.dirichlet(counts).logpdf(np.exp(log_pi)), rtol=1e-12)
    gaussian = example("Gaussian")
    mean, covariance = gaussian.to_standard()
    x = np.array([0.1, 0.2, -0.5])
    ours = -x @ gaussian.J @ x / 2 + gaussian.h @ x - gaussian.log_partition()
    np.testing.assert_allclose(ours, scipy.stats.multivariate_normal(mean, covariance).logpdf(x), rtol=1e-12)


def test_inverse_wishart_density_against_scipy(x64):
    family = example("MNIW")
    theta = family.sample(key=jax.random.key(2))
    sigma = np.array(theta.sqrt @ theta.sqrt.T)
    D, U = theta.W.shape
    base = -(D + 1 + U) / 2 * np.linalg.slogdet(sigma)[1]  # the base measure |Sigma|^-(D + 1 + U) / 2
    ours = expfam.inner(family.natural(), MNIW.statistics(theta)) - family.log_partition() + base
    wishart = scipy.stats.invwishart(float(family.nu), np.array(family.S)).logpdf(sigma)
    normal = scipy.stats.matrix_normal(np.array(family.M), sigma, np.linalg.inv(np.array(family.K))).logpdf(
        np.array(theta.W)
    )
    np.testing.assert_allclose(ours, wishart + normal, rtol=1e-9)


def test_steps_keep_their_digits_when_latents_are_smooth():
    """float32, Var(x) / Q = 1e8: q must not lose S, which plain natural parameters do."""
    rng = np.random.default_rng(0)
    x = np.cumsum(1e-4 * rng.normal(size=(20_000, 2)), 0) + np.array([1.0, -2.0])
    u, target = np.c_[x[:-1], np.ones(len(x) - 1)], x[1:]
    prior = MNIW(jnp.array([[1.0, 0, 0], [0, 1, 0]]), 4e-8 * jnp.eye(2), 1e-3 * jnp.eye(3), jnp.asarray(4.0))
    q = prior
    for _ in range(300):
        M = np.asarray(q.M, float)
        r = target - u @ M.T  # the statistics in coordinates centred at q
        stats = expfam.MNIWNatural(*(jnp.asarray(s, jnp.float32) for s in (u.T @ u, u.T @ r, r.T @ r, len(u))))
        zero = jax.tree.map(jnp.zeros_like, q.moments())
        direction = jax.tree.map(jnp.add, q.natural_gradient(prior, zero), stats)
        q = q.step(direction, jnp.asarray(0.1))
    residual = target - u @ np.linalg.lstsq(u, target, rcond=None)[0]
    np.testing.assert_allclose(q.mean().sqrt @ q.mean().sqrt.T, residual.T @ residual / len(u), rtol=0.02, atol=1e-10)


def test_a_sticky_dirichlet_keeps_its_kl_in_float32(x64):
    """Counts of 1e10 on the diagonal: gammaln alone would leave noise of 1e4 nats."""
    q, p = jnp.array([7e10 + 900, 5.0, 3.0]), jnp.array([7e10, 1.0, 1.0])
    exact = 3.9988380846477942  # by 50-digit arithmetic
    single = Dirichlet(q.astype(jnp.float32)).kl(Dirichlet(p.astype(jnp.float32)))
    np.testing.assert_allclose(single, exact, rtol=1e-5)
    np.testing.assert_allclose(Dirichlet(q).kl(Dirichlet(p)), exact, rtol=1e-6)


@conjugate
def test_moments_at_the_mean_are_those_of_a_sure_density(name, x64):
    """With a million times the counts the mean stays, and the spread around it goes."""
    q = example(name)
    sure = {"counts": q.counts * 1e8} if hasattr(q, "counts") else _surer(q, 1e8)
    leaves_close(q.moments_at_mean(), dataclasses.replace(q, **sure).moments(), rtol=1e-6, atol=1e-6)


def _surer(q, times):
    """Fields with as many more observations of the same kind."""
    strength = "n" if hasattr(q, "n") else "K"
    return {"S": q.S * times, "nu": q.nu * times, strength: getattr(q, strength) * times}
