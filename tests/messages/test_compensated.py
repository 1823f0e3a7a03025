"""Compensated sums against float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from svae.messages import compensated_sum


@pytest.mark.parametrize("n", [1, 2, 7, 1000, 1_000_000])
def test_a_million_terms_of_like_sign(n):
    x = np.random.default_rng(0).exponential(size=n).astype(np.float32) + np.float32(40)
    exact = x.astype(np.float64).sum()
    for f in (compensated_sum, jax.jit(compensated_sum)):
        assert abs(float(f(jnp.asarray(x))) / exact - 1) < 1e-7


def test_axes_gradient_and_emptiness():
    x = jnp.arange(12.0).reshape(3, 4)
    np.testing.assert_allclose(compensated_sum(x, axis=1), x.sum(1))
    np.testing.assert_array_equal(jax.grad(lambda x: compensated_sum(compensated_sum(x)))(x), np.ones((3, 4)))
    assert compensated_sum(jnp.zeros((0, 2))).shape == (2,)
