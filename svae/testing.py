"""The conformance suite of latent graphs, for blocks of one's own: AssertionError says in one sentence what is wrong.

`forward`, `back` and the score of a conditional are partial derivatives of one function, the surrogate bound. So the
suite needs no formula of a block: it differentiates that bound. Use small sizes, such as 3 states and 2 dimensions.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from svae import expfam
from svae.expfam import Gaussian, LinearGaussian
from svae.messages import FixedPoint, fixed_point
from svae.nets import AbstractLikelihood
from svae.pgm import AbstractBlock, Choice, Graph, Normal, graph

__all__ = ["check_block", "check_likelihood", "check_pgm"]

T, REAL = 6, 5  # frames, the last of them padding
CLOSE = 2e-3  # for densities in float32
POINTS, DRAWS, LARGEST_COUNT = 40_001, 4_000, 5_000  # of a grid, of a mean, and the largest count
SURE = 1e9  # copies of the data: q(theta) at a point
SHARP = 1e8  # precision that pins x


def check_block(block: AbstractBlock) -> None:
    """Run the suite on a graph around a block: a discrete one above a Normal, with a Choice for each parent.

    Args:
        block: A block of one's own; small sizes keep it quick.
    """
    if not isinstance(block, AbstractBlock):
        raise AssertionError(f"{block!r} is not a block: it must be a frozen dataclass that derives from AbstractBlock")
    names = [*_listed(block.given), *_listed(getattr(block, "add", ())), *_listed(block.after)]
    above = {name: Choice(2) for name in names if name != "x"}
    own = {"block": block} if block.continuous else {"block": block, "x": Normal(2, given="block")}
    check_pgm(graph(**above, **own))


def check_pgm(pgm: Graph) -> None:
    """Run the suite on a graph, in float64.

    Args:
        pgm: A graph; small sizes keep it quick.
    """
    with jax.enable_x64(True):
        bent = any(node.block.nonlinear for node in pgm.nodes)
        solve = _converged_step_by_step if bent else _converged
        pgm = graph(show=pgm.shown, solve=solve, **{n.name: n.block for n in pgm.nodes})
        pgm = dataclasses.replace(pgm, ordinary=jax.tree.map(_random, pgm.ordinary)).for_groups(2)
        q = _generic(pgm)
        _check_parameters(pgm, q)
        _check_inference(pgm, q)
        _check_simulation(pgm, q)
        if len(pgm.discrete) < 2 and pgm.learned:
            _check_density(pgm, q)


def check_likelihood(likelihood: AbstractLikelihood, *, scale: float = 1.0) -> None:
    """Check the density of a likelihood, its mean and its draws, at locations from -`scale` to `scale`.

    Args:
        likelihood: An instance that derives from `svae.nets.AbstractLikelihood`.
        scale: The locations that are tried.

    Returns:
        Nothing; AssertionError says in one sentence what is wrong.

    Examples:
        >>> import svae
        >>> svae.testing.check_likelihood(svae.nets.Poisson())
    """
    if not isinstance(likelihood, AbstractLikelihood):
        raise AssertionError(f"{likelihood!r} is not a likelihood: derive it from svae.nets.AbstractLikelihood")
    nothing = jnp.zeros(0)
    density = jax.vmap(lambda y, at: likelihood.log_prob(y[None], at[None], nothing), (0, None))
    y, weights = _support(likelihood)
    for at in jnp.linspace(-scale, scale, 3):
        total = float(jnp.sum(jnp.exp(density(y, at)) * weights))
        _require(abs(total - 1) < CLOSE, f"the density at the location {float(at):.3g} sums to {total:.4g}, not to 1")
        drawn = likelihood.sample(jnp.full(DRAWS, at), nothing, key=jax.random.key(0))
        _require((drawn >= likelihood.low) & (drawn <= likelihood.high), "a draw lies outside of low and high")
        mean, found, spread = (float(a) for a in (likelihood.mean(at[None])[0], jnp.mean(drawn), jnp.std(drawn)))
        away = abs(found - mean)
        words = f"the mean of draws at the location {float(at):.3g} is {found:.4g}, and `mean` says {mean:.4g}"
        _require(away < 5 * spread / DRAWS**0.5 + CLOSE * (1 + abs(mean)), words)
    _check_gaps(likelihood, likelihood.sample(jnp.zeros(3), nothing, key=jax.random.key(1)), nothing)


def _support(likelihood: AbstractLikelihood) -> tuple[Array, Array]:
    """Points over the range of an entry and their weights: whole numbers, or a grid that is dense in the middle."""
    low, high = likelihood.low, likelihood.high
    if likelihood.discrete:
        y = jnp.arange(max(low, -LARGEST_COUNT), min(high, LARGEST_COUNT) + 1)
        return y, jnp.ones_like(y)
    if np.isfinite(low) and np.isfinite(high):
        y = low + (high - low) * (jnp.arange(POINTS) + 0.5) / POINTS
        return y, jnp.full_like(y, (high - low) / POINTS)
    u = jnp.linspace(-12.0, 12.0, POINTS)
    step = 24.0 / (POINTS - 1)
    if not np.isfinite(low) and not np.isfinite(high):
        return jnp.sinh(u), jnp.cosh(u) * step
    y = jnp.exp(u)
    return (low + y, y * step) if np.isfinite(low) else (high - y, y * step)


def _check_gaps(likelihood: AbstractLikelihood, y: Array, nothing: Array) -> None:
    """What is missing says nothing, and no derivative is lost to it."""
    score = lambda at, y: likelihood.log_prob(y, at, nothing)  # noqa: E731
    gaps = y.at[1].set(jnp.nan)
    value, slope = jax.value_and_grad(score)(jnp.zeros(3), gaps)
    rest = score(jnp.zeros(2), y[jnp.array([0, 2])])
    _require(jnp.isfinite(value) & jnp.all(jnp.isfinite(slope)), "a missing entry makes the density or its slope NaN")
    _require((jnp.abs(value - rest) < CLOSE) & (slope[1] == 0), "a missing entry counts: leave NaN out of the sum")


def _compiled(function: Callable) -> Callable:
    """jit of what runs once or twice on tiny arrays: its cost is its compilation, so optimise little."""
    return eqx.filter_jit(function, compiler_options={"xla_backend_optimization_level": 0})


def _listed(given: str | tuple[str, ...]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _converged(f, words, args):
    return fixed_point(f, words, args, tolerance=1e-12, max_iterations=3000)


def _converged_step_by_step(f, words, args):
    return fixed_point(f, words, args, tolerance=1e-12, max_iterations=3000, free_steps=3000)


def _generic(pgm: Graph) -> Any:
    """q(theta) after random latents and soft states."""
    rng = np.random.default_rng(0)
    latents = [np.cumsum(0.6 * rng.normal(size=(20, pgm.dimensions)), 0) for _ in range(2)]
    soft = lambda K: rng.dirichlet(np.full(K, 0.5), size=20)  # noqa: E731
    states = [{name: soft(K) for name, K in pgm.discrete.items()} for _ in latents]
    return pgm.initialize(latents, states, [_inputs(pgm, 20) for _ in latents] if pgm.inputs else None, [0, 1])


def _group(pgm: Graph) -> int | None:
    """The group whose recordings are tried, where the graph has any."""
    return 1 if pgm.by else None


def _inputs(pgm: Graph, frames: int) -> Array | None:
    """Random ones, where the graph wants any."""
    return jnp.asarray(np.random.default_rng(frames).normal(size=(frames, pgm.inputs))) if pgm.inputs else None


def _random(a: Array) -> Array:
    return jnp.asarray(np.random.default_rng(a.size).normal(size=a.shape))


def _potentials(pgm: Graph) -> Gaussian:
    """Random ones; frame 2 is missing, the last is padding."""
    rng, D = np.random.default_rng(1), pgm.dimensions
    L = rng.normal(size=(T, D, D))
    seen = ((np.arange(T) < REAL) & (np.arange(T) != 2)).astype(float)
    J, h = L @ np.swapaxes(L, 1, 2) * seen[:, None, None], 2 * rng.normal(size=(T, D)) * seen[:, None]
    return Gaussian(jnp.asarray(J), jnp.asarray(h))


def _require(fine: Any, words: str) -> None:
    if not np.all(fine):
        raise AssertionError(words)


def _check_parameters(pgm: Graph, q: Any) -> None:
    for tree, what in ((pgm.prior, "the prior"), (q, "q(theta) after `initialize`")):
        _require(expfam.in_domain(tree), f"{what} is not proper: a family is outside its domain")
    same = jax.tree.structure(q) == jax.tree.structure(pgm.prior)
    _require(same, "`initialize` returns a tree of another structure than `prior`")


def _check_inference(pgm: Graph, q: Any) -> None:
    mask, moments = jnp.arange(T) < REAL, expfam.moments(q)

    run = _compiled(lambda psi, mask, known: pgm.infer(moments, psi, mask, inputs=known, group=_group(pgm)))
    psi, known = _potentials(pgm), _inputs(pgm, T)
    found = run(psi, mask, known)
    for leaf, what in ((found.kl, "kl"), (found.mean(), "E x"), (found.states, "q(z)")):
        _require(jnp.isfinite(leaf), f"{what} is not finite")
    _require(found.kl[REAL:] == 0, "kl of padding is not 0")
    alone = run(*jax.tree.map(lambda a: a[:REAL], (psi, mask, known)))
    _require(jnp.abs(found.kl[:REAL] - alone.kl) < 1e-8, "padding changes kl: `infer` or `kl` must leave it out")
    for name, factor in found.discrete.items():
        _require(jnp.abs(jnp.sum(factor.states, -1) - 1) < 1e-8, f"the marginals of {name} do not sum to 1")

    def bound(words, psi):
        """The surrogate bound of factors that are made from `words` and from what they then say: no fixed point."""
        once = dataclasses.replace(pgm, solve=_as_it_is)
        return jnp.sum(once.infer(moments, psi, mask, words, inputs=known, group=_group(pgm)).log_normalizer)

    d_words, d_psi = _compiled(jax.grad(bound, (0, 1)))(found.nodes(), psi)
    expanded = {node.name for node in pgm.nodes if node.block.nonlinear}  # about means, which are no such unknown
    for name, slope in ((name, slope) for name, slope in d_words.items() if name not in expanded):
        words = f"what is said `back` to {name} is not the derivative of the bound that `infer` and `kl` give"
        _require(jnp.abs(slope) < 1e-6, words)
    away = jnp.abs(d_psi.h - jnp.where(mask[:, None], found.mean(), 0))
    _require(away < 1e-6, "E x is not the derivative of the bound in the potentials: `infer` and `kl` disagree")


def _as_it_is(f, words, args):
    """No sweep at all: the factors of these words."""
    return FixedPoint(words, jnp.zeros(()), jnp.zeros((), jnp.int32))


def _check_simulation(pgm: Graph, q: Any) -> None:
    def paths():
        theta = expfam.sample(q, key=jax.random.key(0))
        path = pgm.simulate(theta, 7, key=jax.random.key(1), inputs=_inputs(pgm, 7), group=_group(pgm))
        later = {"start": path, "inputs": _inputs(pgm, 4), "group": _group(pgm)}
        return path, pgm.simulate(theta, 4, key=jax.random.key(2), **later)

    path, onwards = _compiled(paths)()
    for node, values in zip(pgm.nodes, path, strict=True):
        shape = (7, node.block.size) if node.block.continuous else (7,)
        _require(jax.tree.leaves(values)[0].shape == shape, f"a simulation of {node.name} has not the shape {shape}")
    same = jax.tree.structure(onwards) == jax.tree.structure(path)
    _require(same, "a simulation that goes on from a start has another structure")


def _check_density(pgm: Graph, q: Any) -> None:
    """With theta and x known, q(z | x) is exact: the surrogate bound is log p(x) times the volume of the potentials."""
    exact, found = map(float, _compiled(lambda: _densities(pgm, q))())
    words = "`infer` and the density disagree: with x known the bound is not log p(x | theta)"
    _require(abs(found - exact) < 1e-3 * (1 + abs(exact)), words)


def _densities(pgm: Graph, q: Any) -> tuple[Array, Array]:
    """log p(x | theta) of a simulation, and the surrogate bound with x pinned, less that volume."""
    sure = expfam.from_natural(q, jax.tree.map(lambda eta: SURE * eta, expfam.natural(q)))
    means = expfam.map_families(lambda family: family.mean(), sure)
    is_linear = lambda t: isinstance(t, LinearGaussian)  # noqa: E731
    theta = jax.tree.map(lambda t: t if is_linear(t) else jnp.log(t), means, is_leaf=is_linear)
    mask, known = jnp.ones(T, bool), _inputs(pgm, T)
    x = pgm.latent(pgm.simulate(theta, T, key=jax.random.key(3), inputs=known, group=_group(pgm)))
    J = jnp.broadcast_to(SHARP * jnp.eye(x.shape[1]), (*x.shape, x.shape[1]))
    found = pgm.infer(expfam.moments(sure), Gaussian(J, SHARP * x), mask, inputs=known, group=_group(pgm))
    volume = (jnp.log(2 * jnp.pi / SHARP) * x.size + SHARP * jnp.sum(x**2)) / 2
    return jnp.sum(pgm.log_prob(theta, x, mask, known, _group(pgm))), jnp.sum(found.log_normalizer) - volume
