"""The frame as the latent itself, without networks: x is the place of y on a plane, found by PCA and then kept.

y = U diag(scale) x + b + e. Within the plane e has the sd SURE in units of x, so that q(x) is all but a point; around
the plane it has `sd` in every direction. With as many dimensions as entries the plane is everything, and x is y.

Of a frame with gaps only the seen entries o count, y_o ~ N(U_o u + b_o, R_oo) with u = diag(scale) x. With G = U_o'U_o,
D = rho / (1 - rho), rho the variance within the plane over that around it, and K = D + I - G,

    R_oo^-1 = (I + U_o K^-1 U_o') / sd^2,    |R_oo| = sd^2|o| |K| / |I + D|,

so that one small matrix a frame is inverted, I - G is the Gram matrix of the missing entries, and nothing cancels.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from svae._linalg import cholesky_and_inverse, logdet_tril, mm, mT, mv
from svae.expfam import Gaussian
from svae.nets.likelihoods import LEAST_SD, GaussianNoise

SURE = 1e-3  # sd of the noise of x itself, whose variance is about 1: float32 can still follow it
MOST_NOISE_WITHIN = 0.5  # of the noise around the plane, that the noise within it may be


class Gram(NamedTuple):
    """What the gaps of every frame leave."""

    G: Float[Array, "T D D"]
    root: Float[Array, "T D D"]  # Cholesky factor of K
    inverse: Float[Array, "T D D"]  # of that


class Plane(eqx.Module):
    """Where frames lie, as vectors of P entries; a column of U with the scale 0 is 0, and x there is free."""

    U: Float[Array, "P D"]
    scale: Float[Array, " D"]
    b: Float[Array, " P"]
    sd: Float[Array, ""]

    @property
    def within(self) -> Float[Array, " D"]:
        """sd of the noise within the plane, in units of y."""
        return jnp.minimum(SURE * self.scale, MOST_NOISE_WITHIN * self.sd)

    @property
    def ratio(self) -> Float[Array, " D"]:
        """D."""
        rho = (self.within / self.sd) ** 2
        return rho / (1 - rho)

    def gram(self, seen: Bool[Array, "T P"]) -> Gram:
        """The `Gram` of every frame; `seen` says which entries it has."""
        outer = (self.U[:, :, None] * self.U[:, None, :]).reshape(len(self.U), -1)
        sums = lambda which: mm(which.astype(self.U.dtype), outer).reshape(len(which), *(2 * [len(self.scale)]))  # noqa: E731
        K = sums(~seen) + jnp.diag(self.ratio + (self.scale == 0))[None]
        return Gram(sums(seen), *cholesky_and_inverse(K))

    def mean(self, x: Float[Array, "T D"]) -> Float[Array, "T P"]:
        """U diag(scale) x + b."""
        return mm(x * self.scale[None], self.U.T) + self.b[None]


def plane_at(W: np.ndarray, b: np.ndarray, sd: np.ndarray) -> Plane:
    """The plane of principal components y = W x + b, whose rest has the sd (P,); all of y where D = P.

    Args:
        W: Components (P, D).
        b: The mean of y (P,).
        sd: What is left of each entry of y beside the components (P,).

    Returns:
        `Plane`.
    """
    P, D = W.shape
    size = np.sqrt((W**2).sum(0))
    scale = np.where(size > 1e-6 * max(size.max(), 1e-12), size, 0)
    around = max(float(np.sqrt((sd**2).sum() / max(P - D, 1))), LEAST_SD)
    U = W / np.where(scale > 0, scale, 1)[None] * (scale > 0)[None]
    values = (np.eye(P), np.ones(P), np.zeros(P), 1.0) if D == P else (U, scale, b, around)
    return Plane(*(jnp.asarray(value, jnp.result_type(float)) for value in values))


def as_it_is(P: int, D: int) -> Plane:
    """The first D entries.

    Args:
        P: Entries of a frame.
        D: How many of them.

    Returns:
        `Plane`.
    """
    return plane_at(np.eye(P, D), np.zeros(P), np.ones(P))


class SeenLatent(eqx.Module):
    """The recognition of a frame that is the latent itself: its likelihood as a potential, exact at every gap."""

    plane: Plane

    def __call__(self, y: Float[Array, "T *event"], mask: Bool[Array, " T"]) -> Gaussian:
        plane, y = lax.stop_gradient(self.plane), y.reshape(len(y), -1)
        seen = ~jnp.isnan(y) & mask[:, None]
        found, scale = plane.gram(seen), plane.scale / plane.sd
        v = mm(jnp.where(seen, y, plane.b[None]) - plane.b[None], plane.U)
        A = mm(found.inverse, found.G)
        J = (found.G + mm(mT(A), A)) * (scale[:, None] * scale[None])[None]
        h = (v + mv(mT(A), mv(found.inverse, v))) * (scale / plane.sd)[None]
        some = jnp.any(seen, -1)[:, None]
        return Gaussian(jnp.where(some[..., None], J, 0), jnp.where(some, h, 0))


class SeenFrame(eqx.Module):
    """p(y | x) of a frame that is the latent itself."""

    plane: Plane
    event_shape: tuple[int, ...] = eqx.field(static=True)

    likelihood = GaussianNoise  # what it says of itself

    def log_prob(self, x: Float[Array, "T D"], y: Float[Array, "T *event"]) -> Float[Array, " T"]:
        """log p(y_t | x_t), of the entries of y_t that are not NaN."""
        return self._score(x, jnp.zeros((len(x), x.shape[1], 0), x.dtype), y)

    def expected_log_prob(
        self, mean: Float[Array, "T D"], root: Float[Array, "T D D"], y: Float[Array, "T *event"]
    ) -> Float[Array, " T"]:
        """E log p(y_t | x_t) for x_t ~ N(mean, root root'), in closed form: of a point a draw is all noise."""
        return self._score(mean, root, y)

    def _score(self, x: Float[Array, "T D"], root: Float[Array, "T D N"], y: Float[Array, "T *event"]) -> Array:
        plane, y = lax.stop_gradient(self.plane), y.reshape(len(y), -1)
        seen = ~jnp.isnan(y)
        found, mean, root = plane.gram(seen), plane.mean(x), plane.scale[None, :, None] * root
        r = jnp.where(seen, y, mean) - mean
        form = jnp.sum(r**2, -1) + jnp.sum(mv(found.inverse, mm(r, plane.U)) ** 2, -1)
        spread = root * mm(found.G, root) + mm(mm(found.inverse, found.G), root) ** 2
        of_K = 2 * logdet_tril(found.root) - jnp.sum(jnp.log1p(plane.ratio))
        quadratic = (form + jnp.sum(spread, (1, 2))) / plane.sd**2
        return -(quadratic + of_K + jnp.sum(seen, -1) * jnp.log(2 * jnp.pi * plane.sd**2)) / 2

    def mean(self, x: Float[Array, "T D"]) -> Float[Array, "T *event"]:
        """E[y_t | x_t]."""
        return lax.stop_gradient(self.plane).mean(x).reshape(len(x), *self.event_shape)

    def simulate(self, x: Float[Array, "T D"], *, key: PRNGKeyArray) -> Float[Array, "T *event"]:
        """y_t ~ p(y_t | x_t)."""
        plane = lax.stop_gradient(self.plane)
        noise = jax.random.normal(key, (len(x), len(plane.b)), x.dtype)
        on = mm(noise, plane.U)
        e = plane.sd * noise + mm(on * (plane.within - plane.sd)[None], plane.U.T)
        return self.mean(x) + e.reshape(len(x), *self.event_shape)

    def draw(self, *, key: PRNGKeyArray) -> "SeenFrame":
        """A point draws itself."""
        return self

    def kl(self) -> Float[Array, ""]:
        """0: a point."""
        return jnp.zeros(())
