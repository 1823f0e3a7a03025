"""A million frames of keypoints in five minutes: seconds, agreement with the truth, memory, and the time left it told.

    python -m benchmarks.million_frames [--frames 1000000] [--max-time 5min] [--out million.json]

Recordings of `benchmarks.keypoint_exam` are written as DeepLabCut csv files, and `svae fit --max-time` is run on them
with eight states, as many as there are actions. Its lines tell the time left; from a quarter of the way on each is
compared with what was left. The peak is that of the fitting process. Recordings that are in FOLDER are used again.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks import keypoint_exam
from svae.runs import Run

ROOT = Path(__file__).parents[1]
LENGTH = 50_000  # frames of a recording, about 28 minutes
LEFT = re.compile(r", ([\d.]+) (s|min|h) left$")
UNIT = {"s": 1.0, "min": 60.0, "h": 3600.0}
LATE, SLACK, LEAST_ARI, FACTOR = 0.25, 10.0, 0.6, 2.0  # what is asked for
ENDING = 10.0  # seconds before the end in which a factor says nothing


class Fitted(NamedTuple):
    """A fit from the outside: seconds, exit code, peak of its memory, and (moment, line) of what it said."""

    seconds: float
    code: int
    gigabytes: float
    lines: list[tuple[float, str]]


def write(folder: Path, frames: int, seed: int) -> None:
    """Recordings of LENGTH frames, the last one shorter, and their labels; what is complete stays."""
    done = folder / f"made-{frames}-{seed}"
    if done.exists():
        return
    number = -(-frames // LENGTH)
    recordings, labels = keypoint_exam.make(seed, 0.0, True, number, min(frames, LENGTH))
    keypoint_exam.write(folder, recordings, labels)
    done.touch()


def fitted(arguments: list[str]) -> Fitted:
    """`svae` with these arguments."""
    began, lines = time.monotonic(), []
    command = [sys.executable, "-m", "svae", *arguments]
    settings = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=settings, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)

    def listen():
        for line in process.stderr:
            lines.append((time.monotonic() - began, line.rstrip("\n")))
            print(f"{lines[-1][0]:7.1f} s  {lines[-1][1]}", flush=True)

    listener = threading.Thread(target=listen)
    listener.start()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    ended = time.monotonic() - began
    listener.join()
    return Fitted(ended, process.returncode, used.ru_maxrss / 2**20, lines)


def left_told(fit: Fitted) -> list[tuple[float, float, float]]:
    """(moment, seconds left as told, seconds that were left) from a quarter of the way on."""
    found = []
    for moment, line in fit.lines:
        told, left = LEFT.search(line), fit.seconds - moment
        if told and moment >= LATE * fit.seconds and left >= ENDING:
            found.append((round(moment, 1), float(told[1]) * UNIT[told[2]], round(left, 1)))
    return found


def factor(told: float, left: float) -> float:
    """How far off, as a factor of at least 1."""
    return max(max(told, 1.0) / left, left / max(told, 1.0))


def agreement(run: Run, labels: Path) -> float:
    """ARI of the states with the actions, over all frames."""
    states = np.concatenate([run.states(name) for name in run.recordings()])
    truth = np.concatenate([(labels / f"{name}.csv").read_text().split("\n")[1:-1] for name in run.recordings()])
    return float(adjusted_rand_score(truth, states))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--max-time", default="5min")
    parser.add_argument("--seconds", type=float, default=300.0, help="the same in seconds, to compare with")
    parser.add_argument("--states", type=int, default=len(keypoint_exam.ACTIONS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where the recordings are kept, to be used again")
    parser.add_argument("--out", type=Path, default=Path("million.json"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder, out = given.folder or Path(temporary), Path(temporary) / "run"
        write(folder, given.frames, given.seed)
        limits = ["--fps", "30", "--states", str(given.states), "--max-time", given.max_time, "--seed", str(given.seed)]
        fit = fitted(["fit", str(folder / "recordings"), "--out", str(out), *limits])
        ari = agreement(Run(out), folder / "labels") if (out / "bouts.csv").exists() else None
    told = left_told(fit)
    worst = max((factor(*row[1:]) for row in told), default=None)
    found = {"frames": given.frames, "seconds": round(fit.seconds, 1), "limit": given.seconds, "code": fit.code}
    found |= {"ari": None if ari is None else round(ari, 3), "peak_gb": round(fit.gigabytes, 2)}
    found |= {"time_left_lines": len(told), "time_left_worst_factor": None if worst is None else round(worst, 2)}
    found["cores"], found["load"] = os.cpu_count(), round(os.getloadavg()[0], 1)
    given.out.write_text(json.dumps(found | {"time_left": told, "lines": fit.lines}, indent=1))
    print(json.dumps(found))
    good = fit.code == 0 and fit.seconds <= given.seconds + SLACK and ari is not None and ari >= LEAST_ARI
    return 0 if good and worst is not None and worst <= FACTOR else 1


if __name__ == "__main__":
    sys.exit(main())
