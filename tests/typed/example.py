"""A small project that a type checker reads: every result has its type. `make lint` checks it; no test runs it."""

import jax
import numpy as np

import svae
from svae.sklearn import HMM


def main() -> None:
    recordings: svae.Recordings = svae.load("mouse.csv", fps=30)
    config = svae.Config(model="slds", states=8, latent_dim=4)
    model: svae.SVAE = svae.make((6,), config, key=jax.random.key(0))
    for step in svae.fit(model, recordings, key=jax.random.key(1)):
        model, bound, note = step.model, step.bound, step.note
        print(step.step, bound + 0.0, note.strip(), step.parts.local_kl if step.parts else None)
    labels: list[np.ndarray] = svae.segment(model, recordings).labels
    latents: list[np.ndarray] = svae.infer(model, recordings).mean
    ahead: svae.Forecast = svae.forecast(model, recordings, horizon=10, samples=4, key=jax.random.key(2))
    score: float = svae.score(model, recordings, key=jax.random.key(3)).bound
    svae.save(model, "kept", extra={"score": score})
    print(len(labels), len(latents), ahead.means[0].shape, svae.load_model("kept").config.states, svae.__version__)
    print(HMM(states=4).fit(np.zeros((100, 2))))
