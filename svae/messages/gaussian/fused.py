"""The Gaussian chain in fused GPU kernels, with the derivative as two more sweeps; the signatures of pure JAX."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from svae._linalg import mv
from svae.messages import gpu
from svae.messages.algebra.compensated import compensated_sum
from svae.messages.gaussian import parallel
from svae.messages.gaussian.chain import GaussianChain, GaussianFiltered, GaussianSmoothed, every_step


def _same(chain: GaussianChain) -> bool:
    """Whether one transition serves all steps."""
    return len(chain.h) > 2 and all(len(x) == 1 for x in chain[2:5])


def _call(name: str, shapes, chain: GaussianChain, *more):
    T, D = chain.h.shape
    return gpu.call(f"svae_gpu_gaussian_{name}{'_same' * _same(chain)}", shapes, *chain, *more, T=T, D=D)


@jax.custom_vjp
def _filter(chain: GaussianChain) -> GaussianFiltered:
    h = chain.h.shape
    return GaussianFiltered(*_call("filter", (h, chain.J.shape, h[:1]), chain))


def _filter_backward(chain, cotangents):
    """The derivative: of increments by the smoother's sweeps, of filtered moments, which no fit needs, by pure JAX."""
    (increments,) = _increments_backward(chain, cotangents.log_z)
    moments = cotangents._replace(log_z=jnp.zeros_like(cotangents.log_z))
    (rest,) = jax.vjp(parallel.filter, chain)[1](moments)
    return (jax.tree.map(jnp.add, increments, rest),)


_filter.defvjp(lambda chain: (_filter(chain), chain), _filter_backward)


@jax.custom_vjp
def _increments(chain: GaussianChain) -> Float[Array, "T"]:
    """The filter's increments of log Z alone: their derivative needs no pure JAX."""
    return _filter(chain).log_z


def _increments_backward(chain, cotangent):
    q, kept = _smooth_forward(chain)
    return _smooth_backward(kept, jax.tree.map(jnp.zeros_like, q)._replace(log_z=cotangent))


_increments.defvjp(lambda chain: (_increments(chain), chain), _increments_backward)


def _outputs(chain: GaussianChain):
    T, D = chain.h.shape
    return (T, D), (T, D, D), (T - 1, D, D), (T - 1, D, D), (T,), (T,)


@jax.custom_vjp
def _smooth(chain: GaussianChain) -> GaussianSmoothed:
    return GaussianSmoothed(*_call("smooth", _outputs(chain), chain))


def _smooth_forward(chain):
    """Smoothing that keeps, of each node, what its derivative would have to find again, as doubles (gaussian.cuh)."""
    T, D = chain.h.shape
    kept = T, (3 * (D * D + D) + 16) * 8 // chain.h.dtype.itemsize
    *q, kept = _call("smooth_kept", (*_outputs(chain), kept), chain)
    q = GaussianSmoothed(*q)
    return q, (chain, q.sqrt, kept)


def _smooth_backward(kept, cotangents):
    chain, *smoothed = kept
    return (GaussianChain(*_call("smooth_vjp", [x.shape for x in chain], chain, *smoothed, *cotangents)),)


_smooth.defvjp(_smooth_forward, _smooth_backward)


@jax.custom_vjp
def _deviations(gain, pushes):
    """e_T = pushes_T, e_t = gain_t e_t+1 + pushes_t."""
    T, D = pushes.shape
    return gpu.call("svae_gpu_gaussian_draw", (pushes.shape,), gain, pushes, T=T, D=D)[0]


def _deviations_forward(gain, pushes):
    e = _deviations(gain, pushes)
    return e, (gain, e)


def _deviations_backward(kept, cotangent):
    gain, e = kept
    T, D = e.shape
    (pulled,) = gpu.call("svae_gpu_gaussian_draw_vjp", (e.shape,), gain, cotangent, T=T, D=D)
    return pulled[:-1, :, None] * e[1:, None, :], pulled


_deviations.defvjp(_deviations_forward, _deviations_backward)


def _as_it_is(chain: GaussianChain) -> GaussianChain:
    """The chain with one transition for all steps, or with one for each."""
    return chain if _same(chain) else every_step(chain)


def filter(chain: GaussianChain) -> GaussianFiltered:
    """Filtered moments and increments of log Z."""
    return _filter(_as_it_is(chain))


def smooth(chain: GaussianChain) -> GaussianSmoothed:
    """Smoothed moments, backward conditionals, increments of log Z and of the KL."""
    return _smooth(_as_it_is(chain))


def log_normalizer(chain: GaussianChain) -> Float[Array, ""]:
    """log Z, the compensated sum of the filter's increments."""
    return compensated_sum(_increments(_as_it_is(chain)))


def sample(smoothed: GaussianSmoothed, *, key) -> Float[Array, "T D"]:
    """A draw of x_1..x_T from q, differentiable in q."""
    noise = jax.random.normal(key, smoothed.mean.shape, smoothed.mean.dtype)
    roots = jnp.concatenate([smoothed.back_sqrt, smoothed.sqrt[-1:]])
    return smoothed.mean + _deviations(smoothed.gain, mv(roots, noise))
