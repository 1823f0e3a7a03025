"""Fixed points x = f(x, args) and three ways to differentiate them: implicitly, unrolled, and through one step."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from svae._linalg import mT, mv
from svae.messages.algebra.uneven_loop import loop

FREE_STEPS = 5  # before the first leap
STEEPEST = 0.85  # ratio of two changes that a leap believes
DIRECTIONS = 4  # that the linear solve behind an implicit derivative remembers


class FixedPoint(NamedTuple):
    """The last iterate, the largest change of an entry in its last step, and how many steps were taken."""

    value: Any
    residual: Float[Array, ""]
    iterations: Int[Array, ""]


def _size(tree):
    """The largest |entry|; 0 for an empty tree."""
    leaves = [jnp.max(jnp.abs(x), initial=0) for x in jax.tree.leaves(tree)]
    return jnp.max(jnp.stack(leaves)) if leaves else jnp.zeros(())


def _subtract(x, y):
    return jax.tree.map(jnp.subtract, x, y)


class _Walk(NamedTuple):
    """Where an iteration stands, and by how much its last step changed each entry."""

    point: FixedPoint
    change: Any


def _iterate(f, x0, args, tolerance, max_iterations, free_steps=FREE_STEPS) -> FixedPoint:
    """Applications of f, after some every other one of them followed by a leap along the change that it made.

    Where f closes in slowly, each change is about a constant times the one before: their sum is known (Aitken 1926).
    """

    def more(walk):
        return (walk.point.residual > tolerance) & (walk.point.iterations < max_iterations)

    def step(walk, args):
        x, taken = f(walk.point.value, args), walk.point.iterations
        change = _subtract(x, walk.point.value)
        residual = _size(change)
        leaps = (residual > tolerance) & (taken >= free_steps) & (taken % 2 == 1) & (taken + 1 < max_iterations)
        x = jax.tree.map(lambda x, now, before: x + jnp.where(leaps, _rest(now, before), 0), x, change, walk.change)
        return _Walk(FixedPoint(x, residual, taken + 1), change)

    start = FixedPoint(x0, jnp.full_like(_size(x0), jnp.inf), jnp.zeros((), jnp.int32))
    return loop(more, step, _Walk(start, jax.tree.map(jnp.zeros_like, x0)), args).point


def _rest(now, before):
    """All changes to come, if each is to the one before as `now` is to `before`; row by row of the first axis."""
    axes = tuple(range(1, now.ndim))
    ratio = _ratio(jnp.sum(now * before, axes, keepdims=True), jnp.sum(before**2, axes, keepdims=True))
    ratio = jnp.clip(ratio, 0, STEEPEST)
    return ratio / (1 - ratio) * now


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 3, 4, 5))
def _implicit(f, x0, args, tolerance, max_iterations, free_steps):
    return _iterate(f, x0, args, tolerance, max_iterations, free_steps)


def _implicit_forward(f, x0, args, tolerance, max_iterations, free_steps):
    point = _implicit(f, x0, args, tolerance, max_iterations, free_steps)
    return point, (point.value, args)


def _implicit_backward(f, tolerance, max_iterations, free_steps, kept, cotangent):
    """Solves u = ct + (df/dx)' u to a tenth of the tolerance relative to ct; then u is pulled through args."""
    x, args = kept
    ct, restore = ravel_pytree(cotangent.value)
    pull = jax.vjp(f, x, args)[1]
    u = _solve(lambda u: u - ravel_pytree(pull(restore(u))[0])[0], ct, tolerance / 10 * _size(ct), max_iterations)
    return jax.tree.map(jnp.zeros_like, x), pull(restore(u))[1]


class _Search(NamedTuple):
    """Where a linear solve stands: b - A u = residual; directions p and their images A p, the newest first."""

    u: Float[Array, " n"]
    residual: Float[Array, " n"]
    directions: Float[Array, "m n"]
    images: Float[Array, "m n"]
    iterations: Int[Array, ""]


def _solve(A, b, tolerance, max_iterations):
    """A u = b, A near the identity: each step minimises |b - A u| along the residual made conjugate to the last few.

    Orthomin (Vinsome 1976): one product a step, and about the square root of the iterations of u = b + (I - A) u.
    """

    def more(s):
        return (_size(s.residual) > tolerance) & (s.iterations < max_iterations)

    def step(s):
        image = A(s.residual)
        overlap = _ratio(mv(s.images, image), jnp.sum(s.images**2, -1))
        p, Ap = s.residual - mv(mT(s.directions), overlap), image - mv(mT(s.images), overlap)
        length = _ratio(jnp.sum(s.residual * Ap), jnp.sum(Ap**2))
        newest = lambda kept, new: jnp.concatenate([new[None], kept[:-1]])  # noqa: E731
        return _Search(
            s.u + length * p,
            s.residual - length * Ap,
            newest(s.directions, p),
            newest(s.images, Ap),
            s.iterations + 1,
        )

    none = jnp.zeros((DIRECTIONS, len(b)), b.dtype)
    return lax.while_loop(more, step, _Search(jnp.zeros_like(b), b, none, none, jnp.zeros((), jnp.int32))).u


def _ratio(x, y):
    """x / y, 0 where y is."""
    return jnp.where(y > 0, x / jnp.where(y > 0, y, 1), 0)


_implicit.defvjp(_implicit_forward, _implicit_backward)


def fixed_point(f, x0, args, *, tolerance: float, max_iterations: int, free_steps: int = FREE_STEPS) -> FixedPoint:
    """Iterates x = f(x, args) until no entry changes by more than tolerance; the derivative is implicit, and 0 for x0.

    f takes all it depends on through args (a pytree): it must not close over traced values.

    Args:
        f: x and args to the next x.
        x0: Where it begins.
        args: What f depends on.
        tolerance: The largest change of an entry at which it ends.
        max_iterations: The number at which it ends in any case.
        free_steps: Those before the first leap along the changes; `max_iterations` of them for none.

    Returns:
        `FixedPoint`: x, the iterations and the last change.
    """
    return _implicit(f, x0, args, tolerance, max_iterations, free_steps)


def unrolled(f, x0, args, *, steps: int) -> FixedPoint:
    """steps applications of f, differentiated through every one of them.

    Args:
        f: x and args to the next x.
        x0: Where it begins.
        args: What f depends on.
        steps: The number of applications.

    Returns:
        `FixedPoint`: x, the iterations and the last change.
    """

    def step(x, _):
        new = f(x, args)
        return new, _size(lax.stop_gradient(_subtract(new, x)))

    x, changes = lax.scan(step, x0, length=steps)
    return FixedPoint(x, changes[-1], jnp.full((), steps, jnp.int32))


def one_step(f, x0, args, *, tolerance: float, max_iterations: int) -> FixedPoint:
    """Iterates as fixed_point does, then applies f once more; the gradient sees that last application only.

    Args:
        f: As in `fixed_point`, and so are all others: x and args to the next x.
        x0: The first x.
        args: All that f depends on.
        tolerance: The largest change of an entry at which the iterations end.
        max_iterations: How many there are at most, before the last application.

    Returns:
        `FixedPoint`: x, the iterations and the last change.
    """
    x0, held = lax.stop_gradient((x0, args))
    point = lax.stop_gradient(_iterate(f, x0, held, tolerance, max_iterations))
    x = f(point.value, args)
    return FixedPoint(x, _size(lax.stop_gradient(_subtract(x, point.value))), point.iterations + 1)
