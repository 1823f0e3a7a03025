"""float32 where other forms fail: slow latents, Var(x) / Q = 1e8, and latents whose mean is 10³ sd."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from svae import expfam
from svae.expfam import Gaussian
from svae.messages import fixed_point
from tests.graphs import made

D, T = 2, 40


def converged(f, node, args):
    return fixed_point(f, node, args, tolerance=1e-4, max_iterations=100)


def latents(ratio: float, mean: float, noise: float):
    """20,000 steps of variance 1 with Var(x) / Q = ratio around `mean`; in the second half the noise is larger."""
    rng = np.random.default_rng(0)
    a, x = np.sqrt(1 - 1 / ratio), np.zeros((20_000, D))
    for t in range(1, len(x)):
        x[t] = a * x[t - 1] + rng.normal(size=D) * (1 + noise * (t > 10_000)) / np.sqrt(ratio)
    states = np.eye(2)[(np.arange(len(x)) > 10_000).astype(int)]
    return x + mean, states


@pytest.mark.parametrize("name", ["lds", "slds"])
@pytest.mark.parametrize(("ratio", "mean"), [(1e8, 1.0), (1e2, 1e3)])
def test_bound_in_float32(name, ratio, mean, x64):
    """Mean and kl of 40 frames at the change of state, against float64 on the same (rounded) numbers."""
    pgm = made(name, D, 2, concentration=1.0, stickiness=1.0)
    pgm = dataclasses.replace(pgm, solve=converged)
    x, states = latents(ratio, mean, 2.0)
    q = pgm.initialize([x[:10_001], x[10_001:]], [states[:10_001], states[10_001:]])
    y = x[10_000 - T // 2 : 10_000 + T // 2]
    J = np.broadcast_to(100 * np.eye(D), (T, D, D))  # the network sees x with sd 0.1
    single = lambda tree: jax.tree.map(lambda a: np.asarray(a, np.float32), tree)  # noqa: E731
    inputs = single((expfam.moments(q), Gaussian(jnp.asarray(J), jnp.asarray(100 * y))))
    found = {}
    for precise in (False, True):
        with jax.enable_x64(precise):
            moments, psi = jax.tree.map(lambda a: jnp.asarray(a, float), inputs)
            found[precise] = jax.jit(lambda m, p: pgm.infer(m, p, jnp.ones(T, bool)))(moments, psi)
    assert found[False].kl.dtype == np.float32
    kl = np.asarray(found[True].kl)
    np.testing.assert_allclose(found[False].kl[1:], kl[1:], rtol=1e-3, atol=2e-3)
    # The first state is 900 posterior sd from its prior in the second case: kl_1 errs by about 6e-8 * 900².
    np.testing.assert_allclose(found[False].kl[0], kl[0], atol=5e-2)
    distance = np.abs(np.asarray(found[False].mean(), float) - found[True].mean()) / found[True].sd()
    assert np.max(distance) < 0.02
