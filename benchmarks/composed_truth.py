"""Recordings drawn from composed graphs: additive factorial, states of states, two animals that answer each other.

Each has 4 recordings of 2,000 frames, 12 noisy columns, and the path of every chain. numpy only.
"""

from typing import NamedTuple

import numpy as np

import svae
from svae.data import Recordings

RECORDINGS, FRAMES, COLUMNS, FPS = 4, 2000, 12, 30.0


class Truth(NamedTuple):
    """Recordings, states of every chain by recording, the generating graph, and the states of all chains together."""

    data: Recordings
    chains: dict[str, list[np.ndarray]]
    latent: dict
    states: int


def sticky(rng, K, stay):
    """Rows that stay, and else go where a draw says."""
    rows = np.zeros((K, K))
    for i in range(K):
        rows[i] = np.insert((1 - stay) * rng.dirichlet(np.ones(K - 1)), i, stay)
    return rows


def path(rng, rows, T):
    z = [rng.integers(len(rows))]
    for _ in range(T - 1):
        z.append(rng.choice(len(rows), p=rows[z[-1]]))
    return np.array(z)


def turned(places, angles, z, rng, noise=0.15, shrink=0.9):
    """A path in the plane that turns around the place of its state."""
    x, found = np.zeros(2), []
    for k in z:
        c, s = shrink * np.cos(angles[k]), shrink * np.sin(angles[k])
        x = places[k] + np.array([[c, -s], [s, c]]) @ (x - places[k]) + noise * rng.normal(size=2)
        found.append(x)
    return np.array(found)


def around(K, radius=2.0):
    return radius * np.c_[np.cos(np.arange(K) * 2 * np.pi / K), np.sin(np.arange(K) * 2 * np.pi / K)]


def seen(rng, latents):
    """Columns (T, P) of latents, with noise."""
    C = rng.normal(size=(COLUMNS, latents[0].shape[1]))
    return {f"r{i}": x @ C.T + 0.3 * rng.normal(size=(len(x), COLUMNS)) for i, x in enumerate(latents)}


def markov(K, **more):
    return {"block": "markov", "states": K, "concentration": float(K)} | more


def factorial(seed: int) -> Truth:
    """Body (4 states) and face (3 states), whose offsets of the movement add."""
    rng = np.random.default_rng(seed)
    rows, offsets = (sticky(rng, 4, 0.97), sticky(rng, 3, 0.96)), (rng.normal(size=(4, 4)), rng.normal(size=(3, 4)))
    body, face = ([path(rng, r, FRAMES) for _ in range(RECORDINGS)] for r in rows)
    latents = []
    for b, f in zip(body, face, strict=True):
        x, found = np.zeros(4), []
        for i, j in zip(b, f, strict=True):
            x = 0.8 * x + 0.4 * (offsets[0][i] + offsets[1][j]) + 0.15 * rng.normal(size=4)
            found.append(x)
        latents.append(np.array(found))
    latent = {
        "body": markov(4),
        "face": markov(3),
        "x": {"block": "dynamics", "dimensions": 4, "add": ["body", "face"]},
    }
    return Truth(svae.load(seen(rng, latents), fps=FPS), {"body": body, "face": face}, latent, 12)


def hierarchical(seed: int) -> Truth:
    """Two moods of about 10 s, with other transitions between the same 5 actions."""
    rng = np.random.default_rng(seed)
    tables, slow = [sticky(rng, 5, 0.93) for _ in range(2)], sticky(rng, 2, 1 - 1 / 300)
    moods, actions, latents = [], [], []
    for _ in range(RECORDINGS):
        m = path(rng, slow, FRAMES)
        z = [rng.integers(5)]
        for t in range(1, FRAMES):
            z.append(rng.choice(5, p=tables[m[t]][z[-1]]))
        moods.append(m)
        actions.append(np.array(z))
        latents.append(turned(around(5), np.array([0.5, -0.4, 0.25, -0.15, 0.0]), z, rng))
    latent = {
        "mood": markov(2, stickiness=100.0),
        "z": markov(5, given=["mood"]),
        "x": {"block": "dynamics", "dimensions": 2, "given": ["z"]},
    }
    return Truth(svae.load(seen(rng, latents), fps=FPS), {"mood": moods, "z": actions}, latent, 5)


def coupled(seed: int) -> Truth:
    """Two animals of 3 states, each of which tends to do next what the other's state calls for; columns are theirs."""
    rng = np.random.default_rng(seed)
    tables = [[sticky(rng, 3, 0.95) for _ in range(3)] for _ in range(2)]
    first, second, latents = [], [], []
    for _ in range(RECORDINGS):
        a, b = [rng.integers(3)], [rng.integers(3)]
        for _ in range(FRAMES - 1):
            now = rng.choice(3, p=tables[0][b[-1]][a[-1]]), rng.choice(3, p=tables[1][a[-1]][b[-1]])
            a.append(now[0])
            b.append(now[1])
        first.append(np.array(a))
        second.append(np.array(b))
        angles = np.array([0.4, -0.3, 0.0])
        latents.append(np.c_[turned(around(3, 3.0), angles, a, rng), turned(around(3, 1.5), angles, b, rng)])
    C = np.zeros((COLUMNS, 4))
    C[:6, :2], C[6:, 2:] = rng.normal(size=(6, 2)), rng.normal(size=(6, 2))
    columns = {f"r{i}": x @ C.T + 0.3 * rng.normal(size=(len(x), COLUMNS)) for i, x in enumerate(latents)}
    latent = {
        "a": markov(3, after=["b"]),
        "b": markov(3, after=["a"]),
        "x": {"block": "dynamics", "dimensions": 2, "given": ["a"]},
        "w": {"block": "dynamics", "dimensions": 2, "given": ["b"]},
    }
    return Truth(svae.load(columns, fps=FPS), {"a": first, "b": second}, latent, 9)


TRUTHS = {"factorial": factorial, "hierarchical": hierarchical, "coupled": coupled}
