"""The recognition that is exact: the potentials of a linear-Gaussian observation are its likelihood itself."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from svae.expfam import Gaussian
from svae.nets.observation import Observation


class Conjugate(eqx.Module):
    """log N(y; W x + b, diag sd²) as a potential of x: J = W' diag(o/sd²) W, h = W' diag(o/sd²) (y - b).

    o is 1 at the observed entries. With this in place of a network the SVAE is exact inference, missing entries and
    P < D included. It learns W, b and log sd like any other recognition.
    """

    W: Float[Array, "P D"]
    b: Float[Array, " P"]
    log_sd: Float[Array, " P"]

    def __call__(self, y: Float[Array, "T *event"], mask: Bool[Array, " T"]) -> Gaussian:
        return jax.vmap(self.potential)(y.reshape(len(y), -1), mask)

    def potential(self, y: Float[Array, " P"], real: Bool[Array, ""]) -> Gaussian:
        """The potential of one frame."""
        observed = ~jnp.isnan(y) & real
        weighted = self.W * jnp.where(observed, jnp.exp(-2 * self.log_sd), 0)[:, None]
        residual = jnp.where(observed, y, self.b) - self.b
        J = jnp.matmul(weighted.T, self.W, precision="highest")
        return Gaussian(J, jnp.matmul(residual, weighted, precision="highest"))


def conjugate(observe: Observation) -> Conjugate:
    """The exact recognition of an affine Gaussian observation with fixed or learned sd.

    Args:
        observe: An affine observation with Gaussian noise.

    Returns:
        A recognition network without parameters of its own.
    """
    linear = observe.linear
    log_sd = jnp.asarray(observe.likelihood.scale(jnp.zeros(0)), linear.b.dtype)
    return Conjugate(linear.W, linear.b, jnp.broadcast_to(log_sd, observe.event_shape).reshape(-1))
