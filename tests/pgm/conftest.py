"""Tiny models of every kind in the registry: D = 2, K = 2, T = 4, P = 3, with a generic q(theta)."""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import svae
from svae.messages import FixedPoint, fixed_point, unrolled
from svae.pgm import _mean_field

B, T, D, K, P = 2, 4, 2, 2, 3


def implicit(f, node, args) -> FixedPoint:
    return fixed_point(f, node, args, tolerance=1e-13, max_iterations=400)


def unrolled_sweeps(f, node, args) -> FixedPoint:
    return unrolled(f, node, args, steps=120)


def one_sweep(f, node, args) -> FixedPoint:
    return unrolled(f, node, args, steps=1)


def float32_fixed_point(f, node, args) -> FixedPoint:
    return fixed_point(f, node, args, tolerance=1e-5, max_iterations=400)


SOLVERS = {f.__name__: f for f in (implicit, unrolled_sweeps, one_sweep, float32_fixed_point)}
SOLVERS["library"] = _mean_field.implicit


def with_solver(pgm, solve: str):
    """The same latent model with another fixed point."""
    return dataclasses.replace(pgm, solve=SOLVERS[solve])


class Example(NamedTuple):
    model: svae.SVAE
    y: jax.Array  # (B, T, P), with a missing entry, a missing frame and, in the second sequence, padding
    mask: jax.Array


def generic_globals(pgm):
    """q(theta) after 30 random latents in two soft clusters: every matrix is full and the states differ."""
    rng = np.random.default_rng(3)
    latents = [np.cumsum(0.6 * rng.normal(size=(15, D)), 0) for _ in range(2)]
    soft = [1 / (1 + np.exp(-2 * x[:, 0] + x[:, 1])) for x in latents]
    return pgm.initialize(latents, [np.stack([w, 1 - w], 1) for w in soft])


@functools.cache
def make_example(name: str, solve: str = "implicit") -> Example:
    options = {"model": name, "latent_dim": D, "states": K, "hidden": (4,), "network": "residual", "precision": "full"}
    model = svae.make((P,), key=jax.random.key(0), **options)
    pgm = with_solver(model.pgm, solve)
    y = np.random.default_rng(4).normal(size=(B, T, P))
    y[0, 1, 2], y[1, 1] = np.nan, np.nan
    mask = jnp.ones((B, T), bool).at[1, 3].set(False)
    return Example(dataclasses.replace(model, pgm=pgm, q=generic_globals(pgm)), jnp.asarray(y), mask)


def compiled(function: Callable) -> Callable:
    """jit of a function that runs a few times on tiny arrays: its cost is its compilation, so optimise little."""
    return eqx.filter_jit(function, compiler_options={"xla_backend_optimization_level": 0})


@pytest.fixture(name="example")
def example_fixture(x64) -> Callable[..., Example]:
    """example(name, solve): a model with data, in float64."""
    return make_example


@pytest.fixture(name="compiled")
def compiled_fixture() -> Callable:
    return compiled


@pytest.fixture(name="with_solver")
def with_solver_fixture() -> Callable:
    return with_solver
