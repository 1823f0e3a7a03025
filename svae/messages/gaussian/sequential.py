"""The Gaussian chain, one step after another; only the filter's recursion is inside a nonlinear scan."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from svae._linalg import tria
from svae.messages.algebra.compensated import compensated_sum
from svae.messages.algebra.recurrence import matrices, vectors
from svae.messages.gaussian import chain as gaussian
from svae.messages.gaussian.chain import GaussianChain, GaussianFiltered, GaussianSmoothed, Moments


@jax.custom_jvp
def _predicted(chain: GaussianChain) -> Moments:
    """Moments of p(x_t | potentials before t) for every t."""

    def step(predicted, inputs):
        A, b, Q_sqrt, J, h = inputs
        m, L = gaussian.update(predicted, J, h)[:2]
        predicted = gaussian.predict(m, L, A, b, Q_sqrt)
        return predicted, predicted

    first = Moments(chain.mean0, tria(chain.sqrt0))
    rest = lax.scan(step, first, (chain.A, chain.b, chain.Q_sqrt, chain.J[:-1], chain.h[:-1]))[1]
    return jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs]), first, rest)


@_predicted.defjvp
def _(primals, tangents):
    predicted = _predicted(*primals)
    return predicted, gaussian.predicted_tangents(*primals, *tangents, predicted, vectors, matrices)


def filter(chain: GaussianChain) -> GaussianFiltered:
    """Filtered moments and increments of log Z."""
    chain = gaussian.every_step(chain)
    return gaussian.filtered(chain, _predicted(chain))


def smooth(chain: GaussianChain) -> GaussianSmoothed:
    """Smoothed moments, backward conditionals, increments of log Z and of the KL."""
    chain = gaussian.every_step(chain)
    return gaussian.smoothed(chain, _predicted(chain), vectors, matrices)


def log_normalizer(chain: GaussianChain) -> Float[Array, ""]:
    """log Z, the compensated sum of the filter's increments."""
    return compensated_sum(filter(chain).log_z)


def sample(smoothed: GaussianSmoothed, *, key) -> Float[Array, "T D"]:
    """A draw of x_1..x_T from q, differentiable in q."""
    noise = jax.random.normal(key, smoothed.mean.shape, smoothed.mean.dtype)
    return smoothed.mean + gaussian.deviations(smoothed, noise, vectors)
