"""For every latent model: the gradient in the expected statistics is Fisher⁺ times the gradient in η (Prop. 4.2)."""

import dataclasses

import equinox as eqx
import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from svae import elbo, expfam, value_and_grad
from svae.bound import flat_gradient

MEAN_FIELD = ("gmm", "hmm", "slds")
STEP = 3e-3
models = pytest.mark.parametrize("name", ["gaussian", "gmm", "hmm", "lds", "slds"])


def relative(found, expected) -> float:
    return float(np.linalg.norm(np.subtract(found, expected)) / np.linalg.norm(expected))


def with_eta(model, eta):
    """The model at the plain natural parameters eta, a flat vector."""
    unravel = ravel_pytree(expfam.natural(model.q))[1]
    return dataclasses.replace(model, q=expfam.from_natural(model.q, unravel(eta)))


def bound(model, eta, y, mask):
    return elbo(with_eta(model, eta), y, mask, num_data=7, key=jax.random.key(1)).bound


def gradients(model, eta, y, mask):
    """Algorithm 1, and autodiff of the bound's value through from_natural, the moments and the evidence."""
    algorithm_1 = value_and_grad(model, y, mask, num_data=7, key=jax.random.key(1))
    return algorithm_1, jax.grad(lambda eta: bound(model, eta, y, mask))(eta)


def fisher(model, eta):
    return jax.hessian(lambda eta: expfam.log_partition(with_eta(model, eta).q))(eta)


def richardson(function, h: float):
    """df/ds at 0 by central differences at h and h / 2, extrapolated: the error is O(h^4)."""
    central = lambda h: (function(h) - function(-h)) / (2 * h)  # noqa: E731
    return (4 * central(h / 2) - central(h)) / 3


@models
def test_natural_gradient_is_fisher_inverse_times_the_gradient_of_the_bound(name, example, compiled):
    """Through implicit and unrolled fixed points; Fisher⁺ because η is redundant (its matrices are symmetric)."""
    model, y, mask = example(name)
    eta = ravel_pytree(expfam.natural(model.q))[0]
    networks = lambda m: (m.recognize, m.observe)  # noqa: E731
    nets, rest = eqx.partition(networks(model), eqx.is_inexact_array)
    with_networks = lambda nets: eqx.tree_at(networks, model, eqx.combine(nets, rest))  # noqa: E731
    value = compiled(lambda eta, nets: bound(with_networks(nets), eta, y, mask))
    by_differences = np.array([richardson(lambda s, e=e: value(eta + s * e, nets), STEP) for e in np.eye(len(eta))])

    F = np.asarray(compiled(fisher)(model, eta))
    inverse = np.linalg.pinv(F, rcond=1e-12, hermitian=True)
    unrolled = example(name, "unrolled_sweeps").model
    (found, gradient), by_autodiff = compiled(gradients)(unrolled, eta, y, mask)
    results = [(found, gradient)]
    if name in MEAN_FIELD:
        results.append(compiled(lambda *a: value_and_grad(*a, num_data=7, key=jax.random.key(1)))(model, y, mask))
    for found, gradient in results:
        natural = ravel_pytree(expfam.uncentre(model.q, gradient.q))[0]
        assert found.residual <= 1e-12
        assert relative(natural, inverse @ by_differences) < 1e-6
        assert relative(F @ natural, by_differences) < 1e-6
        assert relative(natural, inverse @ by_autodiff) < 1e-8
        assert relative(F @ natural, by_autodiff) < 1e-8
        assert relative(value(eta, nets), found.bound) < 1e-12
        check_network_gradients(lambda nets: value(eta, nets), nets, (gradient.recognize, gradient.observe))

    flat = compiled(lambda q, natural: expfam.uncentre(q, flat_gradient(q, natural)))(model.q, gradient.q)
    assert relative(ravel_pytree(flat)[0], F @ natural) < 1e-10


def check_network_gradients(value, nets, gradient):
    """Derivatives in three random directions of all weights of both networks."""
    flat, unravel = ravel_pytree(nets)
    gradient = ravel_pytree(eqx.filter(gradient, eqx.is_inexact_array))[0]
    for seed in range(3):
        direction = jax.random.normal(jax.random.key(seed), flat.shape)
        by_differences = richardson(lambda s, d=direction: value(unravel(flat + s * d)), 1e-3)
        assert relative(gradient @ direction, by_differences) < 1e-6
