"""A synthetic mouse: top-down depth video of a body that switches between stereotyped actions, with the truth.

An action is a way of moving, not a way of looking. The pose has two planes, sideways (bend, yaw) and upright (stretch,
pitch), and an action turns each plane at its own speed and direction, or lets it relax, so that the same single poses
occur in many actions. The generator is frozen: to change its numbers is to change the exam, benchmarks/mouse_exam.py.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

FPS = 30.0
SIZE = 30  # pixels
POSE_NAMES = ("bend", "yaw", "stretch", "pitch", "x", "y", "heading")
_SECONDS = (0.3, 1.5)  # shortest and longest bout
_GROWTH = 0.25  # how fast an oscillation finds its reach, per frame
_CROP_MEMORY, _CROP_NOISE = 0.97, 0.12  # the egocentric crop is not perfect: x, y (pixels) and heading drift a little
_HEADING_UNIT = 0.12  # radians of heading error for one unit of the pose
_SENSOR_NOISE = 0.03


class Action(NamedTuple):
    """Turns per second of the two planes (0: relax instead, keeping `memory` per frame), the (bend, yaw) it relaxes to,
    the noise sd per frame, and the amplitude that turning reaches."""

    name: str
    sideways: float
    upright: float
    memory: float = 0.93
    target: tuple[float, float] = (0.0, 0.0)
    noise: float = 0.05
    reach: float = 1.0


ACTIONS = (
    Action("walk", 2.0, 0.0, noise=0.08),
    Action("run", 4.5, 0.0, noise=0.12),
    Action("scan", -2.0, 0.0, noise=0.08),
    Action("rear", 0.0, 1.2),
    Action("sniff", 0.0, 4.5, noise=0.12),
    Action("groom", -3.5, -3.0, noise=0.09, reach=0.7),
    Action("curl", 0.0, 0.0, 0.9, (1.3, 1.3)),
    Action("freeze", 0.0, 0.0, 0.995, noise=0.015),
)


class Mouse(NamedTuple):
    """y (B, T, 30, 30) depth, about 0 to 1; labels (B, T) in 0..K-1; poses (B, T, 7) in the order of POSE_NAMES."""

    y: Float[np.ndarray, "B T 30 30"]
    labels: Int[np.ndarray, "B T"]
    poses: Float[np.ndarray, "B T 7"]
    action_names: tuple[str, ...]
    fps: float


def mouse(*, sequences: int = 32, length: int = 250, seed: int = 0) -> Mouse:
    """Draw labels, then poses given labels, then images given poses.

    Args:
        sequences: The number of videos B.
        length: Frames of each, T.
        seed: The seed.

    Returns:
        `Mouse`: y (B, T, 30, 30), the true actions `labels` (B, T), poses, names of the actions, frames a second.

    Examples:
        >>> import svae
        >>> video = svae.data.mouse(sequences=1, length=40)
        >>> video.y.shape, video.action_names[:2]
        ((1, 40, 30, 30), ('walk', 'run'))
    """
    rng = np.random.default_rng(seed)
    labels = np.stack([_draw_labels(length, rng) for _ in range(sequences)])
    poses = _draw_poses(labels, rng)
    clean = render(poses.reshape(-1, poses.shape[-1])).reshape(sequences, length, SIZE, SIZE)
    y = clean + _SENSOR_NOISE * rng.standard_normal(clean.shape, dtype=np.float32)
    return Mouse(y, labels, poses, tuple(action.name for action in ACTIONS), FPS)


def _draw_labels(length, rng):
    """Bouts of log-uniform duration; the next action is any other one, equally likely."""
    label, labels = int(rng.integers(len(ACTIONS))), np.zeros(0, int)
    while len(labels) < length:
        frames = round(FPS * float(np.exp(rng.uniform(*np.log(_SECONDS)))))
        labels = np.append(labels, np.full(frames, label))
        label = (label + int(rng.integers(1, len(ACTIONS)))) % len(ACTIONS)
    return labels[:length]


def dynamics() -> tuple[Float[np.ndarray, "K 7 7"], Float[np.ndarray, "K 7"]]:
    """The linear part of every action, A_k and b_k of x' = A_k x + b_k + noise, at amplitude 1."""
    A, b = np.zeros((len(ACTIONS), 7, 7)), np.zeros((len(ACTIONS), 7))
    for k, action in enumerate(ACTIONS):
        A[k, 0:2, 0:2] = _plane(action.sideways, action.memory)
        A[k, 2:4, 2:4] = _plane(action.upright, action.memory)
        A[k, 4:7, 4:7] = _CROP_MEMORY * np.eye(3)
        b[k, 0:2] = (1 - action.memory) * np.array(action.target)
    return A, b


def _plane(hertz, memory):
    """A rotation, or a relaxation where there is nothing to turn."""
    angle = 2 * np.pi * hertz / FPS
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) * (1.0 if hertz else memory)


def _draw_poses(labels, rng):
    """x_{t+1} = growth(x_t) A_k x_t + b_k + noise with k = labels_{t+1}: (B, T, 7)."""
    A, b = dynamics()
    turning = np.array([[action.sideways != 0, action.upright != 0] for action in ACTIONS])
    reach = np.array([action.reach for action in ACTIONS])
    sd = np.array([[action.noise] * 4 + [_CROP_NOISE] * 3 for action in ACTIONS])
    noise = sd[labels] * rng.standard_normal((*labels.shape, 7))
    x = np.empty_like(noise)
    x[:, 0] = rng.standard_normal(noise[:, 0].shape) * 0.6
    for t in range(1, labels.shape[1]):
        k = labels[:, t]
        x[:, t] = (
            _growth(x[:, t - 1], turning[k], reach[k]) * np.einsum("bij,bj->bi", A[k], x[:, t - 1]) + b[k] + noise[:, t]
        )
    return x.astype(np.float32)


def _growth(x, turning, reach):
    """(B, 7) factor that pulls a turning plane softly to its reach; 1 elsewhere."""
    radius = np.linalg.norm(x[:, :4].reshape(-1, 2, 2), axis=-1)
    factor = 1 + turning * _GROWTH * np.clip(reach[:, None] - radius, -0.5, 0.5)
    return np.concatenate([np.repeat(factor, 2, axis=-1), np.ones((len(x), 3))], axis=-1)


def render(poses: Float[np.ndarray, "N 7"]) -> Float[np.ndarray, "N 30 30"]:
    """Noise-free depth images of poses: a soft maximum of smooth ellipsoids along a bent spine."""
    chunks = np.array_split(poses.astype(np.float32), max(1, len(poses) // 500))
    return np.concatenate([_depth(_body(chunk)) for chunk in chunks])


def _body(poses):
    """Ellipsoids (N, parts, 6): centre x, y in pixels (nose to the right), angle, half length, half width, height."""
    bend, yaw, stretch, pitch, x, y, heading = np.clip(poses, -2, 2).T
    spine, up = 1 + 0.22 * stretch, 0.5 * (1 + np.tanh(1.1 * pitch))
    turn, length, width = 0.5 * bend, 6.2 * spine, 4.3 / np.sqrt(spine)
    neck = (0.4 * turn + 0.68 * yaw, 5.0 * (1 - 0.35 * up))  # direction and reach of the head
    hips, shoulders = _along(0, 0, -turn, -0.62 * length), _along(0, 0, 0.5 * turn, 0.55 * length)
    head = _along(*shoulders, *neck)
    nose = _along(*head, neck[0], 2.6 * (1 - 0.3 * up))
    ears = [_along(*head, neck[0] + side, 2.4) for side in (2.0, -2.0)]
    tail, angle = [hips], np.pi - 0.8 * turn
    for joint in range(4):
        tail.append(_along(*tail[-1], angle + 0.45 * joint * bend, 3.4 if joint == 0 else 2.0))
    height = 0.62 - 0.1 * stretch
    one = np.ones_like(bend)
    parts = [
        (*hips, -turn, 0.72 * width * spine, width, height),
        (0 * one, 0 * one, 0 * one, 0.62 * length, 0.88 * width, height + 0.06 * up),
        (*shoulders, turn, 3.4 * one, 0.74 * width, 0.48 + 0.3 * up),
        (*head, neck[0], 2.9 * one, 2.3 + 0.3 * up, 0.36 + 0.5 * up),
        (*nose, neck[0], 1.9 * one, 1.2 * one, 0.26 + 0.42 * up),
        *((*ear, neck[0], 1.1 * one, 1.1 * one, 0.42 + 0.5 * up) for ear in ears),
        *((*joint, angle, 1.6 * one, 0.9 * one, 0.22 * one) for joint in tail[1:]),
    ]
    return _place(np.stack([np.stack(part, -1) for part in parts], 1), x, y, _HEADING_UNIT * heading)


def _along(x, y, angle, distance):
    """The point at a distance in a direction."""
    return x + distance * np.cos(angle), y + distance * np.sin(angle)


def _place(parts, x, y, heading):
    """Turn and shift the whole body: the error of the egocentric crop."""
    c, s = np.cos(heading)[:, None], np.sin(heading)[:, None]
    px, py = parts[..., 0].copy(), parts[..., 1].copy()
    parts[..., 0], parts[..., 1] = c * px - s * py + x[:, None], s * px + c * py + y[:, None]
    parts[..., 2] += heading[:, None]
    return parts


def _depth(parts):
    """(N, 30, 30) = (sum over parts of bump^4)^(1/4), bump = height exp(-d^4 / 2), d in the part's own axes."""
    grid = np.arange(SIZE, dtype=np.float32) - (SIZE - 1) / 2
    total = np.zeros((len(parts), SIZE, SIZE), np.float32)
    for x, y, angle, long, wide, height in np.moveaxis(parts, 0, -1)[..., None, None]:
        dx, dy = grid[None, None, :] - x, grid[None, :, None] - y
        u = (np.cos(angle) * dx + np.sin(angle) * dy) / long
        v = (np.cos(angle) * dy - np.sin(angle) * dx) / wide
        d2 = u * u + v * v
        total += height**4 * np.exp(-2 * d2 * d2)
    return np.sqrt(np.sqrt(total))
