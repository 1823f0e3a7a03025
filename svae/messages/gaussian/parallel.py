"""The Gaussian chain in logarithmic depth: the filter as an associative scan of square-root elements.

After Sarkka and Garcia-Fernandez (2021) and Yaghoobi et al. (2022), with potentials in place of observations.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from svae._linalg import cholesky_and_inverse, cholesky_semidefinite, eye_like, mm, mT, mv, tria
from svae.messages.algebra.compensated import compensated_sum
from svae.messages.algebra.prefix import prefixes
from svae.messages.algebra.recurrence import parallel_matrices, parallel_vectors
from svae.messages.gaussian import chain as gaussian
from svae.messages.gaussian.chain import GaussianChain, GaussianFiltered, GaussianSmoothed, Moments


class Element(NamedTuple):
    """x -> N(A x + b, U U') exp(-x' Z Z' x / 2 + eta' x), up to a constant: potential first, then transition."""

    A: Float[Array, "S D D"]
    b: Float[Array, "S D"]
    U: Float[Array, "S D D"]
    eta: Float[Array, "S D"]
    Z: Float[Array, "S D D"]


def _combine(first: Element, then: Element) -> Element:
    """first, then `then`: with W = U' Z, G G' = I + W W' and H H' = I + W' W,

    (I + C J)^-1 C = (U G^-T)(U G^-T)' and (I + J C)^-1 J = (Z H^-T)(Z H^-T)'.
    """
    I = eye_like(first.A)
    W = mm(mT(first.U), then.Z)
    G_inv, H_inv = cholesky_and_inverse(jnp.stack([I + mm(W, mT(W)), I + mm(mT(W), W)]))[1]
    U, Z = mm(first.U, mT(G_inv)), mm(then.Z, mT(H_inv))
    AU, AZ = mm(then.A, U), mm(mT(first.A), Z)
    X = I - mm(first.U, mm(mm(W, mT(H_inv)), mT(Z)))  # (I + C J)^-1
    C, J = tria(jnp.stack([jnp.concatenate([AU, then.U], -1), jnp.concatenate([AZ, first.Z], -1)]))
    g = then.eta - mv(then.Z, mv(mT(then.Z), first.b))
    return Element(
        mm(then.A, mm(X, first.A)),
        mv(then.A, first.b) + mv(AU, mv(mT(U), g)) + then.b,
        C,
        mv(mT(first.A), mv(mT(X), g)) + first.eta,
        J,
    )


def _elements(chain: GaussianChain, first: Moments) -> Element:
    """One element a transition; the first has the prior inside and forgets its argument."""
    second = gaussian.predict(*gaussian.update(first, chain.J[0], chain.h[0])[:2], *(x[0] for x in chain[2:5]))
    start = Element(jnp.zeros_like(chain.sqrt0), *second, jnp.zeros_like(chain.mean0), jnp.zeros_like(chain.sqrt0))
    return jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs[1:]]), start, steps(chain))


def steps(chain: GaussianChain) -> Element:
    """One element a transition."""
    return Element(chain.A, chain.b, chain.Q_sqrt, chain.h[:-1], cholesky_semidefinite(chain.J[:-1]))


@jax.custom_jvp
def _predicted(chain: GaussianChain) -> Moments:
    """Moments of p(x_t | potentials before t) for every t."""
    first = Moments(chain.mean0, tria(chain.sqrt0))
    if len(chain.h) == 1:  # no transition to scan
        return jax.tree.map(lambda x: x[None], first)
    found = prefixes(_combine, _elements(chain, first))
    rest = Moments(found.b, found.U)
    return _refine(chain, jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs]), first, rest))


def _refine(chain: GaussianChain, predicted: Moments) -> Moments:
    """Corrects the means by their one-step defects: the prefixes lose means to rounding, covariances not."""
    updated = gaussian.each(gaussian.update)(predicted, chain.J, chain.h)
    defect = mv(chain.A, updated.mean[:-1]) + chain.b - predicted.mean[1:]
    F = gaussian.transfer(chain, gaussian.gram(updated.sqrt[:-1]))
    correction = parallel_vectors(F, jnp.concatenate([jnp.zeros_like(defect[:1]), defect]))
    return predicted._replace(mean=predicted.mean + correction)


@_predicted.defjvp
def _(primals, tangents):
    predicted = _predicted(*primals)
    recursions = parallel_vectors, parallel_matrices
    return predicted, gaussian.predicted_tangents(*primals, *tangents, predicted, *recursions)


def filter(chain: GaussianChain) -> GaussianFiltered:
    """Filtered moments and increments of log Z."""
    chain = gaussian.every_step(chain)
    return gaussian.filtered(chain, _predicted(chain))


def smooth(chain: GaussianChain) -> GaussianSmoothed:
    """Smoothed moments, backward conditionals, increments of log Z and of the KL."""
    chain = gaussian.every_step(chain)
    return gaussian.smoothed(chain, _predicted(chain), parallel_vectors, parallel_matrices)


def log_normalizer(chain: GaussianChain) -> Float[Array, ""]:
    """log Z, the compensated sum of the filter's increments."""
    return compensated_sum(filter(chain).log_z)


def sample(smoothed: GaussianSmoothed, *, key) -> Float[Array, "T D"]:
    """A draw of x_1..x_T from q, differentiable in q."""
    noise = jax.random.normal(key, smoothed.mean.shape, smoothed.mean.dtype)
    return smoothed.mean + gaussian.deviations(smoothed, noise, parallel_vectors)
