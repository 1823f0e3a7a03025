"""Every system call of a save, killed once and failed once, by strace: no folder unreadable, no acknowledged step lost.

    python benchmarks/faults.py

A small process adds step 30 to a run that holds the checkpoints of steps 0, 10 and 20 and a best model: metrics,
checkpoint, removal of the oldest, best model, log. Then it says that it is done. `strace` counts its system calls, and
the save is done over for each of them: once the process dies there, once the call fails.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from svae import _sealed
from svae.runs import _checkpoints
from svae.runs._folder import append_metrics, log, read_metrics, sync_metrics, write_json

ROOT = Path(__file__).parents[1]
BEGIN, END = "/svae-save-begins", "/svae-save-ends"  # paths that are asked for to mark the trace
NOT_OF_FILES = re.compile(r"^(mmap|munmap|mremap|mprotect|madvise|brk|futex|rt_sig\w+|get\w*id|clock_\w+|getrandom)$")
ERRORS = ("ENOSPC", "EIO")


class Fault(NamedTuple):
    """The when-th call of this name since the process began, and what becomes of it."""

    call: str
    when: int
    kind: str  # "signal=KILL" or "error=ENOSPC"


def save(run: Path, step: int) -> None:
    """What a fit does at a checkpoint, with small arrays."""
    append_metrics(run, {"step": step, "phase": "fit", "bound": -1.5})
    sync_metrics(run)
    arrays = {"q.M": np.full((3, 4), float(step), np.float32), "done": np.array(step)}
    _checkpoints.save(run, _checkpoints.Checkpoint(step, arrays, {"seconds": 1.0}))
    _sealed.write(run / _checkpoints.FOLDER / _checkpoints.BEST, arrays, {"extra": {"done": step}})
    log(run, f"step {step}: checkpoint saved")


def child(run: Path) -> None:
    os.access(BEGIN, os.F_OK)
    save(run, 30)
    os.write(1, b"saved")
    os.access(END, os.F_OK)


def prepare(run: Path) -> None:
    run.mkdir()
    write_json(run / "provenance.json", {"format": 1})
    for step in (0, 10, 20):
        save(run, step)


def under_strace(run: Path, options: list[str]) -> tuple[int, str]:
    """Exit code and what the child said."""
    settings = {
        "PYTHONPATH": str(ROOT),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = ["strace", "-f", *options, sys.executable, __file__, "--child", str(run)]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, check=False)
    return done.returncode, done.stdout.decode()


def calls(home: Path) -> list[tuple[str, int]]:
    """Name and number, among the calls of its name, of every call of a save that may touch a file."""
    prepare(home / "counted")
    under_strace(home / "counted", ["-o", str(home / "trace")])
    seen, found, inside = Counter(), [], False
    for line in (home / "trace").read_text(errors="replace").splitlines():
        named = re.match(r"(?:\d+ +)?(\w+)\(", line)
        if named is None:
            continue
        name = named[1]
        seen[name] += 1
        if BEGIN in line or END in line:
            inside = BEGIN in line
        elif inside and not NOT_OF_FILES.match(name):
            found.append((name, seen[name]))
    return found


def suffer(home: Path, number: int, fault: Fault) -> str:
    """What is wrong after one fault, "" if nothing."""
    run, trace = home / f"run-{number}", home / f"trace-{number}"
    prepare(run)
    inject = f"inject={fault.call}:{fault.kind}:when={fault.when}"
    code, said = under_strace(run, ["-o", str(trace), "-e", f"trace={fault.call}", "-e", inject])
    hit = "INJECTED" in trace.read_text(errors="replace") or code in (137, -9)
    problem = _wrong(run, "saved" in said) if hit else "the fault was not met"
    shutil.rmtree(run)
    trace.unlink()
    return f"{fault}: {problem}" if problem else ""


def _wrong(run: Path, acknowledged: bool) -> str:
    try:
        point, told = _checkpoints.newest(run), read_metrics(run)
        best = _sealed.read(run / _checkpoints.FOLDER / _checkpoints.BEST)[0]
        if point.step not in ((30,) if acknowledged else (20, 30)) or point.arrays["q.M"][0, 0] != point.step:
            return f"the newest checkpoint is of step {point.step}"
        if best["q.M"][0, 0] not in ((30,) if acknowledged else (20, 30)):
            return f"the best is of step {best['done']}"
        if not {0, 10, 20} <= {line["step"] for line in told}:
            return "lines of metrics are lost"
        save(run, 30)  # the next save must find nothing in its way
        left = [p.name for p in run.rglob("*.tmp")]
        return f"left behind: {left}" if left or _checkpoints.newest(run).step != 30 else ""
    except (ValueError, OSError, AttributeError, KeyError) as error:
        return f"unreadable: {error!r}"


def campaign(every: int, workers: int) -> dict:
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        points = calls(home)
        kinds = ["signal=KILL", *(f"error={error}" for error in ERRORS)]
        faults = [Fault(name, when, kind) for name, when in points for kind in kinds][::every]
        with ThreadPoolExecutor(workers) as pool:
            problems = [p for p in pool.map(suffer, [home] * len(faults), range(len(faults)), faults) if p]
    return {"calls": dict(Counter(name for name, _ in points)), "faults": len(faults), "problems": problems}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--every", type=int, default=1, help="take one fault of so many")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        return child(given.child)
    if shutil.which("strace") is None:
        raise SystemExit("strace is not installed; apt install strace")
    found = campaign(given.every, given.workers)
    print(json.dumps(found, indent=1))
    raise SystemExit(bool(found["problems"]))


if __name__ == "__main__":
    main()
