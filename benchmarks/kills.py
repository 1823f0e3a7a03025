"""Kill a small run at random moments, resume it, and compare its end bit for bit with a run that nobody touched.

    python benchmarks/kills.py --kills 200 --together 20              # kill -9
    python benchmarks/kills.py --kills 20 --together 1 --signal TERM   # or INT: these must save before they leave

A process holds several runs, one in each of its threads, and a kill stops each of them wherever it is; it counts once
for each run that was not at its end. They are killed again and again until all have ended. Most moments are drawn from
the time in which steps are taken and saved, some from the start of the process. After each kill every folder must be
readable and hold every checkpoint that its log has acknowledged.
"""

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from svae import runs
from svae._sealed import MANIFEST
from svae.config import Config
from svae.data import recordings
from svae.runs import _checkpoints

ROOT = Path(__file__).parents[1]
LEFT = {"KILL": {-signal.SIGKILL}, "TERM": {143, -signal.SIGTERM}, "INT": {130, -signal.SIGINT}}
STEPS = 600


def data():
    """Five short random walks."""
    walks = {f"walk {i}": np.random.default_rng(i).normal(size=(30, 3)).cumsum(0) for i in range(5)}
    return recordings(walks, fps=10.0)


def child(home: Path, model: str, together: int) -> None:
    """Start or resume all runs, to their ends."""
    if together == 1:  # signals reach the main thread only
        return one(home / "0", model)
    left = [home / str(i) for i in range(together) if not ended(home / str(i))]
    threads = [threading.Thread(target=one, args=(folder, model)) for folder in left]
    for number, thread in enumerate(threads):
        thread.start()
        while number == 0 and thread.is_alive() and not measured(left[0]):
            time.sleep(0.01)  # the first compiles for all
    for thread in threads:
        thread.join()
    return None


def one(folder: Path, model: str) -> None:
    options = {"model": model, "states": 2, "latent_dim": 2, "network": "affine"}
    config = Config.make(options | {"steps": STEPS, "warmup_steps": 5, "batch_size": 2, "held_out": 0.2})
    run = runs.Run(folder) if runs.is_run(folder) else runs.start(folder, data(), config)
    runs.train(run, data(), resume=True)


def ended(folder: Path) -> bool:
    return runs.is_run(folder) and runs.Run(folder).provenance()["status"] == "finished"


def measured(folder: Path) -> bool:
    """Whether the session that is going on has measured the held-out bound."""
    after = runs.Run(folder).provenance()["sessions"][-1:] if runs.is_run(folder) else []
    return bool(after) and any(
        m["held_out"] is not None and m["step"] > after[0]["after_step"] for m in metrics(folder)
    )


def launch(home: Path, model: str, cache: Path, together: int) -> subprocess.Popen:
    """The child as a process of its own; compiled programs are kept between lives."""
    settings = {
        "PYTHONPATH": str(ROOT),
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    command = [sys.executable, __file__, "--child", str(home), "--model", model, "--together", str(together)]
    return subprocess.Popen(command, env=os.environ | settings, stderr=subprocess.PIPE)


def fingerprint(folder: Path) -> dict[str, str]:
    """What must be the same: parameters, answers, and the numbers of every step."""
    manifest = json.loads((folder / "model" / MANIFEST).read_text())
    steps = [[m[k] for k in ("step", "phase", "bound", "held_out", "states_in_use", "note")] for m in metrics(folder)]
    answers = [file.read_bytes() for file in sorted((folder / "posterior").glob("*.nc"))]
    parts = {
        "model": manifest["file"]["sha256"],
        "steps": json.dumps(steps),
        "bouts": (folder / "bouts.csv").read_text(),
    }
    texts = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in parts.items()}
    return texts | {"posterior": hashlib.sha256(b"".join(answers)).hexdigest()}


def metrics(folder: Path) -> list[dict]:
    return runs.Run(folder).metrics()


def acknowledged(folder: Path) -> int:
    """The last step whose checkpoint the log says is saved."""
    log = folder / "log.txt"
    steps = re.findall(r"step (\d+): checkpoint saved\n", log.read_text()) if log.exists() else []
    return max(map(int, steps), default=0)


def check(folder: Path, kind: str, code: int) -> tuple[str, int]:
    """What is wrong after a kill ("" if nothing), and the step that a resume would go on from."""
    if not runs.is_run(folder):
        return ("" if not (folder / "metrics.jsonl").exists() else "a run that has metrics is no run"), 0
    try:
        told, point = metrics(folder), _checkpoints.newest(folder)
    except ValueError as error:
        return f"unreadable: {error}", 0
    step = 0 if point is None else point.step
    if step < acknowledged(folder):
        return f"step {acknowledged(folder)} was acknowledged, but {step} is the newest", step
    fitted = [line for line in told if line["phase"] == "fit"]
    if kind != "KILL" and code in (130, 143) and fitted and step != told[-1]["step"]:
        return f"stopped at step {told[-1]['step']}, but saved {step}", step
    return "", step


def all_runs(home, model, cache, kind, rng, typical, together) -> dict:
    """Kill until all runs have ended by themselves."""
    folders = [home / str(i) for i in range(together)]
    found = {"kills": 0, "lives": 0, "problems": [], "saved": []}
    while not all(map(ended, folders)):
        process = launch(home, model, cache, together)
        try:
            process.wait(_moment(folders, rng, typical, process))
        except subprocess.TimeoutExpired:
            process.send_signal(getattr(signal, f"SIG{kind}"))
        error = process.communicate()[1].decode()
        found["lives"] += 1
        if process.returncode == 0:
            continue
        if process.returncode not in LEFT[kind] and "KeyboardInterrupt" not in error:
            found["problems"].append(f"exit {process.returncode}: {error[-300:]}")
        for folder in (f for f in folders if not ended(f)):
            problem, step = check(folder, kind, process.returncode)
            found["kills"] += 1
            found["saved"].append(step)
            found["problems"] += [problem] if problem else []
        print(json.dumps({k: found[k] for k in ("kills", "lives", "problems")}), flush=True)
    return found | {"ends": [fingerprint(folder) for folder in folders]}


def _moment(folders, rng, typical, process) -> float:
    """Seconds to wait: one in six from the start of the process, the others from its first measurement."""
    if rng.random() < 1 / 6:
        return rng.uniform(0, typical["life"])
    left = next(f for f in folders if not ended(f))
    while process.poll() is None and not measured(left):
        time.sleep(0.02)
    return rng.uniform(0, typical["steps"] * len(folders) / 4)


def campaign(kills: int, kind: str, model: str, seed: int, together: int) -> dict:
    rng, began = random.Random(seed), time.monotonic()
    found = {"kills": 0, "lives": 0, "runs": 0, "different": 0, "problems": [], "saved": []}
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        for name in ("compiling", "whole"):
            start = time.monotonic()
            if launch(home / name, model, home / "cache", 1).wait() != 0:
                raise SystemExit("the run does not even end when nobody touches it")
        told = metrics(home / "whole" / "0")
        typical = {"life": time.monotonic() - start, "steps": told[-1]["seconds"] - told[5]["seconds"]}
        whole = fingerprint(home / "whole" / "0")
        found["repeatable"] = whole == fingerprint(home / "compiling" / "0")
        while found["kills"] < kills:
            result = all_runs(home / "runs", model, home / "cache", kind, rng, typical, together)
            found |= {k: found[k] + result[k] for k in ("kills", "lives", "problems", "saved")}
            found["runs"] += together
            found["different"] += sum(end != whole for end in result["ends"])
            shutil.rmtree(home / "runs")
            print(json.dumps({k: found[k] for k in ("kills", "lives", "runs", "different", "problems")}), flush=True)
    return found | {"signal": kind, "model": model, "typical_seconds": typical, "seconds": time.monotonic() - began}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--signal", choices=sorted(LEFT), default="KILL")
    parser.add_argument("--model", default="lds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--together", type=int, default=20, help="runs in one process")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        try:
            child(given.child, given.model, given.together)
        except KeyboardInterrupt:
            raise SystemExit(130) from None
        return
    found = campaign(given.kills, given.signal, given.model, given.seed, given.together)
    print(json.dumps(found))
    raise SystemExit(bool(found["different"] or found["problems"] or not found["repeatable"]))


if __name__ == "__main__":
    main()
