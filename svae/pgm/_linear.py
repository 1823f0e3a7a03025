"""Linear-Gaussian conditionals with known parameters: draws and densities."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from svae._linalg import inv_tril, logdet_tril, mm, mT, tria
from svae.expfam import LinearGaussian


def gaussian_step(theta: LinearGaussian, u: Float[Array, " U"], *, key: PRNGKeyArray) -> Float[Array, " D"]:
    """x ~ N(W u, sqrt sqrt')."""
    return theta.W @ u + theta.sqrt @ jax.random.normal(key, theta.W.shape[:1], theta.W.dtype)


def log_normal(theta: LinearGaussian, x: Float[Array, "T D"], u: Float[Array, "T U"]) -> Float[Array, " T"]:
    """log N(x_t; W u_t, sqrt sqrt')."""
    L = tria(theta.sqrt)
    whitened = mm(inv_tril(L), mT(x - mm(u, mT(theta.W))))
    return -jnp.sum(whitened**2, 0) / 2 - logdet_tril(L) - x.shape[-1] / 2 * jnp.log(2 * jnp.pi)


def log_normal_by_state(theta: LinearGaussian, x: Float[Array, "T D"], u: Float[Array, "T U"]) -> Float[Array, "T K"]:
    """`log_normal` of each of K conditionals."""
    return mT(jax.vmap(log_normal, (0, None, None))(theta, x, u))


def ones(x: Float[Array, "T D"]) -> Float[Array, "T 1"]:
    """The regressor u = 1 of independent steps."""
    return jnp.ones((len(x), 1), x.dtype)


def previous(x: Float[Array, "T D"], inputs: Float[Array, "T n"] | None = None) -> Float[Array, "T-1 U"]:
    """The regressors u_t = (x_{t-1}, inputs of t, 1) of a chain."""
    known = jnp.zeros((len(x) - 1, 0), x.dtype) if inputs is None else inputs[1:]
    return jnp.concatenate([x[:-1], known, ones(x)[1:]], -1)


def select(theta: Any, k: Int[Array, ""]) -> Any:
    """Parameters of state k of a batch of K."""
    return jax.tree.map(lambda leaf: leaf[k], theta)
