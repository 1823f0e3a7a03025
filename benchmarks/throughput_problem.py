"""The model and the batch of benchmarks/throughput.py: frames of a switching system, and a fit that knows it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import svae
from svae.bench._problems import trajectories
from svae.data import Batch
from svae.fitting.loop import start
from svae.fitting.program import stack
from svae.nets import with_linear_map

NOISE = 0.3


def problem(options):
    """The state of a fit whose model knows its system, and a batch of frames; both on the device."""
    B, T, D, K, P = options.batch, options.length, options.latent, options.states, options.side**2
    rng = np.random.default_rng(0)
    x, z = trajectories(B, T, D, K, rng)
    W = np.linalg.qr(rng.normal(size=(P, D)))[0] * np.sqrt(P / D)
    with jax.default_device(jax.devices("cpu")[0]):  # hundreds of small programs, which a GPU compiles slowly
        arrays, static = eqx.partition(_fitted(options, x, z, W), eqx.is_array)
    state = eqx.combine(jax.device_put(arrays, jax.devices()[0]), static)

    @jax.jit
    def frames(x, W):
        return (x @ W.T + NOISE * jax.random.normal(jax.random.key(1), (B, T, P))).reshape(B, T, options.side, -1)

    everything = jnp.ones((B, T), bool)
    piece = frames(jnp.asarray(x, jnp.float32), jnp.asarray(W, jnp.float32)), everything, everything, everything[:, 0]
    return state, Batch(*piece)


def _fitted(options, x, z, W):
    """A state of a fit that knows the latents and the linear map of the data."""
    K, P = options.states, options.side**2
    model = svae.make(
        (options.side, options.side), model="slds", states=K, latent_dim=options.latent, hidden=tuple(options.hidden)
    )
    recognize, observe = (
        with_linear_map(net, jnp.asarray(W), jnp.zeros(P)) for net in (model.recognize, model.observe)
    )
    q = model.pgm.initialize(list(x), list(np.eye(K)[z]))
    q = jax.tree.map(lambda found, like: jnp.asarray(found, like.dtype), q, model.q)
    model = eqx.tree_at(lambda m: (m.q, m.recognize, m.observe), model, (q, recognize, observe))
    model = jax.tree.map(lambda a: jnp.asarray(a, jnp.float32) if eqx.is_inexact_array(a) else a, model)
    return start(stack([model]))
