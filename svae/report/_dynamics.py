"""What the fitted states say of the latent: mean dynamics, their spectra, and how far states are from each other."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Complex, Float

from svae.report._material import Material

LEFT = 0.05  # of an oscillation after a turn


class Conditionals(NamedTuple):
    """x_t | state k ~ N(W_k u_t, Q_k): u = (x_{t-1}, 1) where there are dynamics, else u = 1."""

    W: Float[np.ndarray, "K D U"]
    Q: Float[np.ndarray, "K D D"]
    beyond: Callable | None = None  # of x (N, D): what a network adds; W has its expansion about 0 already


def conditionals(material: Material) -> Conditionals | None:
    """Means under q(theta); None for a model that has none, and for states above other states."""
    found = material.pgm.conditionals(material.model.q)
    if found is None:
        return None
    root = np.asarray(found.sqrt, float)
    pgm = material.pgm
    bends = pgm.beyond(jnp.zeros((1, found.W.shape[-2]))) is not None
    beyond = (lambda x: np.asarray(pgm.beyond(jnp.asarray(x, found.W.dtype)))) if bends else None
    return Conditionals(np.asarray(found.W, float), root @ np.swapaxes(root, 1, 2), beyond)


def has_dynamics(found: Conditionals | None) -> bool:
    """Whether the latent depends on the one before it."""
    return found is not None and found.W.shape[-1] > 1


def spectrum(found: Conditionals, k: int) -> Complex[np.ndarray, " D"]:
    """Eigenvalues of A_k, the slowest to fade first."""
    values = np.linalg.eigvals(found.W[k, :, :-1]).astype(complex)
    return values[np.argsort(-np.abs(values))]


def in_words(values: Complex[np.ndarray, " D"], fps: float | None) -> str:
    """The frequency of the pair that fades least over a turn, unless little is left of it after one."""
    left = {v: abs(v) ** (2 * np.pi / np.angle(v)) for v in values if v.imag > 1e-6}
    turning = sorted((v for v in left if left[v] > LEFT), key=lambda v: -left[v])
    if not turning:
        return "no oscillation"
    rate = float(np.angle(turning[0])) / (2 * np.pi)
    return f"{rate * fps:.2g} Hz" if fps else f"a turn in {1 / rate:.0f} frames"


class Plane(NamedTuple):
    """The two directions in which the latents vary most."""

    centre: Float[np.ndarray, " D"]
    axes: Float[np.ndarray, "D 2"]
    share: Float[np.ndarray, " 2"]  # of the variance


def plane(material: Material) -> Plane:
    """Principal components of all latent means; the second is empty where the latent has one dimension."""
    x = np.concatenate([p.mean for p in material.posteriors.values()]).astype(float)
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(x.T)))
    axes, shares = vectors[:, ::-1][:, :2], values[::-1][:2] / max(values.sum(), 1e-30)
    if x.shape[1] == 1:
        axes, shares = np.concatenate([axes, np.zeros((1, 1))], 1), np.append(shares, 0.0)
    axes = axes * np.where(axes[np.abs(axes).argmax(0), [0, 1]] < 0, -1, 1)  # a sign that a rerun keeps
    return Plane(x.mean(0), axes, shares)


def divergences(material: Material, found: Conditionals, states: list[int]) -> Float[np.ndarray, "n n"]:
    """(KL_ij + KL_ji) / 2 in nats per frame: how well a frame of state i tells it from state j."""
    second = [_second_moment(material, k, found.W.shape[-1]) for k in states]
    KL = np.array([[_kl(found, i, j, uu) for j in states] for i, uu in zip(states, second, strict=True)])
    return np.maximum(KL + KL.T, 0) / 2


def _second_moment(material, k, U):
    """E[u u'] over the frames of a state."""
    if U == 1:
        return np.ones((1, 1))
    before = [p.mean[:-1][p.state[1:] == k] for p in material.posteriors.values()]
    x = np.concatenate(before).astype(float)
    u = np.concatenate([x, np.ones((len(x), 1))], 1)
    return u.T @ u / max(len(u), 1)


def _kl(found, i, j, uu):
    """KL of N(W_i u, Q_i) from N(W_j u, Q_j), mean over u."""
    gap = found.W[i] - found.W[j]
    inverse = np.linalg.inv(found.Q[j])
    ratio = inverse @ found.Q[i]
    volume = np.linalg.slogdet(ratio)[1]
    return 0.5 * (np.trace(ratio) - len(ratio) - volume + np.trace(inverse @ gap @ uu @ gap.T))
