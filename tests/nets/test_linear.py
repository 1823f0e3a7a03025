"""The projection of a frame and the Gaussian likelihood, whose derivatives are written by hand, beside autodiff."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from svae.nets.likelihoods import gaussian_log_prob
from svae.nets.linear import Project

B, T, P, D = 3, 5, 7, 2


def drawn(missing):
    rng = np.random.default_rng(0)
    y, V, b = rng.normal(size=(B, T, P)), rng.normal(size=(D, P)), rng.normal(size=P)
    y[1, 2, missing] = np.nan
    return jnp.asarray(y), Project(jnp.asarray(V), jnp.asarray(b))


def whole(y):
    return ~jnp.any(jnp.isnan(y))


def ours(project, y):
    return jax.vmap(lambda y, every: project(jnp.nan_to_num(y), y, every), (0, None))(y, whole(y))


def plain(project, y):
    """V (y - b), by a frame at a time."""
    return jnp.where(jnp.isnan(y), 0, y - project.b[None, None]) @ project.V.T


def weighted(function, y):
    weights = jnp.asarray(np.random.default_rng(1).normal(size=(B, T, D)))
    return lambda project: jnp.sum(weights * jnp.sin(function(project, y)))


@pytest.mark.parametrize("missing", [slice(0), slice(2, 4), slice(None)], ids=["none", "some", "a whole frame"])
def test_projection_and_its_gradient_are_those_of_the_plain_formula(x64, missing):
    y, project = drawn(missing)
    np.testing.assert_allclose(jax.jit(ours)(project, y), plain(project, y), rtol=1e-12, atol=1e-13)
    found, expected = jax.jit(jax.grad(weighted(ours, y)))(project), jax.grad(weighted(plain, y))(project)
    np.testing.assert_allclose(found.V, expected.V, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found.b, expected.b, rtol=1e-12, atol=1e-13)


def entries(y, location, log_sd):
    return -0.5 * ((y - location) / jnp.exp(log_sd)) ** 2 - log_sd - 0.5 * jnp.log(2 * jnp.pi)


def test_gradients_of_the_gaussian_likelihood_are_those_of_its_entries(x64):
    rng = np.random.default_rng(0)
    y, location, log_sd = rng.normal(size=P), rng.normal(size=P), rng.normal(size=P)
    y[[1, 4]] = np.nan
    seen = ~np.isnan(y)
    expected = jax.grad(lambda *a: jnp.sum(entries(*a)), (0, 1, 2))(
        *(jnp.asarray(a[seen]) for a in (y, location, log_sd))
    )
    found = jax.grad(lambda *a: 3 * gaussian_log_prob(*a), (0, 1, 2))(*map(jnp.asarray, (y, location, log_sd)))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one[seen], 3 * other, rtol=1e-12)
        assert not np.any(one[~seen])
