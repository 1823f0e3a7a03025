"""How a latent model with two local factors finds, and differentiates, its mean field fixed point.

The unknown is `node` (T, K), the potentials that q(z) is made from: q(z) follows from node, q(x) from q(z), and the
next node from q(x). Gradients are implicit by default; the envelope theorem does not apply, because q* optimises the
surrogate and not the bound.
"""

from svae.messages import FixedPoint, fixed_point, one_step, unrolled

TOLERANCE = 1e-2  # nats; q(z) is then off by less than about 1e-3
MAX_ITERATIONS = 30


def implicit(f, node, args) -> FixedPoint:
    return fixed_point(f, node, args, tolerance=TOLERANCE, max_iterations=MAX_ITERATIONS)


def step_by_step(f, node, args) -> FixedPoint:
    """Without leaps, which may not end where conditionals are expanded about the last mean."""
    found = {"tolerance": TOLERANCE, "max_iterations": MAX_ITERATIONS, "free_steps": MAX_ITERATIONS}
    return fixed_point(f, node, args, **found)


def last_sweep(f, node, args) -> FixedPoint:
    """Gradient through the last sweep only."""
    return one_step(f, node, args, tolerance=TOLERANCE, max_iterations=MAX_ITERATIONS)


def ten_sweeps(f, node, args) -> FixedPoint:
    """Ten sweeps, differentiated by unrolling."""
    return unrolled(f, node, args, steps=10)
