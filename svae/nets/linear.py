"""The linear map at the heart of a network: y ≈ W x + b, the same W (P, D) and b (P,) read in both directions."""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

Module = TypeVar("Module", bound=eqx.Module)


def partial_isometry(P: int, D: int, *, key: PRNGKeyArray) -> Float[Array, "P D"]:
    """Random W (P, D) with W'W = I where P ≥ D and W W' = I where P ≤ D.

    Args:
        P: Rows.
        D: Columns.
        key: The random key.

    Returns:
        W (P, D).
    """
    Q, _ = jnp.linalg.qr(jax.random.normal(key, (max(P, D), min(P, D))))
    return Q if P >= D else Q.T


class Embed(eqx.Module):
    """Latent to datum: W x + b."""

    W: Float[Array, "P D"]
    b: Float[Array, " P"]

    def __call__(self, x: Float[Array, " D"]) -> Float[Array, " P"]:
        return x @ self.W.T + self.b

    def replace(self, W: Float[Array, "P D"], b: Float[Array, " P"]) -> "Embed":
        """The embedding W x + b."""
        return Embed(W, b)


class Project(eqx.Module):
    """Datum to latent: V (y - b), where a missing entry of y stands at its offset and so contributes nothing."""

    V: Float[Array, "D P"]
    b: Float[Array, " P"]

    def __call__(
        self, shown: Float[Array, "T P"], y: Float[Array, "T P"], whole: Bool[Array, ""]
    ) -> Float[Array, "T D"]:
        """Project y, NaN where it is missing; `shown` has 0 there, and `whole` says that no real frame has a gap."""
        return shown @ self.V.T - offsets(self.V, self.b, lax.stop_gradient(y), whole)

    def replace(self, W: Float[Array, "P D"], b: Float[Array, " P"]) -> "Project":
        """The least-squares inverse of W x + b: V = W⁺, which is W' for a partial isometry."""
        return Project(jnp.linalg.pinv(W), b)


@jax.custom_vjp
def offsets(
    V: Float[Array, "D P"], b: Float[Array, " P"], y: Float[Array, "T P"], whole: Bool[Array, ""]
) -> Float[Array, "T D"]:
    """V b of the entries of each frame that are not NaN; of whole frames one vector, and nothing as large is made."""
    alike = lambda: jnp.broadcast_to(b @ V.T, (len(y), len(V)))  # noqa: E731
    return lax.cond(whole, alike, lambda: jnp.where(jnp.isnan(y), 0, b[None]) @ V.T)


def _offsets_forward(V, b, y, whole):
    return offsets(V, b, y, whole), (V, b, y, whole)


def _offsets_backward(kept, d):
    V, b, y, whole = kept

    def alike():
        total = jnp.sum(d, 0)
        return jnp.outer(total, b), total @ V

    def each():
        return d.T @ jnp.where(jnp.isnan(y), 0, b[None]), jnp.sum(jnp.where(jnp.isnan(y), 0, d @ V), 0)

    return *lax.cond(whole, alike, each), jnp.zeros_like(y), None


offsets.defvjp(_offsets_forward, _offsets_backward)


def with_linear_map(module: Module, W: Float[Array, "P D"], b: Float[Array, " P"]) -> Module:
    """`module` with its linear map set from y ≈ W x + b: W x + b in an observation, W⁺ (y - b) in a recognition.

    Give both the same W (P, D), b (P,), from PCA say, and they start as each other's inverse on the span of W.
    P counts the entries of one frame in C order. Of Bernoulli and Poisson observations it is the map to the
    location, before the link.

    Args:
        module: An observation or a recognition with a linear map.
        W: Directions (P, D) of the latents in the data.
        b: The mean (P,).

    Returns:
        The module with that map.
    """
    if module.linear is None:
        raise ValueError("this network has no linear map to set; choose network='residual', which has one")
    return eqx.tree_at(lambda m: m.linear, module, module.linear.replace(W, b))
