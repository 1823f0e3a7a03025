"""A limit cycle and a pendulum seen through noise: dynamics with a network beside the linear ones of the same size.

    python benchmarks/nonlinear.py --out nonlinear.jsonl                        # all problems, three seeds
    python benchmarks/nonlinear.py --problems pendulum --seeds 0 --steps 300

Recordings are six columns of a state of two dimensions. A third of them is not fitted: held-out nats per frame, and the
root mean square error of the mean forecast 1, 10 and 30 frames ahead, over the standard deviation of the data. `exact`
is the error of a forecast that knows the equations and the last state. A line of --out is a fit; those that the file
has are not fitted again.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import numpy as np

import svae
from svae.pgm import Dynamics, graph

LENGTH, AHEAD, RECORDINGS, COLUMNS = 120, 30, 18, 6
INNER = 5  # Euler steps in a frame
HIDDEN = {"linear": (), "network": (32,)}
MARKS = (1, 10, 30)


def van_der_pol(x):
    return np.stack([x[:, 1], 1.5 * (1 - x[:, 0] ** 2) * x[:, 1] - x[:, 0]], 1)


def pendulum(x):
    """With friction; it is let go from rest, so that it never turns over."""
    return np.stack([x[:, 1], -np.sin(x[:, 0]) - 0.05 * x[:, 1]], 1)


PROBLEMS = {  # name -> velocity, time of a frame, noise of a step, first states
    "van der pol": (van_der_pol, 0.15, 0.05, lambda rng: 1.5 * rng.normal(size=(RECORDINGS, 2))),
    "pendulum": (pendulum, 0.3, 0.02, lambda rng: np.c_[rng.uniform(-2.5, 2.5, RECORDINGS), np.zeros(RECORDINGS)]),
}


def moved(x, problem, rng=None):
    """States (N, 2) one frame on."""
    velocity, frame, noise, _ = PROBLEMS[problem]
    for _ in range(INNER):
        x = x + frame / INNER * velocity(x)
    return x if rng is None else x + noise * rng.normal(size=x.shape)


def recordings(problem, seed):
    """Noisy frames (N, T, P), and those of the equations without noise after frame T - AHEAD."""
    rng = np.random.default_rng(seed)
    x, C = PROBLEMS[problem][3](rng), rng.normal(size=(2, COLUMNS))
    states = []
    for _ in range(LENGTH):
        x = moved(x, problem, rng)
        states.append(x)
    x, known = states[LENGTH - AHEAD - 1], []
    for _ in range(AHEAD):
        x = moved(x, problem)
        known.append(x)
    y = np.stack(states, 1) @ C
    y = y + 0.3 * y.std() * rng.normal(size=y.shape)
    return y.astype(np.float32), np.stack(known, 1) @ C


def errors(found, y):
    """Root mean square over recordings and columns at each mark, in standard deviations of the data."""
    away = np.sqrt(np.mean((found - y[:, -AHEAD:]) ** 2, (0, 2))) / y.std()
    return {f"error_{mark}": round(float(away[mark - 1]), 3) for mark in MARKS}


def one(problem, kind, seed, steps):
    y, known = recordings(problem, seed)
    fitted, held = y[: RECORDINGS * 2 // 3], y[RECORDINGS * 2 // 3 :]
    options = {"network": "affine", "hidden": (), "batch_size": 16, "held_out": 0.0, "steps": steps, "seed": seed}
    model, began = svae.make((COLUMNS,), pgm=graph(x=Dynamics(2, hidden=HIDDEN[kind])), **options), time.monotonic()
    for step in svae.fit(model, list(fitted)):
        model = step.model
    took, key = time.monotonic() - began, jax.random.key(seed)
    score = svae.score(model, list(held), key=key)
    ahead = svae.forecast(model, list(held[:, :-AHEAD]), horizon=AHEAD, samples=100, key=key)
    found = {"problem": problem, "kind": kind, "seed": seed, "steps": steps, "seconds": round(took)}
    found |= {"held_out": round(score.bound, 3)} | errors(np.stack([m.mean(0) for m in ahead.means]), held)
    exact = errors(known[RECORDINGS * 2 // 3 :], held)
    return found | {f"exact_{mark}": exact[f"error_{mark}"] for mark in MARKS}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    options.add_argument("--steps", type=int, default=300)
    options.add_argument("--out", type=Path, default=Path("nonlinear.jsonl"))
    asked = options.parse_args()
    rows = [json.loads(line) for line in asked.out.read_text().splitlines()] if asked.out.exists() else []
    done = {(row["problem"], row["kind"], row["seed"], row["steps"]) for row in rows}
    for seed in asked.seeds:
        for problem in asked.problems:
            for kind in HIDDEN:
                if (problem, kind, seed, asked.steps) not in done:
                    row = json.dumps(one(problem, kind, seed, asked.steps))
                    print(row, flush=True)
                    with asked.out.open("a") as file:
                        file.write(row + "\n")


if __name__ == "__main__":
    main()
