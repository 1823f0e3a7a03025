"""Forecasts of time by `svae check` and `svae fit` beside what fits took, on five sets of different size and kind.

    python benchmarks/forecasts.py --out forecasts.json            # as busy as the machine is
    python benchmarks/forecasts.py --load --out forecasts-load.json  # with a process that counts on every core

The forecast is a range; its middle (geometric) is compared with the seconds that the same command then took, from the
forecast of `svae fit` to the end, and from the start of `svae fit` for that of `svae check`. Sets that the file of
--out has already are not fitted again; a table of all ends the output.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
SETS = {  # name -> frames, columns, options of both verbs, options of the fit alone
    "two columns, hmm": (4_000, 2, ["--model", "hmm", "--states", "4", "--latent-dim", "2"], ["--steps", "300"]),
    "keypoints, slds": (3_000, 12, ["--states", "10"], ["--steps", "200"]),
    "long, slds": (20_000, 26, ["--states", "20", "--latent-dim", "4"], ["--steps", "100"]),
    "long, lds": (20_000, 26, ["--model", "lds", "--latent-dim", "4"], ["--steps", "200"]),
    "frames apart, gmm": (10_000, 12, ["--model", "gmm", "--states", "8", "--latent-dim", "3"], ["--steps", "1000"]),
}
BUSY = "while True: pass"
UNIT = {"s": 1.0, "min": 60.0, "h": 3600.0}


def recording(file: Path, frames: int, columns: int) -> None:
    """Rotations whose rate changes every 100 frames."""
    rng = np.random.default_rng(0)
    angle = np.cumsum(np.repeat(rng.choice([0.1, 0.25, 0.5], -(-frames // 100)), 100)[:frames])
    y = np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle), np.sin(2 * angle)], 1) @ rng.normal(
        size=(4, columns)
    )
    np.save(file, (y + 0.1 * rng.normal(size=y.shape)).astype(np.float32))


def svae(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "svae", *arguments]


def one(home: Path, frames: int, columns: int, both: list[str], only: list[str]) -> dict:
    """Forecasts and seconds of one set."""
    recording(home / "y.npy", frames, columns)
    settings = os.environ | {"PYTHONPATH": str(ROOT), "JAX_COMPILATION_CACHE_DIR": str(home / "cache")}
    arguments = [str(home / "y.npy"), "--fps", "30", *both]
    figure = ["--figure", str(home / "check.png")]
    told = subprocess.run(
        svae("check", *arguments, *only, *figure, "--json"), env=settings, capture_output=True, check=True
    )
    checked = json.loads(told.stdout)["forecast"]
    began, said, first = time.monotonic(), "", None
    command = svae("fit", *arguments, *only, "--out", str(home / "run"))
    with subprocess.Popen(command, env=settings, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as fit:
        for line in fit.stderr:
            if "this will take" in line:
                said, first = line.strip(), time.monotonic()
    if fit.returncode:
        raise SystemExit(f"the fit failed with exit code {fit.returncode}")
    took = {"check": time.monotonic() - began, "fit": time.monotonic() - first}
    ranges = {"check": (checked["least"], checked["most"]), "fit": said_range(said)}
    found = {f"{verb}_forecast": [round(s, 1) for s in ranges[verb]] for verb in took}
    found |= {f"{verb}_took": round(took[verb], 1) for verb in took}
    return found | {f"{verb}_factor": round(factor(ranges[verb], took[verb]), 2) for verb in took} | {"said": said}


def said_range(line: str) -> tuple[float, float]:
    """Seconds of "this will take 40 to 80 s (...)"."""
    words = line.split("this will take ")[1].split(" (")[0].removeprefix("about ").split()
    return float(words[0]) * UNIT[words[-1]], float(words[-2]) * UNIT[words[-1]]


def factor(span: tuple[float, float], took: float) -> float:
    """How far the middle of the range is off, as a factor of at least 1."""
    return math.exp(abs(math.log(math.sqrt(span[0] * span[1]) / took)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--load", action="store_true", help="keep every core busy")
    parser.add_argument("--out", type=Path, default=Path("forecasts.json"))
    given = parser.parse_args()
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(os.cpu_count() or 1) if given.load]
    rows = json.loads(given.out.read_text()) if given.out.exists() else []
    try:
        for name, options in SETS.items():
            if name in [row["set"] for row in rows]:
                continue
            with tempfile.TemporaryDirectory() as temporary:
                load = [round(x, 1) for x in os.getloadavg()]
                rows.append({"set": name, "load": load[0]} | one(Path(temporary), *options))
            print(json.dumps(rows[-1]), flush=True)
            given.out.write_text(json.dumps(rows, indent=1))
    finally:
        for process in busy:
            process.kill()
    allowed = 3 if given.load else 2
    print(table(rows, allowed))
    raise SystemExit(any(max(row["check_factor"], row["fit_factor"]) > allowed for row in rows))


def table(rows: list[dict], allowed: float) -> str:
    """A row for each set and verb, and how many kept within the factor."""
    lines, good = [("set", "load", "verb", "forecast", "took", "forecast / took")], 0
    for row in rows:
        for verb in ("check", "fit"):
            low, high = row[f"{verb}_forecast"]
            ratio, took = math.sqrt(low * high) / row[f"{verb}_took"], row[f"{verb}_took"]
            good += max(ratio, 1 / ratio) <= allowed
            lines.append(
                (row["set"], str(row["load"]), verb, f"{low:.0f} to {high:.0f} s", f"{took:.0f} s", f"{ratio:.2f}")
            )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["  ".join(cell.ljust(n) for cell, n in zip(line, widths, strict=True)) for line in lines]
    return "\n".join([*text, f"{good} of {2 * len(rows)} forecasts within a factor of {allowed}"])


if __name__ == "__main__":
    main()
