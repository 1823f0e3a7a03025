"""One step of a mixture of regressions: kernels against pure JAX, values and derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from svae.messages import kernels, mixture

pytestmark = pytest.mark.skipif(not kernels.status().serve, reason=kernels.status().reason)
SIZES = [(10, 11, 37), (3, 4, 5), (2, 1, 20)]  # D, U, steps
PRECISIONS = [(jnp.float64, 1e-12), (jnp.float32, 2e-5)]


def drawn(rng, dtype, *shapes):
    return [jnp.asarray(rng.normal(size=shape), dtype) for shape in shapes]


def pull_back(function, ct, *operands):
    """A value and the derivatives of <ct, value>, in one program."""

    @jax.jit
    def both(ct, *operands):
        value, pull = jax.vjp(function, *operands)
        return value, pull(ct)

    return both(ct, *operands)


def symmetric(d, D):
    """The cotangent of [P, H, G] with that of P made symmetric: P is."""
    P = d[:, : D * D].reshape(-1, D, D)
    return d.at[:, : D * D].set(((P + jnp.swapaxes(P, 1, 2)) / 2).reshape(len(d), -1))


def close(found, wanted, tolerance):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert jnp.max(jnp.abs(a - b)) <= tolerance * max(1.0, float(jnp.max(jnp.abs(b))))


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
@pytest.mark.parametrize(("D", "U", "N"), SIZES)
def test_blend_is_pure_jax(D, U, N, dtype, tolerance, x64):
    rng = np.random.default_rng(0)
    A, H, G = (rng.normal(size=(N, *shape)) for shape in ((D, D), (D, U), (U, U)))
    P = A @ np.swapaxes(A, 1, 2) + np.eye(D)
    rows = jnp.asarray(np.concatenate([a.reshape(N, -1) for a in (P, H, G)], -1), dtype)
    pulled = []
    for form in (mixture._blend, mixture.blend_pure):
        ct = mixture.Blend(*drawn(np.random.default_rng(1), dtype, (N, D, U), (N, D, D), (N, U, U), (N,)))
        value, (d,) = pull_back(jax.vmap(lambda row, form=form: form(row, D)), ct, rows)
        pulled.append((value, symmetric(d, D)))
    close(*pulled, tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
@pytest.mark.parametrize(("D", "U", "N"), [size for size in SIZES if size[1] == size[0] + 1])
def test_quadratic_forms_are_pure_jax(D, U, N, dtype, tolerance, monkeypatch, x64):
    rng = np.random.default_rng(0)
    half, centre, *joint = drawn(rng, dtype, (4, D + U, D + U), (D, U), (N, D), (N, D), *3 * [(N, D, D)])
    weights = drawn(rng, dtype, (N, 4))[0]
    pulled = []
    for compiled in (True, False):
        monkeypatch.setattr(mixture, "_compiled", lambda D, compiled=compiled: compiled)
        function = lambda half, *joint: mixture.quadratic(half + jnp.swapaxes(half, 1, 2), centre, *joint)  # noqa: E731
        pulled.append(pull_back(function, weights, half, *joint))
    close(*pulled, tolerance)
