"""Composed graphs on data drawn from them: the held-out bound beside slds and lds, and the ARI of every true chain.

python -m benchmarks.composed_recovery --out composed.jsonl --truths factorial hierarchical coupled --seeds 0 1 2

`own` is the generating graph, `slds` has as many states as all chains together, `lds` none; all else is as in
`svae fit` without hidden layers. A row is written when a fit ends, and not made again.
"""

import argparse
import json
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import svae
from benchmarks.composed_truth import TRUTHS
from svae.data.scores import adjusted_rand_index
from svae.queries.batches import posterior, prepare

GRAPHS = ("own", "slds", "lds")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("composed.jsonl"))
    parser.add_argument("--truths", nargs="+", choices=tuple(TRUTHS), default=tuple(TRUTHS))
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=GRAPHS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=300)
    return parser.parse_args()


def main():
    options = arguments()
    lines = options.out.read_text(encoding="utf-8").splitlines() if options.out.exists() else []
    there = {tuple(json.loads(line)[k] for k in ("truth", "graph", "seed", "steps")) for line in lines}
    for seed in options.seeds:
        for truth in options.truths:
            for graph in options.graphs:
                key = truth, graph, seed, options.steps
                if key not in there:
                    row = json.dumps(dict(zip(("truth", "graph", "seed", "steps"), key, strict=True)) | one(*key))
                    print(row, flush=True)
                    with options.out.open("a", encoding="utf-8") as file:
                        file.write(row + "\n")


def one(name: str, kind: str, seed: int, steps: int) -> dict:
    """The held-out bound of one fit, and how well it finds each chain at its start and at its end."""
    truth, began = TRUTHS[name](seed), time.monotonic()
    D = sum(block.get("dimensions", 0) for block in truth.latent.values())
    plain = {"model": kind, "latent_dim": D} | ({"states": truth.states} if kind == "slds" else {})
    options = {"latent": truth.latent} if kind == "own" else plain
    model, held, started = svae.model_for(truth.data, **options, hidden=(), steps=steps, seed=seed), np.nan, None
    for step in svae.fit(model, truth.data):
        model = step.model
        held = step.held_out if np.isfinite(step.held_out) else held
        started = model if step.phase == "states" and step.share == 1.0 else started
    found = {"held_out": float(held), "seconds": round(time.monotonic() - began)}
    if kind == "own":
        found |= {"ari": recovered(model, truth), "ari_at_start": recovered(started, truth)}
    return found


def recovered(model, truth) -> dict[str, float]:
    """ARI of the likeliest path of each chain."""
    scaled, paths = prepare(model, truth.data).scaled, {name: [] for name in truth.chains}
    for y in scaled.sequences:
        found = _paths(model, jnp.asarray(y[:], jnp.float32))
        for name in paths:
            paths[name].append(np.asarray(found[name]))
    return {
        name: round(adjusted_rand_index(np.concatenate(truth.chains[name]), np.concatenate(z)), 3)
        for name, z in paths.items()
    }


@eqx.filter_jit
def _paths(model, y):
    q = posterior(model, y, jnp.ones(len(y), bool), svae.data.Beside())
    return {name: factor.viterbi() for name, factor in q.discrete.items()}


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    main()
