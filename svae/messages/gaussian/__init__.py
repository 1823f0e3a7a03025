"""The Gaussian chain, by the form that serves its size on this backend (`served.TABLE`)."""

from jaxtyping import Array, Float

from svae.messages import served
from svae.messages.gaussian.chain import GaussianChain, GaussianFiltered, GaussianSmoothed


def filter(chain: GaussianChain) -> GaussianFiltered:
    """Filtered moments and increments of log Z."""
    return served.form(served.GAUSSIAN, chain.h.shape[-1]).filter(chain)


def smooth(chain: GaussianChain) -> GaussianSmoothed:
    """Smoothed moments, backward conditionals, increments of log Z and of the KL."""
    return served.form(served.GAUSSIAN, chain.h.shape[-1]).smooth(chain)


def log_normalizer(chain: GaussianChain) -> Float[Array, ""]:
    """log Z, the compensated sum of the filter's increments."""
    return served.form(served.GAUSSIAN, chain.h.shape[-1]).log_normalizer(chain)


def sample(smoothed: GaussianSmoothed, *, key) -> Float[Array, "T D"]:
    """A draw of x_1..x_T from q, differentiable in q."""
    return served.form(served.GAUSSIAN, smoothed.mean.shape[-1]).sample(smoothed, key=key)
