"""Prefixes of products that do not commute, against one product after another."""

import jax.numpy as jnp
import numpy as np
import pytest

from svae.messages.algebra.prefix import prefixes


def product(first, then):
    return {"A": jnp.matmul(then["A"], first["A"]), "b": jnp.einsum("...ij,...j", then["A"], first["b"]) + then["b"]}


@pytest.mark.parametrize("T", [1, 2, 3, 7, 8, 33, 200])
def test_prefixes_are_the_products_one_after_another(x64, T):
    rng = np.random.default_rng(T)
    A, b = rng.normal(size=(T, 3, 3)) * 0.7, rng.normal(size=(T, 3))
    found = prefixes(product, {"A": jnp.asarray(A), "b": jnp.asarray(b)})
    total, shift = np.eye(3), np.zeros(3)
    for t in range(T):
        total, shift = A[t] @ total, A[t] @ shift + b[t]
        np.testing.assert_allclose(found["A"][t], total, atol=1e-12)
        np.testing.assert_allclose(found["b"][t], shift, atol=1e-12)


def test_products_from_the_other_side_and_of_maps():
    maps = jnp.asarray(np.random.default_rng(0).integers(0, 4, (30, 4)))
    found = prefixes(lambda first, then: jnp.take_along_axis(then, first, -1), maps)
    state = np.arange(4)
    for t in range(30):
        state = np.asarray(maps)[t][state]
        np.testing.assert_array_equal(found[t], state)
