"""What the tests of sharding run in a process with four virtual devices: prints JSON.

python tests/sharded.py quick
"""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np

from svae import devices, fit, make
from svae.bound import value_and_grad
from svae.config import Config
from svae.messages import HMMChain, time_sharded
from svae.messages.gaussian import sequential as gaussian_sequential
from svae.messages.hmm import sequential as hmm_sequential
from tests.messages import oracles


def swings():
    """Eight noisy swings of 40 frames."""
    rng, t = np.random.default_rng(0), np.arange(40.0)
    waves = [np.stack([np.sin(0.2 * t + i), np.cos(0.2 * t + i), 0.3 * np.sin(0.1 * t)], -1) for i in range(8)]
    return [wave + 0.1 * rng.normal(size=wave.shape) for wave in waves]


def config(model, steps):
    states = {"states": 3} if model in ("gmm", "hmm", "slds") else {}
    network = {"network": "affine", "latent_dim": 2, "warmup_steps": 2, "batch_size": 4, "seed": 1}
    return Config.make({"model": model, "steps": steps, "held_out": 0.25, "patience": None, **states, **network})


def flat(tree):
    """Each array of a tree as a list."""
    return [np.ravel(x).astype(float).tolist() for x in jax.tree.leaves(tree) if hasattr(x, "dtype") and x.size]


def trained(model, steps):
    """The bound of every step and the parameters at the end."""
    taken = list(fit(make((3,), config(model, steps)), swings()))
    return {"bounds": [s.bound for s in taken if s.state is not None], "parameters": flat(taken[-1].model)}


def apart(found, expected):
    """|a - b| / |b| of the array that is furthest off."""
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(found, expected, strict=True)]
    return max(float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30)) for a, b in pairs)


def one_gradient(model):
    """Bound and gradients of one batch, shared over the devices and on one of them: how far apart.

    The residual, the change of a node in the last sweep, is left out: next to the node it is rounding.
    """
    svae = make((3,), config(model, 1))
    y = jnp.asarray(np.stack(swings()[:4]), jnp.float32)
    mask = jnp.arange(40)[None] < jnp.array([40, 31, 40, 17])[:, None]
    call = jax.jit(lambda arrays, y, mask: value_and_grad(arrays, y, mask, num_data=8.0, key=jax.random.key(3)))
    alone = call(svae, y, mask)
    mesh = devices.mesh(4)
    with devices.over(mesh):
        shared = call(devices.replicated(svae, mesh), *devices.spread((np.asarray(y), np.asarray(mask)), mesh))
    assert len(y.sharding.device_set) == 1 and len(shared[0].bound.sharding.device_set) == 4
    return apart(*(flat((bound._replace(residual=()), gradient)) for bound, gradient in (devices.local(shared), alone)))


def time_sharing():
    """Smoothers of one chain, over the devices along time and on one device: the largest difference, in float64."""
    mesh, rng = jax.sharding.Mesh(np.array(jax.devices()), ("time",)), np.random.default_rng(0)
    with jax.enable_x64(True):
        chain = jax.tree.map(jnp.asarray, oracles.gaussian_chain(rng, 22, 2, missing=0.3))
        logs = (jnp.asarray(rng.normal(size=shape)) for shape in ((3,), (3, 3), (22, 3)))
        hmm = HMMChain(*logs, jnp.arange(22) < 13)
        pairs = [
            (time_sharded.gaussian_smooth(chain, mesh), jax.jit(gaussian_sequential.smooth)(chain)),
            (time_sharded.hmm_smooth(hmm, mesh), jax.jit(hmm_sequential.smooth)(hmm)),
        ]
        return [max(float(jnp.max(jnp.abs(a - b))) for a, b in zip(*pair, strict=True)) for pair in pairs]


def gradients():
    """Of mean field models, whose fixed points take as many sweeps on each device as its own rows need."""
    return {model: one_gradient(model) for model in ("gmm", "slds")}


FOUND = {"quick": lambda: {"time": time_sharing(), "fit": trained("gaussian", 3)}, "gradients": gradients}

if __name__ == "__main__":
    assert len(jax.devices()) == 4
    print(json.dumps(FOUND[sys.argv[1]]()))
