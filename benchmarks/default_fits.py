"""The default fit of every kind of recording beside plain models and repeated frames: held-out nats and forecasts.

python -m benchmarks.default_fits --data ../shared/data --out default_fits.jsonl --sets moseq_depth mocap6

`svae fit DATA --fps F` and nothing else. A row has the held-out bound and the best plain model of the run's own
baselines.json, both in nats per frame of the same frames; the error of the mean forecast over that of repeating the
last frame, the largest ratio at any horizon up to one second; and the share of the truth inside the 90 % interval.
Rows that the file has already are not made again; a table of all ends the output.
"""

import argparse
import json
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SETS = {  # files, frames per second where they do not say it
    "moseq_depth": ("moseq_depth/results_00.h5", 30),
    "jabs_video": ("mouse_pose_jabs/silhouettes_v6_32x32.npz", 30),
    "fly_video": ("fly_video/fly1_32x32.npz", 100),
    "openfield_video": ("mouse_openfield_video/*.npz", 30),
    "jabs_pose": ("mouse_pose_jabs/*tracks*.npz", 30),
    "oft_pose": ("mouse_oft_labelled/8_01_A_dlc.csv", 25),
    "bsoid_pose": ("mouse_pose_bsoid/*.csv", 60),
    "oft17_pose": ("mouse_pose_oft17/*.npy", 30),
    "mocap6": ("mocap6/dataset.npz", 10),
    "exercises": ("mocap_cmu_multi/mocap_exercise_30hz.npz", 30),
    "worm": ("worm/*.h5", None),
    "bees": ("bees/*.mat", 30),
    "birdsong": ("birdsong/gy6or6_day1_logmel48.npz", 250),
    "daphnet": ("timeseries/S06R02E0.csv", None),
    "basic_motions": ("timeseries/BasicMotions_TRAIN.ts", 10),
}
FRAMES_WITHOUT_RATE = 30  # of the forecast, where nobody knows how long a frame lasts
LEVEL = 0.9


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("default_fits.jsonl"))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--options", default="", help='added to the command, such as "--max-time 10min"')
    parser.add_argument("--keep", type=Path, help="a folder for the run folders; without it they are not kept")
    return parser.parse_args()


def main():
    options = arguments()
    found = rows(options.out)
    there = {(row["set"], row["seed"], row["options"]) for row in found}
    for name in options.sets:
        if (name, options.seed, options.options) in there:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            home = Path(scratch) if options.keep is None else options.keep
            found.append(one(name, options, home / f"{name}-{options.seed}"))
        print(json.dumps(found[-1]), flush=True)
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found[-1]) + "\n")
    print(table(found))


def rows(path: Path) -> list[dict]:
    """Rows of a file of results."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def one(name: str, options, run: Path) -> dict:
    """The row of one set."""
    files, fps = SETS[name]
    line = [sys.executable, "-m", "svae", "fit", str(options.data / files), "--out", str(run)]
    line += ["--seed", str(options.seed), *([] if fps is None else ["--fps", str(fps)]), *shlex.split(options.options)]
    began = time.monotonic()
    done = subprocess.run(line, capture_output=True, text=True)
    row = {"set": name, "seed": options.seed, "options": options.options}
    if done.returncode:
        return row | {"error": done.stderr[-500:]}
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = {"seconds": round(time.monotonic() - began), "processor_seconds": round(used.ru_utime + used.ru_stime)}
    return row | measured(run, fps or FRAMES_WITHOUT_RATE) | took


def measured(path: Path, horizon: int) -> dict:
    """What the run and forecasts of it reach."""
    from svae.report._forecast import LEVELS, coverage, errors, predict
    from svae.report._material import gather
    from svae.runs import Run

    run = Run(path)
    plain = (run.baselines() or {}).get("baselines") or {}
    best = max(plain, key=plain.get) if plain else None
    facts = {"held_out": run.held_out(), "plain": plain.get(best), "best_plain": best}
    facts |= {"latent_dim": run.config.latent_dim, "states": run.config.states, "target": run.config.target_duration}
    found = predict(gather(run), horizon)
    if found is None:
        return facts
    ours, repeated = errors(found)
    inside = float(coverage(found)[list(LEVELS.round(3)).index(LEVEL)])
    worst = int(np.nanargmax(ours / repeated))
    facts |= {"horizon": len(ours), "ratio": float(ours[worst] / repeated[worst]), "worst_at": worst + 1}
    return facts | {"ratio_at_end": float(ours[-1] / repeated[-1]), "inside_90": inside}


def table(found: list[dict]) -> str:
    """A line for each row, and how many keep to what is asked."""
    lines = [
        "| set | held out | best plain | forecast over repeat, worst | inside 90 % | s |",
        "|---|---|---|---|---|---|",
    ]
    for row in found:
        if "error" in row:
            lines.append(f"| {row['set']} | failed | | | | |")
            continue
        plain = "–" if row["plain"] is None else f"{row['plain']:.2f} ({row['best_plain']})"
        ahead = (
            "– | –" if "ratio" not in row else f"{row['ratio']:.2f} at {row['worst_at']} | {100 * row['inside_90']:.0f}"
        )
        lines.append(f"| {row['set']} | {row['held_out']:.2f} | {plain} | {ahead} | {row['processor_seconds']} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
