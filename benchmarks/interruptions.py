"""Ctrl-C, SIGTERM and --max-time at random moments of a fit from the command line: what is answered, ended, saved.

    python benchmarks/interruptions.py --moments 50 --out interruptions.json

Each moment is one life of `svae fit`, drawn over all phases of a life that nobody touched: reading, warming up, the
search for states, compiling, steps, measurements, answers, baselines. Every other life has no compiled programs to
read, so that it may be met while it compiles. Measured are the seconds from the signal (or from the end of the time,
counted from the start of the process) to the first sentence and to the end of the process, whether a sentence says
what is saved, and whether the run goes on from there when it is resumed.

Moments that the file of --out has already are not met again, so that a campaign may be stopped and go on; at the end it
prints a row for each phase, and how many moments kept the promise.
"""

import argparse
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

from svae.runs import is_run

ROOT = Path(__file__).parents[1]
KINDS = {"INT": 130, "TERM": 143, "TIME": 0}
ANSWERED, ENDED, COMPILING = 2.0, 10.0, 30.0  # seconds: to the sentence, to the end, to the end while it compiles
SAID = re.compile(r"svae: (Ctrl-C|SIGTERM|stopped by|the time (is|was) over)")
SAVED = re.compile(r"(is saved in|are saved in|has no checkpoint yet|nothing was fitted|stopped by)")
WORDS = {"compiling": "compiling", "warming": "warm-up", "finding": "states", "fitting": "fit", "labelling": "labels"}


def walk(file: Path, frames: int) -> None:
    """A recording that turns at a rate that changes every 100 frames, in 12 columns."""
    rng = np.random.default_rng(0)
    rates = np.repeat(rng.choice([0.1, 0.25, 0.5], -(-frames // 100)), 100)[:frames]
    angle = np.cumsum(rates)
    y = np.stack([np.cos(angle), np.sin(angle)], 1) @ rng.normal(size=(2, 12))
    np.save(file, (y + 0.1 * rng.normal(size=y.shape)).astype(np.float32))


class Life:
    """One process of `svae fit`, and what it says, line by line, with the moment of each."""

    def __init__(self, arguments: list[str], cache: Path):
        settings = os.environ | {"PYTHONPATH": str(ROOT), "JAX_COMPILATION_CACHE_DIR": str(cache)}
        settings |= {"PYTHONFAULTHANDLER": "1"}
        settings |= {
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        command = [sys.executable, "-m", "svae", "fit", *arguments]
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            command, env=settings, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        self.lines: list[tuple[float, str]] = []
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append((time.monotonic(), line.rstrip("\n")))

    def ended(self, timeout: float) -> float | None:
        """The moment of the end; None where there was none in time."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # it then tells where each of its threads is
            self.process.wait()
            self.reader.join()
            return None
        moment = time.monotonic()
        self.reader.join()
        return moment

    def goes_on(self, timeout: float) -> bool:
        """Whether it comes to a step, or to its end; it is stopped then."""
        until = time.monotonic() + timeout
        while self.process.poll() is None and self.phase(time.monotonic()) not in ("states", "fit", "labels"):
            if time.monotonic() > until:
                break
            time.sleep(0.1)
        came = self.process.poll() is None and time.monotonic() <= until
        self.process.send_signal(signal.SIGTERM)
        self.ended(60.0)
        return self.process.returncode == 0 or (came and self.process.returncode == 143)

    def phase(self, moment: float) -> str:
        """What it was doing then, by its last line before."""
        for at, line in reversed(self.lines):
            found = re.match(r"svae: [^:]*: (\w+)", line)
            if at <= moment and found and found[1] in WORDS:
                return WORDS[found[1]]
        return "reading"


def arguments(data: Path, out: Path, steps: int, model: str) -> list[str]:
    fixed = ["--fps", "30", "--states", "6", "--latent-dim", "3", "--steps", str(steps), "--set", "patience=100"]
    return [str(data), "--out", str(out), "--model", model, *fixed]


def moment(home: Path, kind: str, after: float, cache: Path, given: list[str]) -> dict:
    """One life that is stopped after so many seconds, and the one that goes on."""
    out = home / "run"
    shutil.rmtree(out, ignore_errors=True)
    limit = ["--max-time", f"{after:.2f}s"] if kind == "TIME" else []
    life = Life([*given, *limit], cache)
    over = False
    if kind != "TIME":
        time.sleep(after)
        over = life.process.poll() is not None  # before the signal
        if not over:
            life.process.send_signal(getattr(signal, f"SIG{kind}"))
    asked = life.began + after
    ended = life.ended(120.0)
    answers = [at for at, line in life.lines if SAID.search(line)]
    early = ended is not None and ended < asked  # its answers were done before the time was over
    found = {"kind": kind, "after": round(after, 2), "phase": life.phase(asked), "code": life.process.returncode}
    found["answered"] = None if not answers else round(max(0.0, min(answers) - asked), 2)
    found["ended"] = None if ended is None else round(max(0.0, ended - asked), 2)
    found["says_what_is_saved"] = any(SAVED.search(line) for _, line in life.lines)
    found["early"] = (early or over) and life.process.returncode == 0
    found["problem"] = None if found["early"] else _problem(found)
    if is_run(out):
        again = Life(["--resume", "--out", str(out)], home / "warm")
        found["resumed"] = again.goes_on(240.0)
        found["problem"] = found["problem"] or (None if found["resumed"] else f"not resumed: {again.lines[-2:]}")
    if found["problem"]:
        found["lines"] = [line for _, line in life.lines[-6 if ended is not None else -80 :]]
    return found


def _problem(found: dict) -> str | None:
    compiles = found["phase"] == "compiling"
    if found["answered"] is None or found["answered"] > ANSWERED:
        return "not answered in time"
    if found["ended"] is None or found["ended"] > (COMPILING if compiles else ENDED):
        return "not ended in time"
    if found["kind"] != "TIME" and found["code"] != KINDS[found["kind"]]:
        return f"exit code {found['code']}"
    return None if found["says_what_is_saved"] else "nothing says what is saved"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--moments", type=int, default=50)
    parser.add_argument("--frames", type=int, default=6000)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--model", default="slds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("interruptions.json"))
    given = parser.parse_args()
    asked = {"frames": given.frames, "steps": given.steps, "model": given.model, "seed": given.seed}
    before = json.loads(given.out.read_text()) if given.out.exists() else {"asked": asked}
    if before["asked"] != asked:
        raise SystemExit(f"{given.out} is of a campaign of {before['asked']}; give another --out")
    rows, whole = before.get("moments", []), before.get("whole", {})
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        walk(home / "walk.npy", given.frames)
        fit = arguments(home / "walk.npy", home / "run", given.steps, given.model)
        for name in ("cold", "warm")[1 if whole else 0 :]:  # the first compiles for the second
            shutil.rmtree(home / "run", ignore_errors=True)
            life = Life(fit, home / "warm")
            ended = life.ended(2400.0)
            if ended is None or life.process.returncode:
                raise SystemExit(f"a fit that nobody touched failed: {life.lines[-3:]}")
            whole = whole | {name: ended - life.began}
        print(json.dumps({name: round(seconds, 1) for name, seconds in whole.items()}), flush=True)
        for number in range(len(rows), given.moments):
            rng, cold = random.Random(f"{given.seed}-{number}"), number % 2 == 1
            cache = home / f"cold-{number}" if cold else home / "warm"
            after = rng.uniform(1.0, whole["cold" if cold else "warm"])
            rows.append(moment(home, rng.choice(sorted(KINDS)), after, cache, fit))
            if cold:
                shutil.rmtree(cache, ignore_errors=True)
            print(json.dumps(rows[-1]), flush=True)
            given.out.write_text(json.dumps({"asked": asked, "whole": whole, "moments": rows}, indent=1))
    print(table(rows))
    raise SystemExit(any(row["problem"] for row in rows))


def table(rows: list[dict]) -> str:
    """A row for each phase and one for all, then what fell short."""
    heads = ("phase", "moments", "answered in 2 s", "ended in time", "says what is saved", "resumed", "answer", "end")
    lines = [heads]
    for phase in [*dict.fromkeys(row["phase"] for row in rows), "all"]:
        own = [row for row in rows if phase in (row["phase"], "all")]
        alive = [row for row in own if not row["early"]]
        limits = [COMPILING if row["phase"] == "compiling" else ENDED for row in own]
        again = [row["resumed"] for row in own if "resumed" in row]
        done = [row["ended"] is not None and row["ended"] <= limit for row, limit in zip(own, limits, strict=True)]
        lines.append(
            (
                phase,
                str(len(own)),
                f"{sum(row['answered'] is not None and row['answered'] <= ANSWERED for row in alive)} of {len(alive)}",
                f"{sum(done)} of {len(own)}",
                str(sum(row["says_what_is_saved"] for row in own)),
                f"{sum(again)} of {len(again)}",
                f"{max((row['answered'] or 0.0 for row in alive), default=0.0):.1f} s",
                f"{max((row['ended'] or 0.0 for row in own), default=0.0):.1f} s",
            )
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["  ".join(cell.ljust(n) for cell, n in zip(line, widths, strict=True)) for line in lines]
    wrong = [
        f"{row['kind']} after {row['after']} s ({row['phase']}): {row['problem']}" for row in rows if row["problem"]
    ]
    return "\n".join([*text, f"{len(rows) - len(wrong)} of {len(rows)} moments kept the promise", *wrong])


if __name__ == "__main__":
    main()
