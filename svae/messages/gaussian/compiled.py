"""The Gaussian chain in compiled kernels, with the derivative as two more sweeps; the signatures of pure JAX."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from svae.messages import kernels
from svae.messages.algebra.compensated import compensated_sum
from svae.messages.gaussian.chain import GaussianChain, GaussianFiltered, GaussianSmoothed

if not kernels.status().serve:
    raise ImportError(kernels.status().reason)


def _shapes(chain: GaussianChain):
    T, D = chain.h.shape
    return {"T": T, "D": D}, [x.shape for x in chain]


@jax.custom_vjp
def _filter(chain: GaussianChain) -> GaussianFiltered:
    size, (*_, J, h) = _shapes(chain)
    return GaussianFiltered(*kernels.call("svae_gaussian_filter", (h, J, h[:1]), *chain, **size))


def _filter_forward(chain):
    return _filter(chain), chain


def _filter_backward(chain, cotangents):
    size, shapes = _shapes(chain)
    return (GaussianChain(*kernels.call("svae_gaussian_filter_vjp", shapes, *chain, *cotangents, **size)),)


_filter.defvjp(_filter_forward, _filter_backward)


@jax.custom_vjp
def _smooth(chain: GaussianChain) -> GaussianSmoothed:
    return _smooth_forward(chain)[0]


def _smooth_forward(chain):
    size, (*_, J, h) = _shapes(chain)
    steps = J[0] - 1, *J[1:]
    *moments, shift = kernels.call("svae_gaussian_smooth", (h, J, steps, steps, h[:1], h[:1], h), *chain, **size)
    q = GaussianSmoothed(*moments)
    return q, (chain, q.sqrt, q.gain, q.back_sqrt, shift)


def _smooth_backward(kept, cotangents):
    chain, *smoothed = kept
    size, shapes = _shapes(chain)
    operands = *chain, *smoothed, *cotangents
    return (GaussianChain(*kernels.call("svae_gaussian_smooth_vjp", shapes, *operands, **size)),)


_smooth.defvjp(_smooth_forward, _smooth_backward)


@jax.custom_vjp
def _draw(mean, last, gain, back, noise):
    """x_t - mean_t = gain (x_t+1 - mean_t+1) + back noise_t, begun with the last step's own root."""
    T, D = noise.shape
    return kernels.call("svae_gaussian_sample", (noise.shape,), mean, last, gain, back, noise, T=T, D=D)[0]


def _draw_forward(mean, last, gain, back, noise):
    x = _draw(mean, last, gain, back, noise)
    return x, (gain, noise, x - mean)


def _draw_backward(kept, cotangent):
    gain, noise, _ = kept
    T, D = noise.shape
    shapes = (D, D), gain.shape, gain.shape
    roots = kernels.call("svae_gaussian_sample_vjp", shapes, *kept, cotangent, T=T, D=D)
    return cotangent, *roots, jnp.zeros_like(noise)


_draw.defvjp(_draw_forward, _draw_backward)


def filter(chain: GaussianChain) -> GaussianFiltered:
    """Filtered moments and increments of log Z."""
    return _filter(chain)


def smooth(chain: GaussianChain) -> GaussianSmoothed:
    """Smoothed moments, backward conditionals, increments of log Z and of the KL."""
    return _smooth(chain)


def log_normalizer(chain: GaussianChain) -> Float[Array, ""]:
    """log Z, the compensated sum of the filter's increments."""
    return compensated_sum(filter(chain).log_z)


def sample(smoothed: GaussianSmoothed, *, key) -> Float[Array, "T D"]:
    """A draw of x_1..x_T from q, differentiable in q."""
    noise = jax.random.normal(key, smoothed.mean.shape, smoothed.mean.dtype)
    return _draw(smoothed.mean, smoothed.sqrt[-1], smoothed.gain, smoothed.back_sqrt, noise)
