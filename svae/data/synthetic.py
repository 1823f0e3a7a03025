"""The paper's synthetic data: pinwheel, bouncing dots, dots of two speeds, switching rotations."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


class Pinwheel(NamedTuple):
    """y (A n, 2) shuffled points, labels (A n,) the arm of each."""

    y: Float[np.ndarray, "N 2"]
    labels: Int[np.ndarray, " N"]


class Dots(NamedTuple):
    """y (B, T, W) noisy images, clean (B, T, W) noise-free images, position (B, T) of the dot in [-1, 1]."""

    y: Float[np.ndarray, "B T W"]
    clean: Float[np.ndarray, "B T W"]
    position: Float[np.ndarray, "B T"]


class TwoSpeedDots(NamedTuple):
    """One long recording: y and clean (T, W), position (T,), labels (T,) = index of the speed."""

    y: Float[np.ndarray, "T W"]
    clean: Float[np.ndarray, "T W"]
    position: Float[np.ndarray, " T"]
    labels: Int[np.ndarray, " T"]


class Rotations(NamedTuple):
    """y (T, 2), labels (T,) = which rotation made this frame from the last, A (K, 2, 2)."""

    y: Float[np.ndarray, "T 2"]
    labels: Int[np.ndarray, " T"]
    A: Float[np.ndarray, "K 2 2"]


def pinwheel(
    *,
    arms: int = 5,
    points: int = 100,
    radial: float = 0.3,
    tangential: float = 0.05,
    rate: float = 0.25,
    scale: float = 10.0,
    seed: int,
) -> Pinwheel:
    """Arms of points: scale R(2 pi a / A + rate e^r) (r, s), r = 1 + radial e1, s = tangential e2.

    Args:
        arms: The number of arms.
        points: Points of each arm.
        radial: Their spread along the arm.
        tangential: Their spread across the arm.
        rate: How strongly an arm is bent.
        scale: How far from the middle the arms are.
        seed: The seed.

    Returns:
        `Pinwheel`: points y (N, 2) in random order, and the arm of each (N,).

    Examples:
        >>> import svae
        >>> svae.data.pinwheel(arms=3, points=10, seed=0).y.shape
        (30, 2)
    """
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(arms), points)
    r, s = np.array([[1.0], [0.0]]) + np.array([[radial], [tangential]]) * rng.standard_normal((2, len(labels)))
    angle = 2 * np.pi * labels / arms + rate * np.exp(r)
    y = scale * np.stack([np.cos(angle) * r - np.sin(angle) * s, np.sin(angle) * r + np.cos(angle) * s], -1)
    order = rng.permutation(len(labels))
    return Pinwheel(y[order].astype(np.float32), labels[order])


def triangle(u: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """The triangle wave of period 2: -1 at even u, 1 at odd u."""
    return 1 - 2 * np.abs(u % 2 - 1)


def render_dot(position: Float[np.ndarray, "*shape"], width: int, render_sd: float) -> Float[np.ndarray, "*shape W"]:
    """exp(-(x - grid)^2 / 2 render_sd^2) on a grid of `width` points in [-1, 1]."""
    grid = np.linspace(-1, 1, width)
    return np.exp(-((position[..., None] - grid) ** 2) / (2 * render_sd**2))


def dots(
    *,
    sequences: int = 80,
    length: int = 50,
    width: int = 20,
    speed: float = 0.75,
    dt: float = 0.1,
    render_sd: float = 0.15,
    noise_sd: float = 0.1,
    x0: Float[np.ndarray, " B"] | None = None,
    seed: int,
) -> Dots:
    """Bouncing dots x(t) = tri(speed (t + (1 + x0) / 2)), t = 0, dt, ...; x0 None: a random phase of the whole period.

    Defaults are the paper's. SVAE-Implicit's notebook: width=10, dt=10 / 49, noise_sd=.06, x0=arange(512) / 8.

    Args:
        sequences: The number of sequences B.
        length: Frames of each, T.
        width: Pixels of a frame, W.
        speed: How fast the dot moves: the way there and back takes 2 / speed time units.
        dt: Time units between two frames.
        render_sd: Half the width of the dot, where the row of pixels goes from -1 to 1.
        noise_sd: Noise of a pixel.
        x0: The phase at which each sequence begins (B,); random unless given.
        seed: The seed.

    Returns:
        `Dots`: y and clean (B, T, W), and the position (B, T) of the dot.

    Examples:
        >>> import svae
        >>> svae.data.dots(sequences=2, length=5, seed=0).y.shape
        (2, 5, 20)
    """
    rng = np.random.default_rng(seed)
    if x0 is None:
        x0 = rng.uniform(0, 4 / speed, sequences)  # speed x0 / 2 covers one period, 2
    t = dt * np.arange(length)
    position = triangle(speed * (t + (1 + x0[:, None]) / 2))
    clean = render_dot(position, width, render_sd)
    y = clean + noise_sd * rng.standard_normal(clean.shape)
    return Dots(y.astype(np.float32), clean.astype(np.float32), position)


def two_speed_dots(
    *,
    bouts: int = 50,
    bout_length: int = 50,
    speeds: tuple[float, ...] = (1.0, 1.9),
    width: int = 15,
    dt: float = 0.1,
    render_sd: float = 0.15,
    noise_sd: float = 0.1,
    seed: int,
) -> TwoSpeedDots:
    """A dot that changes speed at random times: its phase is the running sum of speed dt, so its path is continuous.

    Args:
        bouts: The number of bouts.
        bout_length: Their mean length in frames.
        speeds: The speeds between which the dot changes.
        width: Pixels of a frame, W.
        dt: Time units between two frames.
        render_sd: Half the width of the dot, where the row of pixels goes from -1 to 1.
        noise_sd: Noise of a pixel.
        seed: The seed.

    Returns:
        `TwoSpeedDots`: y and clean (T, W), the position (T,) of the dot, and the index of its speed (T,).

    Examples:
        >>> import svae
        >>> svae.data.two_speed_dots(bouts=3, bout_length=10, seed=0).y.shape[1]
        15
    """
    rng = np.random.default_rng(seed)
    labels = _bouts(bouts, bout_length, len(speeds), rng)
    position = triangle(rng.uniform(0, 2) + dt * np.cumsum(np.array(speeds)[labels]))
    clean = render_dot(position, width, render_sd)
    y = clean + noise_sd * rng.standard_normal(clean.shape)
    return TwoSpeedDots(y.astype(np.float32), clean.astype(np.float32), position, labels)


def switching_rotations(
    *, states: int = 4, bouts: int = 40, bout_length: int = 100, decay: float = 0.95, noise_sd: float = 0.1, seed: int
) -> Rotations:
    """y_{t+1} = decay R(theta_k) y_t + noise, theta_k evenly in [0, pi / 2], k = labels_{t+1}.

    Args:
        states: The number of rotations K.
        bouts: The number of bouts.
        bout_length: Their mean length in frames.
        decay: How much of y is left after a frame.
        noise_sd: Noise of a frame.
        seed: The seed.

    Returns:
        `Rotations`: y (T, 2), the rotation that made each frame `labels` (T,), and the matrices (K, 2, 2).

    Examples:
        >>> import svae
        >>> data = svae.data.switching_rotations(states=3, bouts=4, bout_length=10, seed=0)
        >>> data.y.shape[1], data.A.shape
        (2, (3, 2, 2))
    """
    rng = np.random.default_rng(seed)
    theta = np.linspace(0, np.pi / 2, states)
    A = decay * np.moveaxis(np.array([[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]]), -1, 0)
    labels = _bouts(bouts, bout_length, states, rng)
    y = noise_sd * rng.standard_normal((len(labels), 2))
    for t in range(1, len(y)):
        y[t] += A[labels[t]] @ y[t - 1]
    return Rotations(y.astype(np.float32), labels, A)


def _bouts(bouts, length, states, rng):
    """Labels of bouts, lengths uniform in [length / 2, 3 length / 2], each another state than the last."""
    steps = rng.integers(1, max(states, 2), bouts)
    labels = (rng.integers(states) + np.cumsum(steps)) % states
    return np.repeat(labels, rng.integers(length // 2, length * 3 // 2 + 1, bouts))
