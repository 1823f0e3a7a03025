"""Branches on a whole batch: under `vmap` a condition that differs between rows turns both sides into work for all."""

import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool


@custom_vmap
def everywhere(x: Bool[Array, ""]) -> Bool[Array, ""]:
    """x, and all of a batch's under vmap: one answer for all, so that a branch on it stays a branch."""
    return x


@everywhere.def_vmap
def _(size, batched, x):
    return everywhere(jnp.all(x, 0) if batched[0] else x), False
