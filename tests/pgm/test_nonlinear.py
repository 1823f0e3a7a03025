"""Dynamics with a network: against the linear twin, differences, quadrature and integration on a grid."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.special import logsumexp

import svae
from svae import data, expfam
from svae.config import Config, ConfigError
from svae.expfam import Gaussian
from svae.messages import fixed_point
from svae.model import pgm_of
from svae.pgm import Dynamics, GraphError, Markov, Normal, SemiMarkov, _nonlinear, graph
from svae.testing import check_pgm
from tests.pgm.test_natural_gradient import fisher, gradients, relative, richardson
from tests.pgm.test_not_conjugate import P, T, complete, random_like

GRAPHS = {
    "alone": lambda hidden: graph(x=Dynamics(2, hidden=hidden)),
    "switching, driven": lambda hidden: graph(z=Markov(2), x=Dynamics(2, given="z", inputs=1, hidden=hidden)),
}


def converged(f, words, args):
    return fixed_point(f, words, args, tolerance=1e-13, max_iterations=3000, free_steps=3000)


def bending(pgm, size: float = 1.0):
    """The graph with ordinary parameters at random."""
    return dataclasses.replace(pgm, ordinary=random_like(pgm.ordinary, size), solve=converged)


def make_model(pgm):
    model = svae.make((P,), pgm=pgm, key=jax.random.key(0), hidden=(4,), network="residual", precision="full")
    return dataclasses.replace(model, pgm=dataclasses.replace(pgm, solve=converged), q=complete(pgm))


def batch(pgm):
    """Frames with gaps and their inputs; with padding, into which a linear system alone has draws of its own."""
    rng = np.random.default_rng(4)
    y = rng.normal(size=(2, T, P))
    y[0, 1, 2], y[1, 1] = np.nan, np.nan
    u = jnp.asarray(rng.normal(size=(2, T, pgm.inputs))) if pgm.inputs else None
    return (jnp.asarray(y), jnp.ones((2, T), bool).at[1, 3].set(not pgm.discrete)), data.Beside(u)


@pytest.mark.parametrize("name", GRAPHS)
def test_where_the_network_is_0_it_is_the_conjugate_twin(name, x64, compiled):
    """At the start: bound and all gradients are those of the linear graph, and the network wants to move."""
    twins = [make_model(GRAPHS[name](hidden)) for hidden in ((3,), ())]
    frames, beside = batch(twins[0].pgm)
    run = compiled(lambda *a: svae.value_and_grad(*a, num_data=7, key=jax.random.key(1), beside=beside))
    (bound, gradient), (expected, like) = (run(model, *frames) for model in twins)
    for field in ("log_likelihood", "local_kl", "global_kl", "usage"):
        np.testing.assert_allclose(getattr(bound, field), getattr(expected, field), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(bound.bound + twins[0].pgm.penalty(), expected.bound, rtol=1e-8)
    parts = lambda g: jax.tree.leaves((g.q, g.recognize, g.observe))  # noqa: E731
    for a, b in zip(parts(gradient), parts(like), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)
    assert jax.tree.leaves(like.ordinary) == [] and np.abs(gradient.ordinary.x.out).max() > 0.01


def test_natural_and_ordinary_gradients_are_those_of_the_value(x64, compiled):
    """At a fixed key, with g at random: Fisher⁺ times Richardson differences, and plain ones in its weights."""
    model = make_model(bending(graph(z=Markov(2), x=Dynamics(1, given="z", hidden=(2,)))))
    flat, unravel = ravel_pytree(model.pgm.ordinary)
    eta = ravel_pytree(expfam.natural(model.q))[0]
    frames, _ = batch(model.pgm)

    def value(eta, flat):
        q = expfam.from_natural(model.q, ravel_pytree(expfam.natural(model.q))[1](eta))
        moved = dataclasses.replace(model, q=q, pgm=dataclasses.replace(model.pgm, ordinary=unravel(flat)))
        return svae.elbo(moved, *frames, num_data=7, key=jax.random.key(1)).bound

    value = compiled(value)
    by_q = np.array([richardson(lambda s, e=e: value(eta + s * e, flat), 3e-3) for e in np.eye(len(eta))])
    by_g = np.array([richardson(lambda s, e=e: value(eta, flat + s * e), 3e-3) for e in np.eye(len(flat))])
    (found, gradient), by_autodiff = compiled(gradients)(model, eta, *frames)
    F = np.asarray(compiled(fisher)(model, eta))
    natural = ravel_pytree(expfam.uncentre(model.q, gradient.q))[0]
    assert found.residual <= 1e-12
    assert relative(F @ natural, by_autodiff) < 1e-8
    assert relative(natural, np.linalg.pinv(F, rcond=1e-12, hermitian=True) @ by_q) < 1e-6
    assert relative(ravel_pytree(gradient.ordinary)[0], by_g) < 1e-6


# --- brute force: three frames of one dimension -------------------------------------------------------------------

STEPS, DRAWS = 3, 1000


@functools.cache
def tiny():
    """A graph whose network bends, q(theta), and potentials."""
    pgm = bending(graph(x=Dynamics(1, hidden=(2,))), 1.5)
    rng = np.random.default_rng(0)
    J, h = 0.5 + rng.random((STEPS, 1, 1)), rng.normal(size=(STEPS, 1))
    return pgm, complete(pgm), Gaussian(jnp.asarray(J), jnp.asarray(h))


def normal_score(moments, x, u, shift):
    """E_q(theta) log N(x; W u + shift, Sigma) of numbers x and shift."""
    left = (x - shift - moments.M[0] @ u) / moments.L[0, 0]
    return -(left**2 + u @ moments.E @ u + moments.logdet + jnp.log(2 * jnp.pi)) / 2


def true_score(pgm, moments, x):
    """E_q(theta) log p(x) of a path (T,), from its definition."""
    g, total = pgm.ordinary.x, normal_score(moments.x.first, x[0], jnp.ones(1), 0.0)
    for t in range(1, STEPS):
        bend = g.out[0] @ jnp.tanh(g.weights[0][:, 0] * x[t - 1] + g.offsets[0])
        total += normal_score(moments.x.dynamics, x[t], jnp.stack([x[t - 1], 1.0]), bend)
    return total


def path(q, noise):
    """x for standard normal noise (T,), the last frame first."""
    x = [q.mean[-1, 0] + q.sqrt[-1, 0, 0] * noise[-1]]
    for t in reversed(range(STEPS - 1)):
        away = x[0] - q.mean[t + 1, 0]
        x.insert(0, q.mean[t, 0] + q.gain[t, 0, 0] * away + q.back_sqrt[t, 0, 0] * noise[t])
    return jnp.stack(x)


def test_bound_and_gradients_are_those_of_the_true_conditional(x64):
    """The mean over draws of -kl + gap = E log p - E log q by quadrature, and so for derivatives in all parameters."""
    pgm, q, psi = tiny()
    parts, restore = ravel_pytree((expfam.moments(q), pgm.ordinary))
    nodes, weights = np.polynomial.hermite_e.hermegauss(24)
    grid = jnp.asarray(np.stack(np.meshgrid(*[nodes] * STEPS, indexing="ij"), -1).reshape(-1, STEPS))
    w = jnp.asarray(np.prod(np.stack(np.meshgrid(*[weights / weights.sum()] * STEPS), -1).reshape(-1, STEPS), -1))

    def inferred(parts):
        moments, ordinary = restore(parts)
        bent = dataclasses.replace(pgm, ordinary=ordinary)
        return bent, moments, bent.infer(moments, psi, jnp.ones(STEPS, bool))

    def by_draw(parts, key):
        found = inferred(parts)[2]
        return jnp.sum(found.gap(found.sample(key=key)) - found.kl)

    def by_quadrature(parts):
        bent, moments, found = inferred(parts)
        x = jax.vmap(lambda noise: path(found.factors.x, noise))(grid)
        log_p = jax.vmap(lambda x: true_score(bent, moments, x))(x)
        log_q = jax.vmap(lambda x: jnp.sum(found.log_density(x[:, None], jnp.ones(STEPS, bool))))(x)
        return w @ (log_p - log_q)

    keys = jax.random.split(jax.random.key(0), DRAWS)
    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(by_draw), (None, 0)))(parts, keys)
    value, slope = jax.jit(jax.value_and_grad(by_quadrature))(parts)
    error = lambda a: np.asarray(a).std(0) / DRAWS**0.5 + 1e-7  # noqa: E731
    assert np.std(values) > 0.01
    assert abs(np.mean(values) - value) < 4 * error(values)
    assert np.all(np.abs(np.asarray(slopes).mean(0) - slope) < 4 * error(slopes))


def test_the_bound_is_below_the_exact_evidence(x64):
    """With theta known: the integral over x of three frames on a grid."""
    pgm, q, psi = tiny()
    sure = expfam.from_natural(q, jax.tree.map(lambda eta: 1e9 * eta, expfam.natural(q)))
    found = jax.jit(lambda m: pgm.infer(m, psi, jnp.ones(STEPS, bool)))(expfam.moments(sure))
    gaps = jax.jit(jax.vmap(lambda key: jnp.sum(found.gap(found.sample(key=key)))))
    gap = np.asarray(gaps(jax.random.split(jax.random.key(0), DRAWS)))
    theta, grid = expfam.map_families(lambda family: family.mean(), sure), np.linspace(-8, 8, 61)
    x = jnp.asarray(np.stack(np.meshgrid(*[grid] * STEPS, indexing="ij"), -1).reshape(-1, STEPS, 1))
    densities = jax.jit(jax.vmap(lambda x: jnp.sum(pgm.log_prob(theta, x, jnp.ones(STEPS, bool)))))(x)
    x = np.asarray(x)[..., 0]
    volume = (x * np.asarray(psi.h)[:, 0] - x**2 * np.asarray(psi.J)[:, 0, 0] / 2).sum(1)
    exact = logsumexp(np.asarray(densities) + volume) + STEPS * np.log(grid[1] - grid[0])
    bound = float(found.log_normalizer.sum()) + gap.mean()
    assert exact - 1 < bound < exact - 4 * gap.std() / DRAWS**0.5


# --- inference ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pgm",
    [
        graph(z=SemiMarkov(2, longest=3), x=Dynamics(1, given="z", hidden=(3,))),
        graph(z=Markov(2, after="x"), w=Markov(2), x=Dynamics(2, add=("z", "w"), inputs=1, hidden=(3, 2)), v=Normal(1)),
    ],
    ids=["durations", "recurrent, offsets, inputs"],
)
def test_it_composes(pgm):
    check_pgm(pgm)


def test_the_expansion_is_the_derivative(x64):
    g = random_like(_nonlinear.network(2, 1, (4, 3)))
    rng = np.random.default_rng(0)
    x, u = jnp.asarray(rng.normal(size=(5, 2))), jnp.asarray(rng.normal(size=(5, 1)))
    found = jax.jit(_nonlinear.expansion)(g, x, u)
    of_one = lambda x, u: _nonlinear.value(g, x[None], u[None])[0]  # noqa: E731
    np.testing.assert_allclose(found.level, jax.jit(_nonlinear.value)(g, x, u), atol=1e-12)
    np.testing.assert_allclose(found.slope, jax.jit(jax.vmap(jax.jacfwd(of_one)))(x, u), atol=1e-12)


def test_sweeps_settle_for_networks_that_bend_much(x64, compiled):
    """Of 40 frames, half of them missing, slopes above 1: 30 sweeps leave little, where whole steps swing."""
    pgm = graph(x=Dynamics(2, hidden=(8,)))
    q, rng = complete(pgm), np.random.default_rng(0)
    J = jnp.asarray(np.eye(2) * rng.integers(0, 2, size=(40, 1, 1)) * 4.0)
    h = (J @ jnp.asarray(2 * rng.normal(size=(40, 2, 1))))[..., 0]
    infer = lambda pgm: pgm.infer(expfam.moments(q), Gaussian(J, h), jnp.ones(40, bool))  # noqa: E731
    steepest = []
    for _ in range(5):
        weights = jax.tree.map(lambda a: jnp.asarray(0.6 * rng.normal(size=a.shape)), pgm.ordinary)
        bent = dataclasses.replace(pgm, ordinary=weights)
        found = compiled(infer)(bent)
        slopes = _nonlinear.expansion(weights.x, found.mean(), None).slope
        steepest.append(np.linalg.norm(slopes, 2, (1, 2)).max())
        assert found.residual < 0.1
    assert max(steepest) > 1.5


def test_float32_is_close_to_float64(x64, compiled):
    pgm = bending(GRAPHS["alone"]((3,)))
    q, rng = complete(pgm), np.random.default_rng(1)
    psi = Gaussian(jnp.asarray(np.eye(2) * rng.random((6, 1, 1)) * 9), jnp.asarray(3 * rng.normal(size=(6, 2))))
    x, mask = jnp.asarray(rng.normal(size=(6, 2))), jnp.arange(6) < 5

    def numbers(pgm, q, psi, x):
        found = pgm.infer(expfam.moments(q), psi, mask)
        return found.kl, found.mean(), found.gap(x)

    exact = compiled(numbers)(pgm, q, psi, x)
    single = lambda tree: jax.tree.map(lambda a: np.asarray(a, np.float32), tree)  # noqa: E731
    solve = functools.partial(fixed_point, tolerance=1e-5, max_iterations=300, free_steps=300)
    pgm = dataclasses.replace(pgm, ordinary=single(pgm.ordinary), prior=single(pgm.prior), solve=solve)
    with jax.enable_x64(False):
        found = compiled(numbers)(*jax.tree.map(jnp.asarray, (pgm, *single((q, psi, x)))))
    for a, b in zip(found, exact, strict=True):
        assert a.dtype == np.float32
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


# --- simulation ---------------------------------------------------------------------------------------------------


def test_a_simulation_follows_the_network(x64):
    """Without noise, x_t = W (x_t-1, u_t, 1) + g(x_t-1, u_t), also where it goes on from a start."""
    pgm = bending(graph(x=Dynamics(2, inputs=1, hidden=(3,))))
    theta = jax.jit(lambda q: expfam.sample(q, key=jax.random.key(0)))(complete(pgm))
    theta = theta._replace(x=type(theta.x)(*(part._replace(sqrt=0 * part.sqrt) for part in theta.x)))
    u = np.random.default_rng(0).normal(size=(6, 1))
    go = jax.jit(lambda start, u: pgm.simulate(theta, 3, key=jax.random.key(1), start=start, inputs=u))
    first = go(None, jnp.asarray(u[:3]))
    x = np.concatenate([first.x, go(first, jnp.asarray(u[3:])).x])
    W, g = np.asarray(theta.x.dynamics.W), jax.tree.map(np.asarray, pgm.ordinary.x)
    for t in range(1, 6):
        v = np.r_[x[t - 1], u[t]]
        expected = W @ np.r_[v, 1] + g.out @ np.tanh(g.weights[0] @ v + g.offsets[0])
        np.testing.assert_allclose(x[t], expected, atol=1e-10)


# --- a model ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    """A model of a recording with gaps, in windows, and the recording."""
    y = np.cumsum(np.random.default_rng(0).normal(size=(60, 3)), 0)
    y[10:14], y[30, 1] = np.nan, np.nan
    options = {"hidden": (), "steps": 3, "warmup_steps": 1, "window": 30, "held_out": 0.0, "latent_dim": 2}
    model = list(svae.fit(svae.make((3,), model="nlds", **options), [y]))[-1].model
    return model, y


def test_it_is_fitted_saved_and_forecast(fitted, tmp_path):
    model, y = fitted
    assert np.abs(model.pgm.ordinary.x.out).max() > 0
    svae.save(model, tmp_path / "m")
    again = svae.load_model(tmp_path / "m")
    asked = {"horizon": 4, "samples": 3, "key": jax.random.key(0)}
    ahead = [svae.forecast(m, [y[:40]], **asked).samples[0] for m in (model, again)]
    np.testing.assert_array_equal(ahead[0], ahead[1])
    assert np.isfinite(ahead[0]).all()


@pytest.mark.slow
def test_it_answers_questions(fitted):
    again, y = fitted
    assert np.isfinite(svae.score(again, [y], key=jax.random.key(1), importance_samples=2).importance_bound)
    assert np.isfinite(svae.impute(again, [y], key=jax.random.key(2), samples=2).frames[0]).all()
    assert np.isfinite(svae.generate(again, 20, key=jax.random.key(3)).samples).all()


def test_it_is_in_a_file_and_says_what_it_is():
    config = Config.from_toml('[latent.x]\nblock = "dynamics"\ndimensions = 2\nhidden = [8, 4]\n')
    pgm = pgm_of(Config.from_toml(config.to_toml()))
    assert pgm.node("x").block == Dynamics(2, hidden=(8, 4))
    assert hash(config) == hash(Config.from_toml(config.to_toml()))
    assert pgm.title == "a nonlinear dynamical system" and not pgm.conjugate
    assert graph(z=Markov(2), x=Dynamics(2, given="z", hidden=(3,))).title == "a switching nonlinear dynamical system"


@pytest.mark.parametrize("hidden", [3, [0], [2.5], "8", [True], ["8"], -1])
def test_layers_are_whole_widths(hidden):
    with pytest.raises((ConfigError, GraphError), match=r"hidden of x|x: hidden of Dynamics") as refused:
        pgm_of(Config.make({"latent": {"x": {"block": "dynamics", "dimensions": 2, "hidden": hidden}}}))
    assert "\n" not in str(refused.value)
