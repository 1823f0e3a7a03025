"""Whole training steps beside the same steps written plainly: agreement, times, compile times and memory.

python benchmarks/steps.py              the LDS and SLDS SVAE at 30 x 30 pixels, and the LDS SVAE of 2016; some minutes
python benchmarks/steps.py --short      fewer rounds, nothing compiled in fresh processes
python benchmarks/steps.py --only lds   one of them

Ours is the program that `svae fit` runs for a step; the plain one is svae/bench/_plain_step.py, jitted, with the
sweeps that mean field takes plainly to the same tolerance. Both run in turn in one process, under the same allocator.
First they are compared: values and gradients, in float64 at a small size where mean field has converged, and in
float32 at full size for the LDS. Each measurement is a process of its own. Beside them: both networks alone, which no
way of writing the step can do without, and the time from one step of a fit to the next.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

NAMES = ("lds", "slds", "lds, 2016")
SMALL = ("lds, small", "slds, small")
BOUND = 1e-4  # that values and gradients may differ by
CONVERGED = 200  # sweeps of the small problem


# --- what a process of its own measures ------------------------------------------------------------------------------


def ready(x64: bool = False, cache: str | None = None) -> None:
    """Settings of `svae fit`, before threads have heaps, and where compiled programs go."""
    from svae.cli._machine import use_few_heaps

    use_few_heaps()
    import jax

    jax.config.update("jax_enable_x64", x64)
    if cache:
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def differences(name: str) -> dict:
    """The largest relative difference between ours and the plain form: of the value, of any leaf of the gradient."""
    ready(x64="small" in name)
    from svae.bench import contestants

    ours, plain = contestants.gradients(name, CONVERGED)
    gaps = [_gap(a, b) for a, b in zip(ours[1], plain[1], strict=True)]
    return {"value": abs(ours[0] / plain[0] - 1), "gradient": max(gaps), "precision": str(ours[1][0].dtype)}


def _gap(a, b) -> float:
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30))


def race(name: str, rounds: int) -> dict:
    """Steps of both in turn, in ms."""
    ready()
    from svae.bench import contestants

    runs, sweeps = contestants.both(name)
    for run in runs.values():
        run(), run()
    turns = [{who: _once(run) for who, run in runs.items()} for _ in range(rounds)]
    taken = {who: np.array([turn[who] for turn in turns]) for who in runs}
    ratio = taken["plain"] / taken["svae"]
    low, median, high = np.percentile(ratio[:, 0], [25, 50, 75])
    found = {who: _summary(1e3 * times) for who, times in taken.items()}
    return found | {
        "in_fit_ms": 1e3 * float(np.median(contestants.seconds_in_fit(name, 1000))) if "2016" in name else None,
        "ratio": [float(low), float(median), float(high)],
        "processor_ratio": float(np.median(ratio[:, 1])),
        "sweeps": sweeps,
        "rounds": rounds,
    }


def _once(run) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


def _summary(ms) -> dict:
    low, median, high = np.percentile(ms[:, 0], [25, 50, 75])
    names = ("best", "lower_quartile", "median", "upper_quartile", "processor", "processor_best")
    return dict(
        zip(names, map(float, (ms[:, 0].min(), low, median, high, np.median(ms[:, 1]), ms[:, 1].min())), strict=True)
    )


def first_step(name: str, who: str, cache: str) -> dict:
    """Seconds until the first step is done, after importing and after the problem stands; and the peak of memory."""
    started = time.perf_counter()
    ready(cache=cache)
    from svae.bench import contestants

    imported = time.perf_counter()
    run = contestants.one(name, who)
    stands = time.perf_counter()
    wall, cpu = _once(run)
    for _ in range(3):
        run()
    return {
        "import": imported - started,
        "problem": stands - imported,
        "first_step": wall,
        "first_step_processor": cpu,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


# --- the run ---------------------------------------------------------------------------------------------------------


def apart(*arguments: str) -> dict:
    """A measurement in a fresh process."""
    command = [sys.executable, os.path.abspath(__file__), "--measure", *arguments]
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    told = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path})
    if told.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{told.stderr[-3000:]}")
    return json.loads(told.stdout.splitlines()[-1])


def compiling(name: str, who: str) -> dict:
    """A first process that compiles, and a second one that finds its programs kept."""
    with tempfile.TemporaryDirectory() as cache:
        return {kind: apart("first_step", name, who, cache) for kind in ("cold", "cached")}


def agreement(name: str) -> dict:
    found = apart("differences", name)
    verdict = "agree" if max(found["value"], found["gradient"]) < BOUND else "DO NOT AGREE"
    print(
        f"{name}, {found['precision']}: value {found['value']:.1e}, gradient {found['gradient']:.1e}: {verdict}",
        flush=True,
    )
    return found


def show(name: str, found: dict) -> None:
    low, median, high = found["ratio"]
    print(f"{name} (sweeps of mean field: {found['sweeps']['svae']}, plain {found['sweeps']['plain']})")
    for who in ("svae", "plain", "networks"):
        r = found[who]
        print(f"  {who:8s} {r['median']:8.1f} ms (best {r['best']:.1f}, processor {r['processor']:.1f})")
    if found["in_fit_ms"]:
        print(f"  svae, from step to step of a fit: {found['in_fit_ms']:.2f} ms")
    print(
        f"  plain / svae = {median:.1f} ({low:.1f} to {high:.1f}; processor {found['processor_ratio']:.1f})", flush=True
    )


def show_compiling(name: str, who: str, found: dict) -> None:
    for kind, f in found.items():
        took = f"first step {f['first_step']:.1f} s (processor {f['first_step_processor']:.1f})"
        print(f"  {name}, {who}, {kind}: import {f['import']:.1f} s, {took}, peak {f['peak_mb']:.0f} MB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=NAMES, default=NAMES)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--out", default="steps.json")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        what, name, *more = options.measure
        measure = {"differences": differences, "race": lambda n, r: race(n, int(r)), "first_step": first_step}[what]
        print(json.dumps(measure(name, *more)))
        return
    checked = [n for n in (*SMALL, "lds") if n.split(",")[0] in [o.split(",")[0] for o in options.only]]
    result = {"agreement": {name: agreement(name) for name in checked}, "steps": {}, "compiling": {}}
    for name in options.only:
        rounds = 5 if options.short else options.rounds
        result["steps"][name] = apart("race", name, str(rounds * (20 if "2016" in name else 1)))
        show(name, result["steps"][name])
    for name in [] if options.short else options.only:
        result["compiling"][name] = {who: compiling(name, who) for who in ("svae", "plain")}
        for who, found in result["compiling"][name].items():
            show_compiling(name, who, found)
    with open(options.out, "w") as file:
        json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
