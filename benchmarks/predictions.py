"""One-step and 30-frame predictions of real video that no model has fitted, against two simple ways to foretell it.

python -m benchmarks.predictions --data ../shared/data --seeds 0 1 --out predictions.json

The LDS SVAE of `svae paper mouse` is fitted to all but the last fifth of moseq_depth and of fly_video, and to three of
the four mice of the JABS silhouettes; it foretells the rest from the 128 frames before each place. "repeat" shows the
last frame again. PCA + VAR(1) has as many components as the SVAE has latents; components and the least-squares VAR(1)
with intercept are fitted to the same training frames, and the VAR is iterated from the scores of the last frame.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import numpy as np

from svae import load
from svae.experiments import _predictions, mouse
from svae.experiments._forecast_dynamics import with_foresight
from svae.experiments._videos import new_model
from svae.fitting.loop import fit

SETS = {
    "moseq_depth": "moseq_depth/results_00.h5",
    "jabs": "mouse_pose_jabs/silhouettes_v6_32x32.npz",
    "fly_video": "fly_video/fly1_32x32.npz",
}


def predicted(path, seed, s, net):
    """RMSE by horizon of each way to foretell, and what it took."""
    raw, started, cpu = load(path), time.monotonic(), time.process_time()
    train, tested = _predictions.split_last_fifth(raw)
    for step in fit(new_model(train, mouse.config(s, net, seed)), train):
        model = step.model
    sighted = with_foresight(model, train, s.horizon)
    chosen = _predictions.places(raw, tested, s.context, s.horizon, s.places)
    errors = _predictions.errors(sighted, train, raw, chosen, s.context, s.horizon, jax.random.key(seed))
    clocks = {"seconds": round(time.monotonic() - started, 1), "cpu_seconds": round(time.process_time() - cpu, 1)}
    about = {"training_frames": train.frames, "places": len(chosen), "steps": step.step}
    return errors, about | clocks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds the sets")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--net", choices=["mlp", "conv"], default="mlp")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--places", type=int, default=120)
    parser.add_argument("--out", default="predictions.json")
    options = parser.parse_args()
    settings, found = mouse.SETTINGS._replace(steps=options.steps, places=options.places), []
    for name in options.sets:
        for seed in options.seeds:
            errors, about = predicted(options.data / SETS[name], seed, settings, options.net)
            summary = _predictions.summary(errors)
            found.append({"set": name, "seed": seed, "rmse": summary, **about, "by_horizon": _lists(errors)})
            print(f"{name}, seed {seed}: {about}", *_predictions.rows(summary), "", sep="\n", flush=True)
            Path(options.out).write_text(json.dumps(found, indent=1))


def _lists(errors):
    return {name: np.asarray(values).tolist() for name, values in errors.items()}


if __name__ == "__main__":
    main()
