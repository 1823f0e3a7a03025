"""The search for states alone, against labels: principal scores in, the states of a start out, and no fit.

python -m benchmarks.segmentation.starts --data ../shared/data --sets mocap6 mouse --durations guess none 12

Seconds for a set, where a fit takes minutes. `guess` is the duration that a fit without one asks for, `none` asks for
no duration, and a number is in frames. Recordings longer than --frames in all are cut at their ends.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.segmentation import scores, sets
from benchmarks.segmentation.__main__ import NUMBERS
from benchmarks.segmentation.table import measure_of
from svae.starting import find_states


class Scored(NamedTuple):
    """What a search is given, and what it is scored by."""

    latents: list[np.ndarray]
    places: list[np.ndarray]
    labels: list[np.ndarray]
    kind: str
    states: int
    guess: float


def prepared(name: str, data: Path) -> Scored:
    """Posterior means and places of every frame in model units, as a fit has them before its first step."""
    import jax.numpy as jnp

    import svae
    from svae.data import recordings, sample_frames
    from svae.fitting import initialize, warm_up
    from svae.fitting.prepare import prepare

    with tempfile.TemporaryDirectory() as scratch:
        part = sets.read(name, data, Path(scratch))
        found = svae.load(part.source, fps=part.fps) if part.source else recordings(part.sequences)
        model, ready, _ = prepare(svae.model_for(found, states=part.true_states, held_out=0), found)
        seen = ready.train
        model = initialize.at_pca(model, initialize.pca_for(model, sample_frames(seen, warm_up.PCA_FRAMES, 0)))
        T, simple, both = max(map(len, seen.sequences)), warm_up._with_standard(model), []
        for y in seen.sequences:
            frames = np.asarray(y[:])
            padded = np.concatenate([frames, np.zeros((T - len(frames), *frames.shape[1:]), frames.dtype)])
            mask = np.arange(T) < len(frames)
            both.append(
                np.asarray(warm_up._guess(simple, model.places, jnp.asarray(padded)[None], jnp.asarray(mask)[None]))
            )
        D, n = model.config.latent_dim, [len(y) for y in seen.sequences]
        x = [b[0, :t] for b, t in zip(both, n, strict=True)]
        guess = model.config.target_duration
        parts = [a[:, :D] for a in x], [a[:, D:] for a in x]
        return Scored(*parts, part.labels, part.score, part.true_states, guess)


def cut(scored: Scored, frames: int) -> Scored:
    """The first part of every recording, so many frames in all about."""
    share = min(1.0, frames / sum(map(len, scored.latents)))
    n = [max(2, round(share * len(x))) for x in scored.latents]
    return scored._replace(
        **{
            name: [x[:t] for x, t in zip(getattr(scored, name), n, strict=True)]
            for name in ("latents", "places", "labels")
        }
    )


def row(name: str, scored: Scored, states: str, duration: str, seed: int) -> dict:
    """What one search found."""
    asked = {"guess": scored.guess, "none": None}.get(duration) if duration in ("guess", "none") else float(duration)
    K, began = NUMBERS[states] * scored.states, time.process_time()
    found = find_states(scored.latents, K, dynamic=True, duration=asked, seed=seed, places=scored.places)
    seconds = time.process_time() - began
    z = [w.argmax(-1) for w in found.weights]
    score = scores.scores(scored.kind, scored.labels, z)[measure_of(name)]
    followed = found.starts.duration
    return {
        "part": name, "states": states, "seed": seed, "asked": asked, "followed": followed, "place": found.place,
        "score": round(score, 3), "number": found.number, **{k: round(v, 3) for k, v in scores.shape(z).items()},
        "cost": round(found.switch_cost, 1), "seconds": round(seconds, 1),
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=list(sets.SETS))
    parser.add_argument("--durations", nargs="+", default=["guess"])
    parser.add_argument("--states", nargs="+", choices=("true", "twice"), default=["true"])
    parser.add_argument("--frames", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    for name in sets.parts(options.sets):
        scored = cut(prepared(name, options.data), options.frames)
        for seed in range(options.seeds):
            for states in options.states:
                for duration in options.durations:
                    print(json.dumps(row(name, scored, states, duration, seed)), flush=True)


if __name__ == "__main__":
    main()
