"""The six latent models on fixed inputs in float64: what their posterior, bound and gradients were is in numbers/."""

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import svae
from svae import expfam, store
from svae.expfam import Gaussian
from svae.messages import fixed_point

FOLDER = Path(__file__).parent
NAMES = ("vae", "gaussian", "gmm", "hmm", "lds", "slds")
B, T, D, K, P = 2, 12, 3, 3, 4


def converged(f, node, args):
    return fixed_point(f, node, args, tolerance=1e-13, max_iterations=2000)


def recordings() -> dict[str, np.ndarray]:
    """Two recordings of 40 frames of 3 numbers: what the run folders were fitted to."""
    rng = np.random.default_rng(0)
    return {name: np.cumsum(rng.normal(size=(40, 3)), 0).astype(np.float32) for name in ("one", "two")}


def model(name: str) -> svae.SVAE:
    """Networks with full precision, and q(theta) after random latents in three soft clusters."""
    options = {"latent_dim": D, "states": K, "hidden": (4,), "precision": "full", "concentration": 2.0}
    made = svae.make((P,), key=jax.random.key(0), model=name, stickiness=1.5, **options)
    rng = np.random.default_rng(3)
    latents = [np.cumsum(0.6 * rng.normal(size=(30, D)), 0) for _ in range(2)]
    soft = [np.exp(x @ rng.normal(size=(D, K))) for x in latents]
    q = made.pgm.initialize(latents, [w / w.sum(1, keepdims=True) for w in soft])
    pgm = dataclasses.replace(made.pgm, solve=converged)
    return dataclasses.replace(made, pgm=pgm, q=q)


def frames():
    """y with missing entries, a missing frame and, in the second sequence, padding."""
    y = np.random.default_rng(4).normal(size=(B, T, P))
    y[0, 1, 2], y[1, 4] = np.nan, np.nan
    return jnp.asarray(y), jnp.ones((B, T), bool).at[1, 9:].set(False)


def potentials() -> Gaussian:
    rng = np.random.default_rng(5)
    L = rng.normal(size=(T, D, D))
    return Gaussian(jnp.asarray(L @ np.swapaxes(L, 1, 2)), jnp.asarray(2 * rng.normal(size=(T, D))))


def numbers(name: str) -> dict[str, np.ndarray]:
    """Posterior, bound, gradients and density of one model, by name; in float64."""
    made, (y, mask) = model(name), frames()
    theta = expfam.map_families(lambda f: f.mean(), made.q)
    x = np.random.default_rng(6).normal(size=(T, D))

    @jax.jit
    def all_of_it(y, mask, psi, x):
        posterior = made.pgm.infer(expfam.moments(made.q), psi, mask[1])
        found = svae.value_and_grad(made, y, mask, num_data=5, key=jax.random.key(1))
        return posterior, found, made.pgm.log_prob(_as_sampled(theta), x, mask[1])

    posterior, (bound, gradient), log_prob = all_of_it(y, mask, potentials(), jnp.asarray(x))
    parts = {"kl": posterior.kl, "log_normalizer": posterior.log_normalizer, "states": posterior.states}
    parts |= {"mean": posterior.mean(), "sd": posterior.sd(), "viterbi": posterior.viterbi(), "log_prob": log_prob}
    arrays = {f"posterior.{key}": np.asarray(value) for key, value in parts.items()}
    arrays |= {f"bound.{key}": np.asarray(value) for key, value in bound._asdict().items()}
    arrays |= {f"gradient.{key}": value for key, value in store.arrays_of(gradient).items()}
    kept = {key: value for key, value in store.arrays_of(made).items() if not key.startswith("places.")}  # came later
    return arrays | {f"model.{key}": value for key, value in kept.items()}


def _as_sampled(theta):
    """Rows of probabilities as their logarithms, the form in which `log_prob` takes parameters."""
    is_linear = lambda t: isinstance(t, expfam.LinearGaussian)  # noqa: E731
    return jax.tree.map(lambda t: t if is_linear(t) else jnp.log(t), theta, is_leaf=is_linear)
