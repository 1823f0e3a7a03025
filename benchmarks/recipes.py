"""Runs every line of docs/recipes.md whose file is at hand, each in a process of its own, and says how it ended.

python benchmarks/recipes.py --data ../shared/data --steps 20 --out recipes.json
`--steps` cuts the fits short; without it every line runs as it is printed.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def lines(text):
    """Every `svae fit ...` of the page, as words."""
    return [shlex.split(line) for line in re.findall(r"`svae (fit [^`]+)`", text)]


def located(words, data):
    """The words with the file or the pattern where it is under `data`; None where it is not."""
    source = words[1]
    found = sorted(data.rglob(source)) if "*" not in source else sorted(data.glob(source)) or sorted(data.rglob(source))
    if not found:
        return None
    return ["fit", str(found[0] if "*" not in source else data / source), *words[2:]]


def run(words, steps, out, limit):
    """One line in a process: its exit code, seconds, and what it said last."""
    words = [*words[: words.index("--out")], "--out", str(out), "--json"]
    words += [] if steps is None else ["--steps", str(steps), "--set", f"warmup_steps={steps}"]
    start = time.time()
    code = "import sys; from svae.cli import main; sys.exit(main())"
    try:
        done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"exit_code": None, "seconds": limit, "said": "took too long"}
    written = (out / "model" / "manifest.json").exists() and (out / "bouts.csv").exists()
    said = done.stderr.strip().splitlines()[-1:] if done.returncode else []
    return {"exit_code": done.returncode, "written": written, "seconds": round(time.time() - start), "said": said}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--limit", type=float, default=900, help="seconds of one line")
    parser.add_argument("--only", default="", help="lines that hold this text")
    parser.add_argument("--out", default="recipes.json")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number, words in enumerate(lines((ROOT / "docs" / "recipes.md").read_text(encoding="utf-8"))):
            here = located(words, options.data) if options.only in " ".join(words) else None
            if here is None:
                continue
            rows.append(
                {"line": shlex.join(words)} | run(here, options.steps, Path(folder, str(number)), options.limit)
            )
            print(json.dumps(rows[-1]), flush=True)
    good = sum(row["exit_code"] == 0 and row["written"] for row in rows)
    print(f"{good} of {len(rows)} lines ended with a run folder")
    Path(options.out).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
