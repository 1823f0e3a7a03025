"""All prefixes of an associative product in logarithmic depth, from three compiled copies of the product.

`lax.associative_scan` writes its body out at every level, 2 log T times, and small-matrix algebra compiles slowly.
Here time is cut into chunks: the prefixes of all chunks one step after another, those of the chunk totals by doubling
(Hillis and Steele, 1986), then one product joins them. With chunks of about log T steps that is 3 T products. Not to be
differentiated: those who call it have derivative rules of their own.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def prefixes(combine: Callable, elements: Any) -> Any:
    """x_1, x_1 x_2, x_1 x_2 x_3, ... along the leading axis of a tree; combine(first, then) takes stacks of them."""
    T = len(jax.tree.leaves(elements)[0])
    chunk = max(1, (T - 1).bit_length())
    count = -(-T // chunk)
    inside = _one_after_another(combine, jax.tree.map(lambda x: _chunks(x, count, chunk), elements))
    if count == 1:
        return jax.tree.map(lambda x: x[:, 0], inside)
    totals = _doubling(combine, jax.tree.map(lambda x: x[-1, :-1], inside), count - 1)
    joined = combine(
        jax.tree.map(lambda x: jnp.concatenate([x] * chunk), totals),
        jax.tree.map(lambda x: x[:, 1:].reshape(-1, *x.shape[2:]), inside),
    )
    return jax.tree.map(lambda first, rest: _in_order(first[:, 0], rest, count, chunk)[:T], inside, joined)


def _chunks(x, count, chunk):
    """(chunk, count, ...): chunks side by side, the last filled up with what no prefix uses."""
    full = jnp.concatenate([x, jnp.broadcast_to(x[-1:], (count * chunk - len(x), *x.shape[1:]))])
    return jnp.swapaxes(full.reshape(count, chunk, *x.shape[1:]), 0, 1)


def _in_order(first, rest, count, chunk):
    """The first chunk (chunk, ...) and the others (chunk (count - 1), ...), in the order of time."""
    others = jnp.swapaxes(rest.reshape(chunk, count - 1, *rest.shape[1:]), 0, 1)
    return jnp.concatenate([first, others.reshape(-1, *rest.shape[1:])])


def _one_after_another(combine, elements):
    def step(so_far, element):
        following = combine(so_far, element)
        return following, following

    first = jax.tree.map(lambda x: x[0], elements)
    rest = lax.scan(step, first, jax.tree.map(lambda x: x[1:], elements))[1]
    return jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs]), first, rest)


def _doubling(combine, elements, count):
    """After step k every element is the product of the 2^k up to it."""
    index = jnp.arange(count)

    def step(k, elements):
        shift = 2**k
        earlier = jax.tree.map(lambda x: _delayed(x, shift), elements)
        both = combine(earlier, elements)
        choose = lambda new, old: jnp.where(_like(index >= shift, old), new, old)  # noqa: E731
        return jax.tree.map(choose, both, elements)

    return lax.fori_loop(0, (count - 1).bit_length(), step, elements)


def _delayed(x, shift):
    """x[t - shift], and x itself where there is none: any element that keeps the product finite."""
    return lax.dynamic_slice_in_dim(jnp.concatenate([x, x]), len(x) - shift, len(x))


def _like(flags, x):
    return flags.reshape(-1, *(1,) * (x.ndim - 1))
