"""Four animals with habits of their own: how near the rows of transitions come to the truth.

python -m benchmarks.habits --out habits.jsonl --seeds 3

Each animal has two recordings of 60 s at 30 frames per second. All share five actions (ways to move in the plane, seen
through twelve noisy columns); row i of animal g is drawn from Dirichlet(kappa beta_i), with bouts of about 0.7 s. Four
answers: `grouped`, the graph with by="animal"; `pooled`, one table for all; `counted`, the bouts of each animal counted
in the answer of `pooled`; `separate`, a fit for each animal. The score is the total variation between an animal's row
and the truth, mean over rows weighted by how often the animal leaves that action: of the whole row, and of where it
goes when it leaves (`next`). States are matched by the frames that they share. A row is written when it is done, and
not made again.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import numpy as np
from scipy.optimize import linear_sum_assignment

import svae

K, ANIMALS, RECORDINGS, FRAMES, COLUMNS, FPS = 5, 4, 2, 1800, 12, 30.0
STAY, KAPPA = 0.95, 8.0  # of a bout; kappa: of where an animal goes when it leaves
ANSWERS = ("known", "grouped", "pooled", "separate")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("habits.jsonl"))
    parser.add_argument("--answers", nargs="+", choices=ANSWERS, default=ANSWERS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=400)
    return parser.parse_args()


def main():
    options = arguments()
    lines = options.out.read_text(encoding="utf-8").splitlines() if options.out.exists() else []
    there = {(row["answer"].split()[0], row["seed"], row["steps"]) for row in map(json.loads, lines)}
    for seed in options.seeds:
        for answer in options.answers:
            if (answer, seed, options.steps) not in there:
                began = time.monotonic()
                found = ANSWER[answer](*animals(seed), seed, options.steps)
                for name, scores in found.items():
                    row = {"answer": name, "seed": seed, "steps": options.steps, "seconds": time.monotonic() - began}
                    row = json.dumps(row | scores)
                    print(row, flush=True)
                    with options.out.open("a", encoding="utf-8") as file:
                        file.write(row + "\n")


# --- the truth ----------------------------------------------------------------------------------------------------


def animals(seed: int):
    """Recordings with their groups, the state of every frame by recording, and the rows of every animal (4, K, K)."""
    rng = np.random.default_rng(seed)
    off = rng.dirichlet(np.ones(K - 1), K)  # where one goes when one leaves, as all share it
    rows = np.zeros((ANIMALS, K, K))
    for g in range(ANIMALS):
        for i in range(K):
            stay = rng.beta(100 * STAY, 100 * (1 - STAY))
            rows[g, i] = np.insert((1 - stay) * rng.dirichlet(KAPPA * off[i]), i, stay)
    angle, place = (
        np.array([0.5, -0.4, 0.25, -0.15, 0.0]),
        2.0 * np.c_[np.cos(np.arange(K) * 1.256), np.sin(np.arange(K) * 1.256)],
    )
    seen, sequences, states, groups = rng.normal(size=(COLUMNS, 2)), {}, {}, {}
    for g in range(ANIMALS):
        for r in range(RECORDINGS):
            name = f"m{g} {r}"
            groups[name], z, x = f"m{g}", rng.integers(K), np.zeros(2)
            path, latent = [], []
            for _ in range(FRAMES):
                z = rng.choice(K, p=rows[g, z])
                turn = 0.9 * np.array([[np.cos(angle[z]), -np.sin(angle[z])], [np.sin(angle[z]), np.cos(angle[z])]])
                x = place[z] + turn @ (x - place[z]) + 0.15 * rng.normal(size=2)
                path.append(z)
                latent.append(x)
            states[name] = np.array(path)
            sequences[name] = np.array(latent) @ seen.T + 0.3 * rng.normal(size=(FRAMES, COLUMNS))
    return svae.data.with_groups(svae.load(sequences, fps=FPS), groups), states, rows


# --- the answers --------------------------------------------------------------------------------------------------


def fitted(data, options, seed, steps):
    """What `svae fit` gives, without hidden layers."""
    model = svae.model_for(data, **options, hidden=(), steps=steps, seed=seed)
    for step in svae.fit(model, data):
        model = step.model
    return model


GROUPED = {
    "latent": {
        "z": {"block": "markov", "states": K, "by": "animal", "concentration": float(K)},
        "x": {"block": "dynamics", "dimensions": 2, "given": ["z"]},
    }
}
PLAIN = {"model": "slds", "states": K, "latent_dim": 2}


def grouped(data, states, rows, seed, steps):
    model = fitted(data, GROUPED, seed, steps)
    own = svae.expfam.map_families(lambda f: f.mean(), model.q.z.transitions)
    found = segmented(model, data)
    order = matched(found, states)
    groups = {name: g for g, name in enumerate(model.layout.groups)}
    tables = np.stack([np.asarray(own)[groups[f"m{g}"]] for g in range(ANIMALS)])
    return {"grouped": scores([tables[g][np.ix_(order, order)] for g in range(ANIMALS)], rows, found, order, states)}


def pooled(data, states, rows, seed, steps):
    model = fitted(data, PLAIN, seed, steps)
    found = segmented(model, data)
    order = matched(found, states)
    table = np.asarray(model.pgm.as_seen(model.q).z.transitions.mean())[np.ix_(order, order)]
    counts = [
        counted({n: z for n, z in found.items() if n.startswith(f"m{g} ")})[np.ix_(order, order)]
        for g in range(ANIMALS)
    ]
    each = [c / c.sum(1, keepdims=True) for c in counts]
    return {
        "pooled": scores([table] * ANIMALS, rows, found, order, states),
        "counted": scores(each, rows, found, order, states),
    }


def separate(data, states, rows, seed, steps):
    tables, right = [], []
    for g in range(ANIMALS):
        chosen = [i for i, name in enumerate(data.names) if name.startswith(f"m{g} ")]
        one = svae.data.take(data, chosen)
        own = {name: states[name] for name in one.names}
        model = fitted(one, PLAIN, seed, steps)
        found = segmented(model, one)
        order = matched(found, own)
        tables.append(np.asarray(model.pgm.as_seen(model.q).z.transitions.mean())[np.ix_(order, order)])
        right.append(scores([tables[-1]], rows[g : g + 1], found, order, own)["right"])
    return {"separate": scores(tables, rows) | {"right": float(np.mean(right))}}


def known(data, states, rows, seed, steps):
    """The three tables where the states are known, as a fit begins with them: no networks, no search."""
    pgm = svae.pgm.from_tables(GROUPED["latent"]).for_groups(ANIMALS)
    latents = [np.zeros((FRAMES, 2)) for _ in data.names]
    every, groups = [np.eye(K)[states[name]] for name in data.names], [int(name[1]) for name in data.names]
    q = pgm.initialize(latents, every, groups=groups)
    pgm = pgm.start(q, latents, every)
    own = np.asarray(pgm.initialize(latents, every, groups=groups).z.transitions.mean())
    counts = [counted({n: z for n, z in states.items() if n.startswith(f"m{g} ")}) for g in range(ANIMALS)]
    mean = lambda c: c / c.sum(1, keepdims=True)  # noqa: E731
    found = {"grouped": own, "pooled": [mean(sum(counts))] * ANIMALS, "separate": [mean(c) for c in counts]}
    return {f"known {name}": scores(tables, rows) for name, tables in found.items()}


ANSWER = {"known": known, "grouped": grouped, "pooled": pooled, "separate": separate}


def segmented(model, data):
    answer = svae.segment(model, data)
    return dict(zip(answer.names, answer.labels, strict=True))


def counted(paths):
    """Counts of a prior row of one, and of all steps."""
    counts = np.full((K, K), 1.0)
    for z in paths.values():
        np.add.at(counts, (z[:-1], z[1:]), 1)
    return counts


def matched(found, states):
    """For each true state, the state that shares most frames with it, one to one."""
    table = np.zeros((K, K))
    for name, z in found.items():
        np.add.at(table, (states[name], z), 1)
    return linear_sum_assignment(-table)[1]


def scores(tables, rows, found=None, order=None, states=None):
    whole, after = [], []
    for table, truth in zip(tables, rows, strict=True):
        weight = stationary(truth) * (1 - np.diag(truth))
        weight = weight / weight.sum()
        leave = lambda p: (p - np.diag(np.diag(p))) / np.maximum(1 - np.diag(p), 1e-12)[:, None]  # noqa: E731
        whole.append(weight @ np.abs(table - truth).sum(1) / 2)
        after.append(weight @ np.abs(leave(table) - leave(truth)).sum(1) / 2)
    result = {"row": float(np.mean(whole)), "next": float(np.mean(after))}
    if found is None:
        return result
    right = np.concatenate([order[states[name]] == z for name, z in found.items()])
    return result | {"right": float(right.mean())}


def stationary(rows):
    values, vectors = np.linalg.eig(rows.T)
    p = np.real(vectors[:, np.argmax(np.real(values))])
    return p / p.sum()


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    main()
