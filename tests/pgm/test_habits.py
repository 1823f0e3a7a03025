"""Tables of transitions for each group: against the twin without groups, differences, closed forms and simulation."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.special import digamma, gammaln

import svae
from svae import expfam
from svae.data import Beside
from svae.expfam import Dirichlet, Gaussian
from svae.pgm import Choice, Dynamics, GraphError, Markov, Normal, from_tables, graph
from tests.pgm.test_natural_gradient import fisher, relative, richardson
from tests.pgm.test_not_conjugate import P, converged, data, random_like

GROUPS = jnp.array([1, 0], jnp.int32)


def complete(pgm, frames: int = 15):
    rng = np.random.default_rng(3)
    latents = [np.cumsum(0.6 * rng.normal(size=(frames, pgm.dimensions)), 0) for _ in range(2)]
    states = [{name: rng.dirichlet(np.full(K, 0.5), size=frames) for name, K in pgm.discrete.items()} for _ in latents]
    return pgm.initialize(latents, states, groups=[0] * 2 if pgm.groups == 1 else [0, 1])


def make_model(pgm):
    model = svae.make((P,), pgm=pgm, key=jax.random.key(0), hidden=(4,), network="residual", precision="full")
    return dataclasses.replace(model, pgm=dataclasses.replace(pgm, solve=converged), q=complete(pgm))


def two_groups():
    """A model of two groups with beta and kappa drawn at random."""
    model = make_model(graph(z=Markov(2, by="animal"), x=Dynamics(1, given="z")).for_groups(2))
    pgm = dataclasses.replace(model.pgm, ordinary=random_like(model.pgm.ordinary, 0.5))
    return dataclasses.replace(model, pgm=pgm)


def test_with_one_group_it_is_the_twin(x64, compiled):
    """kappa beta as the prior of the block without groups: the same bound, and the same gradients."""
    sizes = {"concentration": 1.5, "stickiness": 0.7}
    model = make_model(graph(z=Markov(2, by="animal", **sizes), x=Dynamics(2, given="z")).for_groups(1))
    twin = make_model(graph(z=Markov(2, **sizes), x=Dynamics(2, given="z")))
    run = compiled(lambda m, beside: svae.value_and_grad(m, *data(), num_data=7, key=jax.random.key(1), beside=beside))
    (bound, gradient), (expected, like) = run(model, Beside(group=0 * GROUPS)), run(twin, Beside())
    for a, b in zip(bound, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)
    parts = lambda g: jax.tree.leaves((g.q, g.recognize, g.observe))  # noqa: E731
    for a, b in zip(parts(gradient), parts(like), strict=True):
        np.testing.assert_allclose(a.reshape(b.shape), b, rtol=1e-8, atol=1e-8)


def test_gradients_are_those_of_the_value(x64, compiled):
    """At a fixed key: Fisher⁺ times Richardson differences in q, and plain ones in beta and kappa."""
    model, beside = two_groups(), Beside(group=GROUPS)
    flat, unravel = ravel_pytree(model.pgm.ordinary)
    eta, as_eta = ravel_pytree(expfam.natural(model.q))

    def bound(eta, flat):
        moved = dataclasses.replace(model.pgm, ordinary=unravel(flat))
        moved = dataclasses.replace(model, q=expfam.from_natural(model.q, as_eta(eta)), pgm=moved)
        return svae.elbo(moved, *data(), num_data=7, key=jax.random.key(1), beside=beside)

    value = compiled(lambda eta, flat: bound(eta, flat).bound)
    by_q = np.array([richardson(lambda s, e=e: value(eta + s * e, flat), 3e-3) for e in np.eye(len(eta))])
    by_flat = np.array([richardson(lambda s, e=e: value(eta, flat + s * e), 3e-3) for e in np.eye(len(flat))])
    found, gradient = compiled(
        lambda m: svae.value_and_grad(m, *data(), num_data=7, key=jax.random.key(1), beside=beside)
    )(model)
    F = np.asarray(compiled(fisher)(model, eta))
    natural = ravel_pytree(expfam.uncentre(model.q, gradient.q))[0]
    assert found.residual <= 1e-12
    assert relative(natural, np.linalg.pinv(F, rcond=1e-12, hermitian=True) @ by_q) < 1e-6
    assert relative(ravel_pytree(gradient.ordinary)[0], by_flat) < 1e-6
    assert np.abs(gradient.ordinary.z.shape).min() > 1e-3 and abs(gradient.ordinary.z.size) > 1e-3


def test_the_global_kl_is_that_of_every_group_to_what_all_share(x64, compiled):
    """By the closed form, with beta and kappa from their definition; it is not scaled by the number of recordings."""
    model = two_groups()
    run = compiled(lambda n: svae.elbo(model, *data(), num_data=n, key=jax.random.key(1), beside=Beside(group=GROUPS)))
    own, habits = jax.tree.map(np.asarray, (model.q.z, model.pgm.ordinary.z))
    beta = np.exp(np.log([0.5, 0.5]) + habits.shape)
    p = np.exp(habits.size) * beta / beta.sum(1, keepdims=True)  # kappa_0 = 1
    kl = sum(_kl(q, row) for group in own.transitions.counts for q, row in zip(group, p, strict=True))
    kl += _kl(own.init.counts, np.array([0.5, 0.5])) + float(expfam.kl(model.q.x, model.pgm.prior.x))
    for number in (2.0, 70.0):
        np.testing.assert_allclose(run(number).global_kl, kl, rtol=1e-9)
    penalty = sum(np.sum(a**2) for a in habits) / 18
    np.testing.assert_allclose(run(7.0).weights_kl, float(model.observe.kl()) + penalty, rtol=1e-9)


def _kl(q, p):
    inside = gammaln(q.sum()) - gammaln(q).sum() - gammaln(p.sum()) + gammaln(p).sum()
    return inside + (q - p) @ (digamma(q) - digamma(q.sum()))


def test_a_group_takes_its_own_table_and_a_new_one_the_prior(x64, compiled):
    """Inference of group g is that of the graph without groups whose q(pi) is g's; of one never seen, the prior's."""
    model = two_groups()
    twin = dataclasses.replace(graph(z=Markov(2), x=Dynamics(1, given="z")), solve=converged)
    rng = np.random.default_rng(0)
    psi = Gaussian(jnp.asarray(1 + rng.random((5, 1, 1))), jnp.asarray(2 * rng.normal(size=(5, 1))))
    mask, rows = jnp.ones(5, bool), model.pgm.believed.z.transitions.counts[0]
    tables = [*model.q.z.transitions.counts, rows, rows, rows]
    infer = compiled(lambda moments, group: model.pgm.infer(moments, psi, mask, group=group))
    like = compiled(lambda moments: twin.infer(moments, psi, mask))
    for group, counts in zip((0, 1, 2, 7, None), tables, strict=True):
        q = model.q._replace(z=model.q.z._replace(transitions=Dirichlet(counts)))
        found, expected = infer(expfam.moments(model.q), group), like(expfam.moments(q))
        np.testing.assert_allclose(found.kl, expected.kl, atol=1e-9)
        np.testing.assert_allclose(found.states, expected.states, atol=1e-9)


def test_densities_and_simulations_take_the_table_of_a_group(x64):
    model = two_groups()
    theta = expfam.sample(model.q, key=jax.random.key(0))
    twin = graph(z=Markov(2), x=Dynamics(1, given="z"))
    x, mask = jnp.asarray(np.random.default_rng(0).normal(size=(6, 1))), jnp.ones(6, bool)
    for g in range(2):
        own = theta._replace(z=theta.z._replace(transitions=theta.z.transitions[g]))
        expected = twin.log_prob(own, x, mask)
        np.testing.assert_allclose(model.pgm.log_prob(theta, x, mask, group=g), expected, rtol=1e-9)
        one, other = (
            p.simulate(t, 20, key=jax.random.key(2), **by)
            for p, t, by in ((model.pgm, theta, {"group": g}), (twin, own, {}))
        )
        np.testing.assert_array_equal(one.z, other.z)
    with pytest.raises(GraphError, match="known groups alone"):
        model.pgm.simulate(theta, 3, key=jax.random.key(0))
    drawn = expfam.sample(model.pgm.with_new_group(model.q), key=jax.random.key(0))
    assert model.pgm.simulate(drawn, 3, key=jax.random.key(0)).z.shape == (3,)


def test_what_groups_share_is_found_again(x64):
    """60 animals drawn from kappa and beta: the start of a fit finds both."""
    rng, kappa = np.random.default_rng(0), 20.0
    beta = np.array([[0.9, 0.1, 0.0], [0.05, 0.8, 0.15], [0.3, 0.3, 0.4]])
    pgm = graph(z=Markov(3, by="animal"), x=Normal(1, given="z")).for_groups(60)
    states = []
    for _ in range(60):
        rows = np.array([rng.dirichlet(np.maximum(kappa * row, 1e-9)) for row in beta])
        path = [0]
        for _ in range(400):
            path.append(rng.choice(3, p=rows[path[-1]]))
        states.append(np.eye(3)[path])
    latents, groups = [rng.normal(size=(401, 1)) for _ in states], list(range(60))
    q = pgm.initialize(latents, states, groups=groups)
    pgm = pgm.start(q, latents, states)
    rows = np.asarray(pgm.believed.z.transitions.counts[0])
    np.testing.assert_allclose(rows.sum(1), kappa, rtol=0.25)
    np.testing.assert_allclose(rows / rows.sum(1, keepdims=True), beta, atol=0.04)
    again = pgm.initialize(latents, states, groups=groups).z.transitions.counts
    np.testing.assert_allclose(again[3] - rows, states[3][:-1].T @ states[3][1:], atol=1e-6)


def test_the_suite_passes_and_broken_graphs_say_why():
    svae.testing.check_pgm(graph(z=Markov(2, by="animal"), x=Dynamics(1, given="z")))
    svae.testing.check_pgm(graph(m=Choice(2), z=Markov(2, given="m", by="cage"), x=Normal(1, given="z")))
    for broken, words in (
        ({"z": Markov(2, by="animal", after="x")}, "z has transitions by animal and others that lean"),
        ({"z": Markov(2, by="animal", inputs=1)}, "z has transitions by animal and others that lean"),
        ({"z": Markov(2, by="animal"), "m": Markov(2, by="cage", given="z")}, "a recording has one group"),
    ):
        with pytest.raises(GraphError, match=words):
            graph(**broken, x=Normal(1, given=tuple(broken)))
    with pytest.raises(GraphError, match="by of z must be one word"):
        from_tables({"z": {"block": "markov", "states": 2, "by": ["animal"]}})
