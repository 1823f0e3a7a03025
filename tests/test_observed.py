"""A latent that is the frame itself: the plane against dense Gaussians, an AR-HMM by enumeration, every verb."""

import itertools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

import svae
from svae import ConfigError, expfam
from svae.expfam import Dirichlet
from svae.fitting.initialize import at_pca, pca_for
from svae.fitting.prepare import prepare
from svae.nets import SeenFrame, SeenLatent, as_it_is, plane_at
from svae.nets import plane as plane_room
from svae.pgm import Dynamics, GraphError, Markov, Normal, graph

T, P, K = 5, 2, 2


def of_rank(D: int, zero: int = 0):
    """A plane of D dimensions in 4, the last `zero` of them of no size."""
    rng = np.random.default_rng(D)
    U = np.linalg.qr(rng.normal(size=(4, D)))[0]
    scale = np.linspace(2.0, 0.5, D) * (np.arange(D) < D - zero)
    return plane_at(U * scale, rng.normal(size=4), np.full(4, 0.1))


@pytest.mark.parametrize("plane", [as_it_is, of_rank, lambda D: of_rank(D, 1)], ids=["itself", "plane", "flat"])
def test_potential_and_density_of_a_frame_with_gaps_are_the_dense_gaussian(plane, x64):
    plane = plane(4, 4) if plane is as_it_is else plane(2)
    U, scale, b, sd = (np.asarray(a) for a in (plane.U, plane.scale, plane.b, plane.sd))
    W, R = U * scale, sd**2 * (np.eye(4) - U @ U.T) + (U * np.asarray(plane.within) ** 2) @ U.T
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, W.shape[1]))
    y = x @ W.T + b + rng.multivariate_normal(np.zeros(4), R, size=6)
    for t, gaps in enumerate([[], [0], [1, 3], [0, 1, 2], [2]]):
        y[t, gaps] = np.nan
    y[5] = np.nan
    mask = jnp.ones(6, bool)
    psi, density = (
        SeenLatent(plane)(jnp.asarray(y), mask),
        SeenFrame(plane, (4,)).log_prob(jnp.asarray(x), jnp.asarray(y)),
    )
    for t in range(6):
        o = np.flatnonzero(np.isfinite(y[t]))
        inverse = np.linalg.inv(R[np.ix_(o, o)]) if len(o) else np.zeros((0, 0))
        J, h = W[o].T @ inverse @ W[o], W[o].T @ inverse @ (y[t, o] - b[o])
        np.testing.assert_allclose(psi.J[t], J, atol=1e-9 * (1 + np.abs(J).max()))
        np.testing.assert_allclose(psi.h[t], h, atol=1e-9 * (1 + np.abs(h).max(initial=0)))
        dense = multivariate_normal(W[o] @ x[t] + b[o], R[np.ix_(o, o)]).logpdf(y[t, o]) if len(o) else 0.0
        np.testing.assert_allclose(density[t], dense, rtol=1e-9, atol=1e-9)


def an_ar_hmm(monkeypatch, sure: float):
    """A model whose x is the frame, with a generic q(theta), and a recording; `sure` is the noise that is left."""
    monkeypatch.setattr(plane_room, "SURE", sure)
    model = svae.make((P,), model="arhmm", states=K, latent_dim=P)
    rng = np.random.default_rng(1)
    latents = [np.cumsum(0.6 * rng.normal(size=(20, P)), 0) for _ in range(2)]
    q = model.pgm.initialize(latents, [rng.dirichlet(np.ones(K), size=20) for _ in latents])
    return eqx.tree_at(lambda m: m.q, model, q), jnp.asarray(latents[0][:T])


def scores(q, y):
    """E log p(first state), of transitions, and of every frame by state, as inner products with the statistics."""
    stats = expfam.expected_stats(q)
    first, steps = stats.x.first, stats.x.dynamics

    def of_frame(t, k):
        if t == 0:
            quadratic = jnp.sum(first.xxT[k] * jnp.outer(y[0], y[0])) + first.x[k] @ y[0] + first.n[k] + first.nu[k]
        else:
            u = jnp.append(y[t - 1], 1.0)
            quadratic = jnp.sum(steps.uuT[k] * jnp.outer(u, u)) + jnp.sum(steps.uxT[k] * jnp.outer(u, y[t]))
            quadratic = quadratic + jnp.sum(steps.xxT[k] * jnp.outer(y[t], y[t])) + steps.nu[k]
        return float(quadratic)

    frames = np.array([[of_frame(t, k) for k in range(K)] for t in range(T)])
    return np.asarray(stats.z.init.counts), np.asarray(stats.z.transitions.counts), frames - P / 2 * np.log(2 * np.pi)


class Paths(NamedTuple):
    log_z: float  # log sum over paths of exp E log p(y, z | theta)
    states: np.ndarray
    pairs: np.ndarray  # (K, K), of successive states


def by_enumeration(q, y):
    init, rows, frames = scores(q, y)
    total = {
        z: init[z[0]] + sum(rows[a, b] for a, b in itertools.pairwise(z)) + sum(frames[t, k] for t, k in enumerate(z))
        for z in itertools.product(range(K), repeat=T)
    }
    log_z = np.logaddexp.reduce(list(total.values()))
    states, pairs = np.zeros((T, K)), np.zeros((K, K))
    for z, score in total.items():
        states[np.arange(T), z] += np.exp(score - log_z)
        np.add.at(pairs, (z[:-1], z[1:]), np.exp(score - log_z))
    return Paths(log_z, states, pairs)


SURE = 1e-5


def plain(q, y):
    """log p(y) of an AR-HMM with the mean parameters of a sure q(theta), all paths summed."""
    theta = jax.tree.map(np.asarray, expfam.map_families(lambda family: family.mean(), q))
    start = [multivariate_normal(W[:, 0], s @ s.T).logpdf(y[0]) for W, s in zip(*theta.x.first, strict=True)]
    of = lambda t, W, s: multivariate_normal(W @ np.append(y[t - 1], 1), s @ s.T).logpdf(y[t])  # noqa: E731
    total = np.log(theta.z.init) + start
    for t in range(1, T):
        step = [of(t, W, s) for W, s in zip(*theta.x.dynamics, strict=True)]
        total = np.logaddexp.reduce(total[:, None] + np.log(theta.z.transitions), 0) + step
    return np.logaddexp.reduce(total)


def test_bound_and_natural_gradient_are_those_of_an_ar_hmm(x64, monkeypatch):
    """log Z by enumeration of all paths; and prior - q + the statistics of the frame itself, states by enumeration."""
    model, y = an_ar_hmm(monkeypatch, SURE)
    sharp = expfam.from_natural(model.q, jax.tree.map(lambda eta: 1e9 * eta, expfam.natural(model.q)))

    @eqx.filter_jit
    def run(q):
        at = eqx.tree_at(lambda m: m.q, model, q)
        bound, gradient = svae.value_and_grad(at, y[None], jnp.ones((1, T), bool), num_data=1, key=jax.random.key(0))
        return bound.log_likelihood - bound.local_kl, expfam.uncentre(q, gradient.q)

    for q in (model.q, sharp):
        paths = by_enumeration(q, y)
        bound, natural = run(q)
        np.testing.assert_allclose(bound, paths.log_z, rtol=1e-8)
        post = model.pgm.initialize([np.asarray(y)], [paths.states])
        rows = Dirichlet(model.pgm.prior.z.transitions.counts + paths.pairs)
        post = post._replace(z=post.z._replace(transitions=rows))
        wanted = jax.tree.map(jnp.subtract, expfam.natural(post), expfam.natural(q))
        for one, other in zip(jax.tree.leaves(natural), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7 * (1 + np.abs(other).max()))
    np.testing.assert_allclose(bound, plain(sharp, np.asarray(y)), rtol=1e-6)


def test_missing_entries_are_integrated_out(x64, monkeypatch):
    """Without states nothing is approximate: the bound of a sure q(theta) is the density of what is seen."""
    monkeypatch.setattr(plane_room, "SURE", SURE)
    model = svae.make((P,), pgm=graph(x=Dynamics(P, observed=True)))
    rng = np.random.default_rng(3)
    q = model.pgm.initialize([np.cumsum(0.6 * rng.normal(size=(30, P)), 0)], [None])
    q = expfam.from_natural(q, jax.tree.map(lambda eta: 1e9 * eta, expfam.natural(q)))
    theta = jax.tree.map(np.asarray, expfam.map_families(lambda family: family.mean(), q)).x
    (m, s), (W, r) = (theta.first.W[:, 0], theta.first.sqrt), theta.dynamics
    mean, cov = np.zeros((T, P)), np.zeros((T, P, T, P))
    mean[0], cov[0, :, 0] = m, s @ s.T
    for t in range(1, T):
        A = W[:, :P]
        mean[t] = A @ mean[t - 1] + W[:, P]
        cov[t, :, :t] = np.einsum("ij,jsk->isk", A, cov[t - 1, :, :t])
        cov[:t, :, t] = np.transpose(cov[t, :, :t], (1, 2, 0))
        cov[t, :, t] = A @ cov[t - 1, :, t - 1] @ A.T + r @ r.T
    y = rng.multivariate_normal(mean.ravel(), cov.reshape(T * P, -1)).reshape(T, P)
    y[1, 0], y[3] = np.nan, np.nan
    seen = np.isfinite(y).ravel()
    dense = multivariate_normal(mean.ravel()[seen], cov.reshape(T * P, -1)[np.ix_(seen, seen)]).logpdf(y.ravel()[seen])
    at = eqx.tree_at(lambda m: m.q, model, q)
    bound = eqx.filter_jit(svae.elbo)(
        at, jnp.asarray(y)[None], jnp.ones((1, T), bool), num_data=1, key=jax.random.key(0)
    )
    np.testing.assert_allclose(bound.log_likelihood - bound.local_kl, dense, rtol=1e-6)


def test_what_asks_for_networks_is_refused():
    with pytest.raises(ConfigError, match="likelihood is of networks"):
        svae.make((3,), model="arhmm", latent_dim=2, likelihood="poisson")
    with pytest.raises(ConfigError, match="latent_dim can be 3 at most"):
        svae.make((3,), model="arhmm", latent_dim=4)
    with pytest.raises(ConfigError, match="leave recognize= and observe= out"):
        svae.make((3,), model="arhmm", latent_dim=2, recognize=SeenLatent(as_it_is(3, 2)))
    with pytest.raises(GraphError, match=r"x is observed, the frame itself, .* leave out w"):
        graph(z=Markov(2), x=Dynamics(2, given="z", observed=True), w=Normal(1, given="z"))


def test_plane_of_a_fit_is_that_of_its_components():
    """Scores on the plane are the latents, and what is left is noise around it."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 4)) + 0.2 * rng.normal(size=(400, 4))
    model = svae.make((4,), model="arhmm", states=2, latent_dim=2)
    model = at_pca(model, pca_for(model, y))
    plane = model.observe.plane
    np.testing.assert_allclose(plane.sd, 0.2, rtol=0.05)
    np.testing.assert_allclose(plane.U.T @ plane.U, np.eye(2), atol=1e-5)
    psi = model.recognize(jnp.asarray(y, jnp.float32), jnp.ones(400, bool))
    x = np.linalg.solve(psi.J, psi.h[..., None])[..., 0]
    np.testing.assert_allclose(x.std(0), 1, rtol=1e-3)
    np.testing.assert_allclose(x, (y - y.mean(0)) @ np.asarray(plane.U) / np.asarray(plane.scale), atol=2e-3)


def test_data_choose_the_dimensions_and_a_model_is_saved(tmp_path):
    rng = np.random.default_rng(0)
    y = np.cumsum(rng.normal(size=(60, 3)), 0)
    y[5, 1] = np.nan
    model = svae.model_for(y, model="arhmm", states=2, steps=2, batch_size=1)
    assert (model.config.latent_dim, model.config.warmup_steps) == (3, 0)
    model = prepare(model, y)[0]
    model = at_pca(model, pca_for(model, y))
    np.testing.assert_array_equal(model.observe.plane.U, np.eye(3))
    svae.save(model, tmp_path / "model")
    again = svae.load_model(tmp_path / "model")
    x = svae.infer(again, y).mean[0]
    shown = (y - np.asarray(again.scaling.mean)) / np.asarray(again.scaling.scale)
    seen = np.isfinite(y)
    np.testing.assert_allclose(x[seen], shown[seen], atol=1e-3)
    assert np.isfinite(x).all()
