"""Fixed points with a closed form: x = B x + a has x = (I - B)^-1 a and cotangent (I - B)^-T."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from svae.messages import fixed_point, one_step, unrolled

B = jnp.asarray([[0.2, 0.3], [-0.1, 0.4]])
a = jnp.asarray([1.0, -2.0])


def affine(x, args):
    B, a = args
    return {"x": B @ x["x"] + a}


def solve(method, args, **options):
    return method(affine, {"x": jnp.zeros(2)}, args, **options)


CONVERGED = [(fixed_point, {"tolerance": 1e-7, "max_iterations": 200}), (unrolled, {"steps": 60})]


@pytest.mark.parametrize("method, options", [*CONVERGED, (one_step, {"tolerance": 1e-7, "max_iterations": 200})])
def test_value(method, options):
    point = solve(method, (B, a), **options)
    np.testing.assert_allclose(point.value["x"], jnp.linalg.solve(jnp.eye(2) - B, a), rtol=1e-5, atol=1e-6)
    assert point.residual <= 2e-7 and point.iterations > 1


@pytest.mark.parametrize("method, options", CONVERGED)
def test_gradient_is_that_of_the_closed_form(method, options):
    def loss(args):
        return jnp.sum(jnp.sin(solve(method, args, **options).value["x"]))

    exact = jax.grad(lambda args: jnp.sum(jnp.sin(jnp.linalg.solve(jnp.eye(2) - args[0], args[1]))))
    batch = (jnp.stack([B, B / 2]), jnp.stack([a, a]))
    for got, want in zip(jax.vmap(jax.grad(loss))(batch), jax.vmap(exact)(batch), strict=False):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_one_step_sees_the_last_application_only():
    gradient = jax.grad(lambda a: jnp.sum(solve(one_step, (B, a), tolerance=1e-7, max_iterations=200).value["x"]))(a)
    np.testing.assert_allclose(gradient, np.ones(2))


def test_stops_at_max_iterations_and_integer_arguments_are_allowed():
    def grow(x, args):
        return x * args["scale"] + args["count"]

    args = {"scale": jnp.asarray(2.0), "count": jnp.asarray(1)}
    point = fixed_point(grow, jnp.ones(()), args, tolerance=1e-6, max_iterations=5)
    assert point.iterations == 5 and point.residual > 1

    def halve(s):
        return fixed_point(grow, jnp.ones(()), {**args, "scale": s}, tolerance=1e-6, max_iterations=99).value

    np.testing.assert_allclose(jax.grad(halve)(jnp.asarray(0.5)), 4.0, rtol=1e-4)  # d 1/(1-s)


@pytest.mark.parametrize("slowest", [0.8, 0.9, 0.95])
def test_rows_that_close_in_slowly_arrive_early(slowest):
    """Each row of x at its own pace, as bouts of one recording; a plain iteration needs up to 180 steps for 0.95."""
    pace = jnp.linspace(-0.5, slowest, 20)[:, None] * jnp.linspace(0.9, 1, 3)[None]
    point = fixed_point(lambda x, a: pace * x + a, jnp.zeros((20, 3)), jnp.ones(()), tolerance=1e-3, max_iterations=200)
    assert np.abs(point.value - 1 / (1 - pace)).max() < 0.03
    assert point.iterations < 0.6 * np.log(1e-3) / np.log(slowest)


def test_a_map_that_turns_or_alternates_still_converges():
    turn = 0.9 * jnp.asarray([[0.0, -1.0], [1.0, 0.0]])
    for B in (turn, -0.9 * jnp.eye(2)):
        point = fixed_point(lambda x, B: x @ B + 1, jnp.zeros((1, 2)), B, tolerance=1e-5, max_iterations=200)
        np.testing.assert_allclose(point.value[0], jnp.linalg.solve(jnp.eye(2) - B.T, jnp.ones(2)), atol=1e-4)


def test_a_slow_contraction_is_differentiated_in_few_steps():
    """Eigenvalues to 0.99: iterating u = ct + B' u would leave 74 % of the error after 30 steps."""
    rng = np.random.default_rng(0)
    V = np.linalg.qr(rng.normal(size=(40, 40)))[0] + 0.05 * rng.normal(size=(40, 40))
    eigenvalues = np.concatenate([[0.99, 0.9, 0.7], rng.uniform(-0.2, 0.3, 37)])
    slow = V @ np.diag(eigenvalues) @ np.linalg.inv(V)
    start, a = {"x": jnp.asarray(np.linalg.solve(np.eye(40) - slow, np.ones(40)), jnp.float32)}, jnp.ones(40)

    def total(a):
        return jnp.sum(
            fixed_point(affine, start, (jnp.asarray(slow, jnp.float32), a), tolerance=1e-3, max_iterations=30).value[
                "x"
            ]
        )

    want = np.linalg.solve(np.eye(40) - slow.T, np.ones(40))
    np.testing.assert_allclose(jax.grad(total)(a), want, rtol=0, atol=5e-3 * np.abs(want).max())
