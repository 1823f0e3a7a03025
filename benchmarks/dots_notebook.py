"""Dots in the setting of SVAE-Implicit's notebook 04.

python benchmarks/dots_notebook.py --seed 0 --out dots_notebook.json

512 sequences with x0 = i / 8, 50 frames of 10 pixels over 10 time units, noise .06; latent 4, residual networks 3 x 32,
batches of 32. Theirs reach 1.350 nats per pixel on their training data; no bound can pass 1.394, the noise's entropy.
Ours is measured on new sequences from random starts, without the global KL.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import numpy as np

from svae import fit, make, score
from svae.data import synthetic
from svae.progress import bar

WIDTH, NOISE_SD, DT = 10, 0.06, 10 / 49
OPTIONS = {
    "model": "lds",
    "latent_dim": 4,
    "network": "residual",
    "hidden": (32, 32, 32),
    "precision": "full",
    "batch_size": 32,
    "held_out": 0.0,
    "steps": 1500,
    "learning_rate": 2e-2,
    "natural_step": 0.1,
}


def dots(sequences: int, seed: int, x0=None):
    return synthetic.dots(sequences=sequences, width=WIDTH, dt=DT, noise_sd=NOISE_SD, x0=x0, seed=seed)


def measure(seed: int) -> dict:
    """Bounds in nats per pixel, and the seconds that the fit took."""
    train = list(dots(512, seed, np.arange(512) / 8).y)
    test = list(dots(512, seed + 1_000_003).y)
    started = time.monotonic()
    for step in bar(fit(make((WIDTH,), **OPTIONS, seed=seed), train), "dots, notebook setting"):
        model = step.model
    seconds = time.monotonic() - started
    key_test, key_train = jax.random.split(jax.random.key(seed))
    held, trained = score(model, test, key=key_test), score(model, train, key=key_train)
    return {
        "held_out_bound_per_pixel": held.bound / WIDTH,
        "held_out_standard_error": held.standard_error / WIDTH,
        "training_bound_per_pixel": trained.bound / WIDTH,
        "ceiling_per_pixel": float(-0.5 * np.log(2 * np.pi * np.e * NOISE_SD**2)),
        "svae_implicit_on_training_data": 1.350,
        "steps": OPTIONS["steps"],
        "seconds_of_fit": round(seconds, 1),
        "device": jax.devices()[0].device_kind,
        "seed": seed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=None, help="also write the numbers to this file")
    arguments = parser.parse_args()
    text = json.dumps(measure(arguments.seed), indent=2)
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
