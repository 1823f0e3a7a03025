"""Dynamics that are the same at every step: one entry of A, b and Q_sqrt stands for T-1, in values and gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from svae.messages import GaussianChain, kernels
from svae.messages.gaussian import parallel as gaussian_parallel
from svae.messages.gaussian import sequential as gaussian_sequential
from svae.messages.gaussian.chain import every_step
from tests.messages import oracles
from tests.messages.test_gaussian import on_device

FORMS = [gaussian_sequential, gaussian_parallel]
FAST = []  # forms that read one entry once, and sum its cotangent themselves
ORACLE = gaussian_sequential
if kernels.status().serve:
    from svae.messages.gaussian import compiled as gaussian_compiled

    FORMS.append(gaussian_compiled)
    FAST.append(gaussian_compiled)
    ORACLE = gaussian_compiled  # which need no time to compile
needs_kernels = pytest.mark.skipif(not kernels.status().serve, reason=kernels.status().reason)


def chain_of(seed, T, D):
    """A chain whose dynamics have one entry, in float64 numpy."""
    chain = oracles.gaussian_chain(np.random.default_rng(seed), max(T, 2), D, missing=0.3)
    return GaussianChain(*chain[:2], *(x[:1] for x in chain[2:5]), chain.J[:T], chain.h[:T])


def symmetric(chain):
    return chain._replace(J=(chain.J + jnp.swapaxes(chain.J, -1, -2)) / 2)


def everything(form):
    """Smoothed and filtered moments of a form."""

    def run(chain):
        return form.smooth(symmetric(chain)), form.filter(symmetric(chain))

    return run


def pulled(f, chain):
    """f(chain) and the cotangent that its cosine pulls back."""
    q, pull = jax.vjp(f, chain)
    return q, pull(jax.tree.map(jnp.cos, q))[0]


def assert_close(got, want, close):
    """To `close` of the largest entry of each array."""
    scale = jax.tree.map(lambda x: 1 + np.max(np.abs(x), initial=0), want)
    jax.tree.map(lambda a, b, s: np.testing.assert_allclose(a / s, b / s, atol=close), got, want, scale)


@pytest.mark.parametrize("form", FORMS)
def test_one_entry_is_the_same_at_every_step(x64, form):
    chain = on_device(chain_of(0, 3, 2))
    got = jax.jit(lambda c: pulled(form.smooth, c))(chain)
    want = jax.jit(lambda c: pulled(form.smooth, c))(every_step(chain))
    summed = (jnp.sum(x, 0, keepdims=True) for x in want[1][2:5])
    assert_close(got, (want[0], GaussianChain(*want[1][:2], *summed, *want[1][5:])), 1e-12)


@pytest.mark.parametrize("form", FAST)
@pytest.mark.parametrize("T", [1, 2, 3])
def test_few_steps(x64, T, form):
    """T = 1 has no transition, T = 2 has one entry both ways."""
    chain = on_device(chain_of(T, T, 3))
    got = jax.jit(lambda c: pulled(everything(form), c))(chain)
    want = jax.jit(lambda c: pulled(lambda c: everything(ORACLE)(every_step(c)), c))(chain)
    assert_close(got, want, 1e-11)
    mean, _, log_z = oracles.dense(jax.tree.map(np.asarray, every_step(chain)))
    assert_close((got[0][0].mean, got[0][1].log_z.sum()), (mean, log_z), 1e-10)


AXES = {
    "shared by the batch": GaussianChain(0, 0, None, None, None, 0, 0),
    "of each sequence": GaussianChain(0, 0, 0, 0, 0, 0, 0),
    "one shared, one not": GaussianChain(0, 0, None, 0, 0, 0, 0),
}


@needs_kernels
@pytest.mark.parametrize("dtype, close", [(np.float32, 1e-4), (np.float64, 1e-11)])
@pytest.mark.parametrize(
    "B, T, D, axes",
    [
        (5, 3, 1, "of each sequence"),
        (18, 3, 5, "one shared, one not"),
        (1, 34, 10, "of each sequence"),
        (17, 34, 10, "shared by the batch"),
        (9, 3, 10, "of each sequence"),
        (5, 3, 16, "shared by the batch"),
        (5, 3, 40, "shared by the batch"),
    ],
)
def test_a_batch_of_them_is_the_batch_at_every_step(x64, B, T, D, axes, dtype, close):
    """Alone and in lanes; more than 32 steps are more than one block of a summed gradient."""
    axes = AXES[axes]
    stacked = jax.tree.map(lambda *x: np.stack(x), *(chain_of(i, T, D) for i in range(B)))
    chains = GaussianChain(*(x[0] if axis is None else x for x, axis in zip(stacked, axes, strict=True)))
    run = everything(gaussian_compiled)
    each, apart = jax.vmap(run, (axes,)), jax.vmap(lambda c: run(every_step(c)), (axes,))
    got, want = (jax.jit(lambda c, f=f: pulled(f, c))(on_device(chains, dtype)) for f in (each, apart))
    assert_close(got, want, close)


@pytest.mark.parametrize("form", FAST)
def test_roots_of_shared_noise_need_not_be_triangular(x64, form):
    chain = on_device(chain_of(0, 5, 3))
    turn = jnp.linalg.qr(jax.random.normal(jax.random.key(0), (3, 3)))[0]
    got, want = (jax.jit(form.smooth)(c) for c in (chain._replace(Q_sqrt=chain.Q_sqrt @ turn), chain))
    assert_close(got, want, 1e-10)
