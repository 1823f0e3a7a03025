"""The Gaussian chain in pure JAX with the sequences of a batch in lanes; larger chains one sequence at a time.

Reverse-mode derivatives only, by two more sweeps; forward mode is for `gaussian_sequential` and `gaussian_parallel`.
"""

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap

from svae.messages import gaussian_lanes_pull as derivative
from svae.messages import gaussian_lanes_sweeps as sweeps
from svae.messages import gaussian_sequential
from svae.messages.compensated import compensated_sum
from svae.messages.gaussian_chain import GaussianChain, GaussianSmoothed
from svae.messages.gaussian_sequential import filter, log_normalizer, sample
from svae.messages.lanes import LARGEST, mm, mm_tn, mv_t
from svae.messages.lanes_layout import blocks, dynamics, layout
from svae.messages.lanes_roots import inverse

__all__ = ["filter", "log_normalizer", "sample", "smooth"]


def _batched(f):
    """f of a batch, under vmap f of a larger one: leaves have a batch axis first, of 1 where all sequences share it."""
    folded = custom_vmap(f)

    @folded.def_vmap
    def _(size, batched, *operands):
        leaves, tree = jax.tree.flatten(operands)
        flags = jax.tree.leaves(batched)
        n = max(x.shape[flag] for x, flag in zip(leaves, flags, strict=True))
        leaves = [_fold(x, flag, size, n) for x, flag in zip(leaves, flags, strict=True)]
        result = folded(*jax.tree.unflatten(tree, leaves))
        result = jax.tree.map(lambda x: x.reshape(size, n, *x.shape[1:]), result)
        return result, jax.tree.map(lambda x: True, result)

    return folded


def _fold(x, batched, size, n):
    """(size, n or 1, ...) to (size n, ...); what is not batched stays single if it is."""
    if not batched and len(x) == 1:
        return x
    x = x if batched else jnp.broadcast_to(x, (size, *x.shape))
    return jnp.broadcast_to(x, (size, n, *x.shape[2:])).reshape(size * n, *x.shape[2:])


def _layout(T: int, *operands):
    """Of the largest batch that any operand has: cotangents may have one where the chain has none."""
    return layout(max(len(x) for x in jax.tree.leaves(operands)), T)


@_batched
def _values(chain: GaussianChain):
    """Smoothed moments, and beside them what the derivative reads."""
    to = _layout(chain.h.shape[1], chain)
    ready = sweeps.prepared(chain, to)
    q = sweeps.smooth(ready, sweeps.nodes(ready, to), to)
    return GaussianSmoothed(q.mean, q.sqrt, q.gain, q.back, q.log_z, q.kl), (q.shift, q.step, q.L)


def _kept(q: GaussianSmoothed, more, to) -> derivative.Kept:
    """In blocks; the last step is its own backward root."""
    I = jnp.eye(q.mean.shape[-1], dtype=q.mean.dtype)
    shift, step, L = more
    end = jnp.broadcast_to(q.sqrt[:, -1:], (to.B, 1, *I.shape))
    roots = blocks(q.sqrt, to, I), blocks(q.gain, to), blocks(q.back_sqrt, to, I, [end])
    return derivative.Kept(blocks(q.mean, to), *roots, blocks(shift, to), blocks(step, to), blocks(L, to, I))


@_batched
def _cotangents(chain: GaussianChain, q: GaussianSmoothed, more, d: GaussianSmoothed):
    to = _layout(chain.h.shape[1], chain, q, d)
    ready, d = sweeps.prepared(chain, to), GaussianSmoothed(*(blocks(x, to) for x in d))
    kept, noise = _kept(q, more, to), dynamics(chain.Q_sqrt, to)
    pushed = derivative.push(ready, kept, d, to)
    (mu, omega), every, sums = derivative.pull(ready, noise, kept, d, pushed, to)
    rest = [_like(x, total, leaf) for x, total, leaf in zip(every, sums, chain[2:], strict=True)]
    return GaussianChain(*_prior(chain, ready.sqrt0, mu, omega), *rest)


def _like(steps, sums, leaf):
    """The cotangent of a leaf, from those of its steps or from sums over blocks of them."""
    if steps is not None:
        return steps
    return jnp.moveaxis(compensated_sum(sums), -1, 0)[:, None][:, : leaf.shape[1]]


def _prior(chain: GaussianChain, root, mu, omega):
    """Cotangents of mean0 and sqrt0: L^-T mu and 2 L^-T omega L^-1 sqrt0."""
    whiten = inverse(root)
    sqrt0 = jnp.moveaxis(jnp.broadcast_to(chain.sqrt0, (mu.shape[-1], *chain.sqrt0.shape[1:])), 0, -1)
    d_sqrt = 2 * mm_tn(whiten, mm(omega, mm(whiten, sqrt0)))
    return jnp.moveaxis(mv_t(whiten, mu), -1, 0), jnp.moveaxis(d_sqrt, -1, 0)


@jax.custom_vjp
def _smooth(chain: GaussianChain) -> GaussianSmoothed:
    return _values(chain)[0]


def _forward(chain):
    q, more = _values(chain)
    return q, (chain, q, more)


_smooth.defvjp(_forward, lambda kept, d: (_cotangents(*kept, d),))


def smooth(chain: GaussianChain) -> GaussianSmoothed:
    """Smoothed moments, backward conditionals, increments of log Z and of the KL."""
    if chain.h.shape[1] > LARGEST:
        return gaussian_sequential.smooth(chain)
    q = _smooth(jax.tree.map(lambda x: x[None], chain))
    return jax.tree.map(lambda x: x[0], q)
