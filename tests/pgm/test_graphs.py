"""Graphs beyond the six: the oracle enumerates every path of every discrete block, and has x as one dense Gaussian."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from svae import expfam
from svae.expfam import NIW, Gaussian, LinearGaussian, MNIWNatural, NIWNatural
from svae.messages import fixed_point
from svae.pgm import Choice, Dynamics, Markov, Normal, graph

T, REAL = 5, 4
MASK = np.arange(T) < REAL
GRAPHS = {
    "offsets that add": lambda: graph(a=Markov(2), b=Markov(3), x=Dynamics(2, add=("a", "b"))),
    "a table over pairs": lambda: graph(a=Markov(2), b=Markov(2), x=Dynamics(2, given=("a", "b"))),
    "offsets of a mean": lambda: graph(a=Choice(2), b=Markov(2), x=Normal(2, add=("a", "b"))),
    "one cause, two latents": lambda: graph(z=Markov(2), x=Dynamics(2, given="z"), w=Normal(1, given="z")),
    "states of states": lambda: graph(mood=Markov(2), z=Markov(3, given="mood"), x=Dynamics(2, given="z")),
    "choices of choices": lambda: graph(x=Normal(2, given="z"), z=Choice(3, given="mood"), mood=Choice(2)),
    "inputs alone": lambda: graph(x=Dynamics(2, inputs=2)),
    "a table with inputs": lambda: graph(z=Markov(2), x=Dynamics(2, given="z", inputs=2)),
    "offsets and inputs": lambda: graph(a=Markov(2), b=Choice(2), x=Dynamics(2, add=("a", "b"), inputs=1)),
    "chains that answer each other": lambda: graph(
        a=Markov(2, after="b"), b=Markov(3, after="a"), x=Dynamics(1, given="a"), w=Normal(1, given="b")
    ),
    "a mood of two frames": lambda: graph(m=Markov(2), a=Markov(2, given="m", after="m"), x=Normal(2, given="a")),
    "a cause of both": lambda: graph(z=Markov(2), y=Choice(2, given="z"), x=Normal(2, given=("z", "y"))),
}
every = pytest.mark.parametrize("name", GRAPHS)


def known(pgm, frames: int = T):
    """Inputs of every frame, where the graph wants any."""
    return jnp.asarray(np.random.default_rng(frames).normal(size=(frames, pgm.inputs))) if pgm.inputs else None


def converged(f, words, args):
    return fixed_point(f, words, args, tolerance=1e-13, max_iterations=3000)


def potentials(D: int) -> Gaussian:
    """Random potentials, the third missing, and padding at the end."""
    rng = np.random.default_rng(5)
    L = rng.normal(size=(T, D, D))
    seen = (MASK & (np.arange(T) != 2)).astype(float)
    J, h = L @ np.swapaxes(L, 1, 2) * seen[:, None, None], 2 * rng.normal(size=(T, D)) * seen[:, None]
    return Gaussian(jnp.asarray(J), jnp.asarray(h))


def complete(pgm, seed: int = 3):
    """Random latents and soft states of every block: a generic q(theta)."""
    rng = np.random.default_rng(seed)
    latents = [np.cumsum(0.6 * rng.normal(size=(15, pgm.dimensions)), 0) for _ in range(2)]
    soft = lambda K: rng.dirichlet(np.full(K, 0.5), size=15)  # noqa: E731
    states = [{name: soft(K) for name, K in pgm.discrete.items()} for _ in latents]
    return pgm.initialize(latents, states, [known(pgm, 15)] * 2 if pgm.inputs else None)


def surrogate(pgm, moments, psi, mask):
    posterior = pgm.infer(moments, psi, mask, inputs=known(pgm))
    return jnp.sum(posterior.log_normalizer), posterior


@functools.cache
def solved(name: str, compiled):
    """A graph, q(theta), the derivatives of its surrogate bound in moments and potentials, and its posterior."""
    pgm = dataclasses.replace(GRAPHS[name](), solve=converged)
    q, psi = complete(pgm), potentials(pgm.dimensions)
    both = jax.grad(lambda m, psi, mask: surrogate(pgm, m, psi, mask), (0, 1), has_aux=True)
    gradients, posterior = compiled(both)(expfam.moments(q), psi, jnp.asarray(MASK))
    return pgm, q, gradients, jax.tree.map(np.asarray, posterior)


# --- the oracle ---------------------------------------------------------------------------------------------------


def marginals(pgm, posterior):
    """By discrete block: E log q, marginals (n, K) and pairs (n-1, K, K), from all of its paths."""
    found = {}
    for name, factor in posterior.discrete.items():
        K = pgm.discrete[name]
        paths = np.array(list(itertools.product(range(K), repeat=REAL)))
        scores = factor.node[np.arange(REAL), paths].sum(1)
        if hasattr(factor, "chain"):
            rows = np.broadcast_to(factor.chain.log_trans, (T - 1, K, K))
            scores = scores + factor.chain.log_init[paths[:, 0]]
            scores = scores + rows[np.arange(REAL - 1), paths[:, :-1], paths[:, 1:]].sum(1)
        else:
            scores = scores + np.broadcast_to(factor.log_prior, (T, K))[np.arange(REAL), paths].sum(1)
        log_prob = scores - logsumexp(scores)
        p, one_hot = np.exp(log_prob), np.eye(K)[paths]
        pairs = np.einsum("p,pti,ptj->tij", p, one_hot[:, :-1], one_hot[:, 1:])
        found[name] = p @ log_prob, np.einsum("p,ptk->tk", p, one_hot), pairs
    return found


def dense_gaussian(x):
    """Mean (n, D) and covariance (n, D, n, D) of a chain, from its last real frame back."""
    n, D = REAL, x.mean.shape[1]
    root = np.zeros((n, D, n, D))
    root[n - 1, :, n - 1] = x.sqrt[n - 1]
    for t in reversed(range(n - 1)):
        root[t] = np.tensordot(x.gain[t], root[t + 1], 1)
        root[t, :, t] += x.back_sqrt[t]
    return x.mean[:n], np.einsum("tirk,sjrk->tisj", root, root)


def regression(family, x, combination, weight, times, inputs):
    """Sums of weight[t, c] E v v' with v = (regressors, x_t), by combination c, or of all where offsets add.

    `inputs` (T, n) beside the last x are regressors of a chain; None: x does not see the frame before.
    """
    (mean, covariance), D, total = x, x[0].shape[1], []
    pooled, chained = family.nu.ndim == 0, inputs is not None
    for c, one_hots in enumerate(combination):
        sums = 0
        for t in times:
            before = mean[t - 1] if chained else np.zeros(0)
            driven = inputs[t] if chained else np.zeros(0)
            v = np.r_[before, driven, *(one_hots if pooled else ()), 1.0, mean[t]]
            spread = np.zeros((len(v), len(v)))
            at = np.r_[0 : len(before), len(v) - D : len(v)]
            frames = [t - 1, t] if chained else [t]
            own = covariance[np.ix_(frames, range(D), frames, range(D))].reshape(len(at), len(at))
            spread[np.ix_(at, at)] = own
            sums = sums + weight[t, c] * (spread + np.outer(v, v))
        total.append(sums)
    total, count = np.stack(total), weight[times].sum(0)
    if pooled:
        total, count = total.sum(0), count.sum()
    u, y = slice(0, total.shape[-1] - D), slice(total.shape[-1] - D, None)
    if isinstance(family, NIW):
        return NIWNatural(total[..., y, y], total[..., 0, y], count, count)
    return MNIWNatural(total[..., u, u], total[..., u, y], total[..., y, y], count)


def statistics(pgm, q, posterior, hidden):
    """E t(x, z), shaped like the natural parameters of q(theta)."""
    blocks = []
    for node in pgm.nodes:
        own = getattr(q, node.name)
        combination = list(itertools.product(*(np.eye(K) for K in node.sizes)))
        weight = np.ones((REAL, 1))
        for parent in node.parents:
            weight = (weight[:, :, None] * hidden[parent][1][:, None]).reshape(REAL, -1)
        if node.block.continuous:
            x = dense_gaussian(getattr(posterior.factors, node.name))
            driven = np.zeros((T, 0)) if node.block.inputs == 0 else known(pgm)
            times = {"first": [0], "normal": list(range(REAL)), "dynamics": list(range(1, REAL))}
            found = [
                regression(family, x, combination, weight, times[field], driven if field == "dynamics" else None)
                for field, family in own._asdict().items()
            ]
        else:
            _, w, pairs = hidden[node.name]
            steps = weight[1:]
            for parent in node.before:
                steps = (steps[:, :, None] * hidden[parent][1][:-1, None]).reshape(REAL - 1, -1)
            every = {
                "weights": lambda w=w, weight=weight: weight.T @ w,
                "init": lambda w=w, weight=weight: np.outer(weight[0], w[0]),
                "transitions": lambda p=pairs, steps=steps: np.einsum("tm,tij->mij", steps, p),
            }
            found = [every[field]().reshape(getattr(own, field).counts.shape) for field in own._fields]
            found = [expfam.DirichletNatural(counts) for counts in found]
        blocks.append(type(own)(*found))
    return type(q)(*blocks)


def entropy_and_more(posterior, hidden) -> float:
    """E log q(z) + E log q(x), and the log 2 pi that statistics leave out."""
    total = sum(log_prob for log_prob, _, _ in hidden.values())
    for x in posterior.continuous:
        n, D = REAL, x.mean.shape[1]
        total -= np.linalg.slogdet(dense_gaussian(x)[1].reshape(n * D, n * D))[1] / 2 + n * D / 2
    return total


# --- theorems -----------------------------------------------------------------------------------------------------


@every
def test_local_kl_and_statistics_equal_the_oracle(name, x64, compiled):
    """kl = E log q - E log p by brute force, and d (surrogate bound) / d E t(theta) = E t(x, z): q is stationary."""
    pgm, q, (d_moments, d_psi), posterior = solved(name, compiled)
    assert posterior.residual < 1e-12
    hidden = marginals(pgm, posterior)
    expected = statistics(pgm, q, posterior, hidden)
    score = float(expfam.inner(jax.jit(expfam.expected_stats)(q), expected))
    np.testing.assert_allclose(posterior.kl.sum(), entropy_and_more(posterior, hidden) - score, rtol=1e-9)
    np.testing.assert_array_equal(posterior.kl[REAL:], 0)
    found = jax.jit(lambda q, d: expfam.uncentre(q, expfam.natural_gradient(q, q, d)))(q, d_moments)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(d_psi.h[:REAL], posterior.mean()[:REAL], atol=1e-9)
    for block, (_, w, _) in hidden.items():
        np.testing.assert_allclose(posterior.discrete[block].states[:REAL], w, atol=1e-10)


@every
def test_padding_changes_nothing(name, x64, compiled):
    pgm, q, _, posterior = solved(name, compiled)
    psi = jax.tree.map(lambda a: a[:REAL], potentials(pgm.dimensions))
    inputs = None if known(pgm) is None else known(pgm)[:REAL]
    alone = compiled(lambda m, psi: pgm.infer(m, psi, jnp.ones(REAL, bool), inputs=inputs))(expfam.moments(q), psi)
    np.testing.assert_allclose(posterior.kl[:REAL], alone.kl, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(posterior.mean()[:REAL], alone.mean(), rtol=1e-10, atol=1e-11)


@every
def test_the_density_sums_over_all_states(name, x64):
    """log p(x | theta) = log sum over the paths of all discrete blocks, one conditional at a time."""
    pgm = GRAPHS[name]()
    theta = expfam.sample(complete(pgm), key=jax.random.key(1))
    path = pgm.simulate(theta, T, key=jax.random.key(2), inputs=known(pgm))
    x = pgm.latent(path)
    found = jax.jit(lambda x: pgm.log_prob(theta, x, jnp.asarray(MASK), known(pgm)))(x)
    spaces = [list(itertools.product(range(K), repeat=REAL)) for K in pgm.discrete.values()]
    scores = []
    for paths in itertools.product(*spaces):
        z = dict(zip(pgm.discrete, paths, strict=True))
        scores.append(sum(_log_prob(node, theta, path, z, known(pgm)) for node in pgm.nodes))
    np.testing.assert_allclose(found.sum(), logsumexp(scores), rtol=1e-9)
    assert found[-1] == 0


def _log_prob(node, theta, path, z, inputs) -> float:
    """log p of one block's values given its parents, frame by frame."""
    own, total = jax.tree.map(np.asarray, getattr(theta, node.name)), 0.0
    x = np.asarray(getattr(path, node.name))
    for t in range(REAL):
        states = [z[parent][t] for parent in node.parents]
        row = int(np.ravel_multi_index(states, node.sizes)) if states else None
        pick = lambda a, row=row: a if row is None else a[row]  # noqa: E731
        if node.block.continuous:
            driven = inputs[t] if node.block.inputs else np.zeros(0)
            total += _log_normal(node, own, x, t, states, pick, driven)
        elif hasattr(own, "weights"):
            total += pick(own.weights)[z[node.name][t]]
        else:
            now, before = z[node.name][t], z[node.name][t - 1]
            earlier = states + [z[parent][t - 1] for parent in node.before]
            table = own.transitions
            table = table[int(np.ravel_multi_index(earlier, node.every_size))] if earlier else table
            total += pick(own.init)[now] if t == 0 else table[before, now]
    return total


def _log_normal(node, own, x, t, states, pick, driven) -> float:
    chained = hasattr(own, "dynamics") and t > 0
    table = own.normal if hasattr(own, "normal") else own.dynamics if chained else own.first
    adds = bool(getattr(node.block, "add", ()))
    W, root = (table.W, table.sqrt) if adds else (pick(table.W), pick(table.sqrt))
    one_hots = [np.eye(K)[k] for K, k in zip(node.sizes, states, strict=True)] if adds else []
    before = np.r_[x[t - 1], driven] if chained else np.zeros(0)
    u = np.concatenate([before, *one_hots, [1.0]])
    away = np.linalg.solve(root, x[t] - W @ u)
    return -away @ away / 2 - np.linalg.slogdet(root)[1] - len(away) / 2 * np.log(2 * np.pi)


@every
def test_simulation_goes_on_from_a_start(name, x64):
    """The steps after a start: with the noise of x taken out they follow from the states alone."""
    pgm = GRAPHS[name]()
    theta = expfam.sample(complete(pgm), key=jax.random.key(1))
    quiet = jax.tree.map(
        lambda t: LinearGaussian(t.W, 0 * t.sqrt) if isinstance(t, LinearGaussian) else t,
        theta,
        is_leaf=lambda t: isinstance(t, LinearGaussian),
    )
    start, inputs = pgm.simulate(theta, 3, key=jax.random.key(4), inputs=known(pgm, 3)), known(pgm, 6)
    path = pgm.simulate(quiet, 6, key=jax.random.key(5), start=start, inputs=inputs)
    assert pgm.latent(path).shape == (6, pgm.dimensions)
    for node in pgm.nodes:
        if node.block.continuous and node.block.remembers:
            before = np.concatenate([getattr(start, node.name)[-1:], getattr(path, node.name)[:-1]])
            driven = inputs if node.block.inputs else np.zeros((6, 0))
            for t in range(6):
                states = tuple(getattr(path, parent)[t] for parent in node.parents)
                W = node.block.form.at(getattr(quiet, node.name).dynamics, node.sizes, states).W
                np.testing.assert_allclose(getattr(path, node.name)[t], W @ np.r_[before[t], driven[t], 1.0], rtol=1e-9)
