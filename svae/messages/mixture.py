"""The algebra of one step of a mixture of regressions x | u in mean field: in compiled kernels, or in pure JAX.

Beside the chains it is what a sweep of mean field is made of. XLA's batched products of small matrices cost ten times
the kernels', which take many steps in lanes; pure JAX is their oracle.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from svae._linalg import cholesky_and_inverse, logdet_tril, mm, mT
from svae.messages import kernels, served


class Blend(NamedTuple):
    """With C C' = P of [P, H, G]: M = P^-1 H, sqrt = C^-T, E = G - H'P^-1 H, log_size = log |C|."""

    M: Float[Array, "D U"]
    sqrt: Float[Array, "D D"]
    E: Float[Array, "U U"]
    log_size: Float[Array, ""]


def blend_pure(row: Float[Array, " n"], D: int) -> Blend:
    U = _regressors(len(row), D)
    P, H, G = row[: D * D].reshape(D, D), row[D * D : D * (D + U)].reshape(D, U), row[D * (D + U) :].reshape(U, U)
    C, C_inv = cholesky_and_inverse(P)
    half = mm(C_inv, H)
    return Blend(mm(mT(C_inv), half), mT(C_inv), G - mm(mT(half), half), logdet_tril(C))


def _regressors(n: int, D: int) -> int:
    """U of n = D D + D U + U U."""
    return next(U for U in range(n) if n == D * D + D * U + U * U)


def moments_pure(centre, mean, before, sqrt, gain, back) -> Float[Array, "N N"]:
    """E (r, u)(r, u)': u = (x_, 1), r = x - centre u, x = mean + sqrt e, x_ = before + gain (x - mean) + back e'."""
    D = len(mean)
    u = jnp.concatenate([mm(gain, sqrt), back, before[:, None]], -1)
    u = jnp.concatenate([u, jnp.zeros((1, 2 * D + 1), mean.dtype).at[0, -1].set(1)])
    x = jnp.concatenate([sqrt, jnp.zeros_like(back), mean[:, None]], -1)
    v = jnp.concatenate([x - mm(centre, u), u])
    return mm(v, mT(v))


def _blend_forward(row, D):
    U = _regressors(len(row), D)
    found = Blend(*kernels.call("svae_mixture_blend", ((D, U), (D, D), (U, U), ()), row, T=U, D=D))
    return found, (found.M, found.sqrt)


def _blend_backward(D, kept, cotangents):
    U = kept[0].shape[1]
    return tuple(kernels.call("svae_mixture_blend_vjp", ((D * D + D * U + U * U,),), *kept, *cotangents, T=U, D=D))


_blend = jax.custom_vjp(lambda row, D: _blend_forward(row, D)[0], nondiff_argnums=(1,))
_blend.defvjp(_blend_forward, _blend_backward)


@jax.custom_vjp
def _moments(*joint):
    D = len(joint[1])
    return kernels.call("svae_mixture_moments", (((2 * D + 1) * (D + 1),),), *joint, T=D + 1, D=D)[0]


def _moments_backward(joint, cotangent):
    D = len(joint[1])
    shapes = [x.shape for x in joint[1:]]
    found = kernels.call("svae_mixture_moments_vjp", shapes, *joint, cotangent, T=D + 1, D=D)
    return jnp.zeros_like(joint[0]), *found


_moments.defvjp(lambda *joint: (_moments(*joint), joint), _moments_backward)


def _compiled(D: int) -> bool:
    return served.row(served.GAUSSIAN, D, served.backend()).module == "gaussian.compiled"


def blend(row: Float[Array, " n"], D: int) -> Blend:
    """The `Blend` of one step's [P (D, D), H (D, U), G (U, U)] in a row."""
    return _blend(row, D) if _compiled(D) else blend_pure(row, D)


def quadratic(
    form: Float[Array, "K N N"], centre: Float[Array, "D U"], *joint: Float[Array, "T ..."]
) -> Float[Array, "T K"]:
    """E (r, u)' form_k (r, u) at every step, forms symmetric; `joint` is mean, before, sqrt, gain, back of each step.

    `centre` is taken as a constant: r and the forms are about it, and what they give does not depend on it.
    """
    axes, centre = (None, 0, 0, 0, 0, 0), jax.lax.stop_gradient(centre)
    if not _compiled(len(centre)):
        S = jax.vmap(moments_pure, axes)(centre, *joint)
        return mm(S.reshape(len(S), -1), form.reshape(len(form), -1).T)
    rows, columns = np.tril_indices(form.shape[1])
    packed = form[:, rows, columns] * np.where(rows == columns, 1, 2)[None].astype(form.dtype)
    return mm(jax.vmap(_moments, axes)(centre, *joint), packed.T)
