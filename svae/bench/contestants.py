"""Two training steps on one problem: ours as `svae fit` runs it, and the plain one."""

import dataclasses
import functools
import itertools
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from svae import bound, expfam
from svae.bench import _plain_chains, _plain_step, _problems
from svae.fitting import loop, program, updates
from svae.messages import fixed_point
from svae.pgm._mean_field import MAX_ITERATIONS, TOLERANCE, implicit


def converged(f, node, args):
    """Mean field far beyond the tolerance of a fit."""
    return fixed_point(f, node, args, tolerance=1e-11, max_iterations=1000)


def natural(eta) -> dict:
    """Our natural parameters, or a direction in them, as the plain form keeps them."""
    return {name: _family(family) for block in eta for name, family in block._asdict().items()}


def _family(eta):
    if hasattr(eta, "uxT"):
        return eta._asdict()
    if hasattr(eta, "n"):  # a regression on u = 1
        return {"uuT": eta.n[..., None, None], "uxT": eta.x[..., None, :], "xxT": eta.xxT, "nu": eta.nu}
    return eta.counts


def noise(key, y, D):
    """What `bound.evidence` draws with."""
    key_x, _ = (jax.random.split(k, 1) for k in jax.random.split(key))
    keys = jax.vmap(lambda k: jax.random.split(k, len(y)), out_axes=1)(key_x)[:, 0]
    return jax.vmap(lambda k: jax.random.normal(k, (y.shape[1], D)))(keys)


def sweeps(problem) -> dict[str, int]:
    """The sweeps that mean field takes for the slowest sequence of the batch, to the tolerance of a fit: in our form,
    which leaps, and in the plain one, which does not."""
    model, (y, mask, *_) = problem.model, problem.piece
    if not model.pgm.discrete:
        return {"svae": 0, "plain": 0}
    args = model.pgm.tables(expfam.moments(model.q)), jax.vmap(model.recognize)(y, mask), mask
    count = lambda kind, args: kind(model.pgm, (args[0], model.pgm.by_block(args[1]), args[2]))  # noqa: E731
    slowest = lambda kind: jnp.max(jax.vmap(lambda *a: count(kind, a), (None, 0, 0))(*args))  # noqa: E731
    return {name: int(jax.jit(slowest, static_argnums=0)(kind)) for name, kind in KINDS.items()}


def _leaping(pgm, args):
    return implicit(pgm.sweep, pgm.no_word(args), args).iterations


def _plainly_swept(pgm, args):
    """Sweeps until no entry changes by more than the tolerance."""

    def more(state):
        _, change, taken = state
        return (change > TOLERANCE) & (taken < MAX_ITERATIONS)

    def step(state):
        node, _, taken = state
        new = pgm.sweep(node, args)
        change = jax.tree.map(lambda a, b: jnp.max(jnp.abs(a - b)), new, node)
        return new, jnp.max(jnp.stack(jax.tree.leaves(change))), taken + 1

    return jax.lax.while_loop(more, step, (pgm.no_word(args), jnp.inf, 0))[2]


KINDS = {"svae": _leaping, "plain": _plainly_swept}


def chain(number: int):
    return functools.partial(_plain_chains.slds, sweeps=number) if number else _plain_chains.lds


def gradients(name: str, number: int):
    """Value and leaves of the gradient, of ours and of the plain form."""
    problem = _problems.problem(name)
    model = jax.tree.map(lambda a: jnp.asarray(a, float) if eqx.is_inexact_array(a) else a, problem.model)
    number = number if model.pgm.discrete else 0
    if number:
        model = dataclasses.replace(model, pgm=dataclasses.replace(model.pgm, solve=converged))
    y, key, networks = jnp.asarray(problem.piece.y, float), jax.random.key(1), (model.recognize, model.observe)
    mask, num_data = problem.piece.mask, problem.num_data
    _, found = eqx.filter_jit(bound.value_and_grad)(model, y, mask, num_data=num_data, key=key)
    ours = natural(expfam.uncentre(model.q, found.q)), found.recognize, found.observe
    q, prior = natural(expfam.natural(model.q)), natural(expfam.natural(model.pgm.prior))
    value_and_grad = jax.jit(functools.partial(_plain_step.value_and_grad, chain(number)))
    value, *theirs = value_and_grad(prior, q, networks, y, noise(key, y, model.config.latent_dim), num_data)
    return (float(bound.bound), _leaves(ours)), (float(value), _leaves(theirs))


def _leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def ours(problem):
    """A step of `svae fit` from the same model every time: the program of all restarts, of which there is one."""
    state = loop.start(program.stack([problem.model]))
    totals = jnp.asarray(problem.num_data), jnp.asarray(problem.frames)
    keys = jax.random.key(0), state.restart
    placed = state.models, state.optimizer

    def run():
        taken = program.take(
            program.take_all, placed, problem.piece, keys, totals, updates.How(bound.value_and_grad), None
        )
        return np.asarray(jax.block_until_ready(taken).bound.bound)

    return run


def plainly(problem, number: int):
    model, y = problem.model, problem.piece.y
    optimizer = updates.networks_optimizer(model.config)
    prior, networks = natural(expfam.natural(model.pgm.prior)), (model.recognize, model.observe)
    step = _plain_step.make_step(
        chain(number), prior, optimizer, model.config.natural_step, problem.num_data, problem.frames
    )
    draws = noise(jax.random.key(0), y, model.config.latent_dim)
    state = natural(expfam.natural(model.q)), networks, optimizer.init(networks)

    def run():
        return np.asarray(jax.block_until_ready(step(*state, y, draws))[-1])

    return run


def networks(problem):
    """Both networks alone, forward and backward: what a step of this model takes at least, however it is written."""
    model, (y, mask, *_) = problem.model, problem.piece
    frames = y.reshape(-1, *y.shape[2:])

    @jax.jit
    def gradient(networks, x, y, frames, mask):
        def value(networks, x):
            recognize, observe = networks
            psi = jax.vmap(recognize)(y, mask)
            return jnp.sum(psi.J) + jnp.sum(psi.h) + jnp.sum(observe.log_prob(x, frames))

        return jax.grad(value, (0, 1))(networks, x)

    x = jnp.zeros((len(frames), model.config.latent_dim))
    return lambda: jax.block_until_ready(gradient((model.recognize, model.observe), x, y, frames, mask))


def seconds_in_fit(name: str, steps: int) -> np.ndarray:
    """From one step of a fit to the next, as `fit` tells them; steps that measure the held-out bound are left out."""
    problem = _problems.problem(name)
    config = dataclasses.replace(problem.model.config, steps=steps, warmup_steps=2)
    told = []
    for step in loop.fit(dataclasses.replace(problem.model, config=config), list(problem.piece.y) * 8):
        told.append((time.perf_counter(), step.phase == "fit" and np.isnan(step.held_out)))
    return np.array([now - before for (before, a), (now, b) in itertools.pairwise(told) if a and b])


def one(name: str, who: str):
    problem = _problems.problem(name)
    return ours(problem) if who == "svae" else plainly(problem, sweeps(problem)["plain"])


def both(name: str):
    """Steps that run one after the other, the networks alone, and the sweeps of mean field in each step."""
    problem = _problems.problem(name)
    number = sweeps(problem)
    return {"svae": ours(problem), "plain": plainly(problem, number["plain"]), "networks": networks(problem)}, number
