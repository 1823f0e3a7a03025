"""What the place of a frame says of its state: potentials on the discrete states, found when a fit starts.

Dynamics alone tell states apart by how x moves. Many states are places as well: a posture, a syllable. So where a frame
lies among the principal components of the data has a Gaussian in each state, and a share of its log density is a
potential on z_t. The potentials are fixed while a fit goes on: the bound by itself would forget them, because it counts
only what the density of x gains.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from svae._linalg import cholesky_and_inverse, mm, mT, mv

FARTHEST = 3.0  # sd from the mean at which what lies beyond is seen


class Places(eqx.Module):
    """share times log N(place of y_t; mean_k, (root_k' root_k)^-1), up to a constant."""

    W: Float[Array, "P D"]  # y = W x + b with x of unit variance
    b: Float[Array, " P"]
    noise: Float[Array, ""]  # mean variance of what is left over
    scale: Float[Array, " D"]  # of a place; 0 leaves it out
    mean: Float[Array, "K D"]
    root: Float[Array, "K D D"]  # of the precisions
    share: Float[Array, ""]
    missing: bool = eqx.field(static=True)  # whether entries may be missing: each frame then has its own inverse

    def __call__(self, y: Float[Array, "T *event"]) -> Float[Array, "T K"]:
        """Potentials on the states; 0 for a frame without any entry."""
        flat = y.reshape(len(y), -1)
        away = self.place(y)[:, None] - self.mean[None]  # (T, K, D)
        square = jnp.sum(mv(self.root[None], away) ** 2, -1)
        log_det = jnp.sum(jnp.log(jnp.abs(jnp.diagonal(self.root, axis1=-2, axis2=-1))), -1)
        seen = jnp.any(~jnp.isnan(flat), -1)
        return jnp.where(seen[:, None], self.share * (log_det[None] - square / 2), 0)

    def place(self, y: Float[Array, "T *event"]) -> Float[Array, "T D"]:
        """Principal components (T, D) in standard deviations, bounded: a glitch must not get a state of its own."""
        flat = y.reshape(len(y), -1)
        x = jax.vmap(self._posterior_mean)(flat) if self.missing else self._projected(flat)
        return jnp.clip(x * self.scale[None], -FARTHEST, FARTHEST)

    def _projected(self, y: Float[Array, "T P"]) -> Float[Array, "T D"]:
        """The posterior mean of x for whole frames; a missing entry is taken to be at its mean."""
        J = mm(mT(self.W), self.W) + self.noise * jnp.eye(self.W.shape[1])
        return mv(_inverse(J)[None], jnp.where(jnp.isnan(y), 0, y - self.b[None]) @ self.W)

    def _posterior_mean(self, y: Float[Array, " P"]) -> Float[Array, " D"]:
        """The posterior mean of x for one frame, given the entries that are seen (probabilistic PCA)."""
        seen = ~jnp.isnan(y)
        W = jnp.where(seen[:, None], self.W, 0)
        J = mm(mT(W), W) + self.noise * jnp.eye(W.shape[1])
        return mv(_inverse(J), jnp.where(seen, y - self.b, 0) @ W)


def _inverse(J: Float[Array, "D D"]) -> Float[Array, "D D"]:
    R = cholesky_and_inverse(J)[1]
    return mm(mT(R), R)


def no_places(P: int, D: int, K: int, *, missing: bool) -> Places:
    """Potentials that say nothing: what a model has before its fit starts.

    Args:
        P: Entries of a frame.
        D: Latent dimensions.
        K: States.
        missing: Whether frames may have missing entries.

    Returns:
        `Places`.
    """
    eye = jnp.broadcast_to(jnp.eye(D), (K, D, D))
    zeros = jnp.zeros
    return Places(zeros((P, D)), zeros(P), jnp.ones(()), zeros(D), zeros((K, D)), eye, zeros(()), missing)
