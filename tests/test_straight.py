"""Networks that begin as their linear map and stay it for a while, and a certainty that follows the noise."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import svae
from svae.fitting.updates import held_straight, networks
from svae.nets import conjugate, make_observation, make_recognition, surer, with_linear_map, with_noise, with_precision

P, D = 5, 2


@pytest.mark.parametrize("precision", ["diagonal", "full"])
def test_the_certainty_stays_that_of_the_exact_posterior_when_the_noise_changes(precision):
    """Of noise that shrinks alike in all entries J = W'W / sd^2, whatever W; of a diagonal J whatever the noise."""
    rng = np.random.default_rng(0)
    W, b = jnp.asarray(rng.normal(size=(P, D))), jnp.zeros(P)
    kind = {"network": "residual", "hidden": (4,)}
    shape = make_observation((P,), D, likelihood="gaussian", variance="learned", key=jax.random.key(0), **kind)
    old = with_noise(with_linear_map(shape, W, b), jnp.full(P, 0.3))
    sd = jnp.full(P, 0.1) if precision == "full" else jnp.asarray(rng.uniform(0.02, 0.9, P))
    new = with_noise(old, sd)
    net = make_recognition((P,), D, precision=precision, missing=False, key=jax.random.key(1), **kind)
    net = with_precision(with_linear_map(net, W, b), W.T @ W / 0.09)
    y, mask = jnp.asarray(rng.normal(size=(1, P))), jnp.ones(1, bool)
    exact = conjugate(eqx.tree_at(lambda o: o.head, new, None))(y, mask).J[0]
    exact = exact if precision == "full" else jnp.diag(jnp.diag(exact))
    np.testing.assert_allclose(surer(old, new, net)(y, mask).J[0], exact, rtol=2e-3, atol=1e-3)


def test_noise_that_stays_leaves_every_bit():
    kind = {"network": "residual", "hidden": (4,)}
    observe = make_observation((P,), D, likelihood="gaussian", variance="learned", key=jax.random.key(0), **kind)
    net = make_recognition((P,), D, precision="diagonal", missing=False, key=jax.random.key(1), **kind)
    same = jax.tree.map(jnp.array_equal, *(eqx.filter(n, eqx.is_array) for n in (net, surer(observe, observe, net))))
    assert all(jax.tree.leaves(same))


def test_a_recognition_of_ones_own_is_left_alone():
    assert surer(None, None, "own") == "own"


def bent(model):
    """How far the networks are from their linear maps, at a few random points."""
    x = jax.random.normal(jax.random.key(0), (20, D))
    y = jax.random.normal(jax.random.key(1), (20, P))
    mean = jax.vmap(model.observe.linear)(x)
    psi = model.recognize(y, jnp.ones(20, bool))
    guess = jnp.linalg.solve(psi.J, psi.h[..., None])[..., 0]
    straight = (y - model.recognize.linear.b[None]) @ model.recognize.linear.V.T
    alike = jnp.ptp(jnp.diagonal(psi.J, axis1=1, axis2=2), 0)
    return [float(jnp.max(jnp.abs(a))) for a in (model.observe.mean(x) - mean, guess - straight, alike)]


@pytest.mark.parametrize(
    ("options", "held"),
    [({"hidden": ()}, 2), ({"network": "affine"}, 0), ({"network": "mlp"}, 0), ({"missing": True}, 1)],
)
def test_networks_without_layers_or_without_a_linear_map_can_be_held_too(options, held):
    """As many networks as have corrections are held; one that sees what is missing is free."""
    model = svae.make((P,), **{"model": "lds", "latent_dim": D, "hidden": (3,), "linear": 1.0} | options)
    mask = held_straight(model, jnp.zeros((), int))
    assert (float(jnp.min(mask)) == 0) == (held > 0)
    assert mask.ndim == 0 or len(mask) == sum(leaf.size for leaf in jax.tree.leaves(networks(model)))


def test_networks_are_linear_for_the_share_of_the_steps_and_then_bend():
    y = svae.data.switching_rotations(bouts=4, bout_length=25, seed=0).y @ np.random.default_rng(0).normal(size=(2, P))
    options = {"model": "lds", "latent_dim": D, "hidden": (8,), "steps": 6, "warmup_steps": 2, "learning_rate": 0.01}
    for step in svae.fit(svae.make((P,), linear=0.5, **options), y.astype(np.float32)):
        if step.phase == "fit":
            free = step.step - 2 > 3
            assert all((away > 1e-3) == free for away in bent(step.model)), step.step
    assert free
