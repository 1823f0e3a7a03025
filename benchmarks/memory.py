"""Memory of a fit to a recording that is much larger: 1,000,000 frames of 30 x 30 in one .npy of 3.6 GB.

    python benchmarks/memory.py [--frames 1000000] [--steps 20] [--file big.npy]

Prints the peak resident memory (VmHWM) after each stage; the fit must stay below 2 GB.
"""

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np


def write(path, frames, block=10_000):
    """A blob that wanders over the image, with noise; written block by block."""
    rng = np.random.default_rng(0)
    array = np.lib.format.open_memmap(path, "w+", np.float32, (frames, 30, 30))
    del array  # only its header; the rest is written below so that no page is kept
    noise = rng.normal(size=(block, 30, 30)).astype(np.float32) * 0.1
    grid = np.arange(30, dtype=np.float32)
    with open(path, "r+b") as stream:
        offset = os.path.getsize(path) - frames * 3600
        stream.seek(offset)
        for first in range(0, frames, block):
            t = np.arange(first, min(first + block, frames)) / 30
            x, y = 15 + 8 * np.cos(t)[:, None], 15 + 8 * np.sin(1.3 * t)[:, None]
            bump = np.exp(-((grid - x) ** 2) / 8)[:, :, None] * np.exp(-((grid - y) ** 2) / 8)[:, None, :]
            stream.write((bump + noise[: len(t)]).astype(np.float32).tobytes())


def peak():
    """Peak resident memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--model", default="slds")
    parser.add_argument("--file", type=Path, default=None)
    arguments = parser.parse_args()
    path = arguments.file or Path(tempfile.gettempdir()) / f"svae-memory-{arguments.frames}.npy"
    if not path.exists():
        if (child := os.fork()) == 0:  # what writing takes is not what the fit takes
            write(path, arguments.frames)
            os._exit(0)
        os.waitpid(child, 0)
    print(f"{path}: {path.stat().st_size / 2**30:.2f} GiB")
    import svae
    from svae.cli._machine import use_few_heaps

    use_few_heaps()  # as `svae fit` does

    print(f"import            {peak():7.0f} MiB")
    recordings = svae.load(path, fps=30)
    options = {"model": arguments.model, "latent_dim": 4, "states": 5, "steps": arguments.steps, "warmup_steps": 10}
    model = svae.make((30, 30), **options)
    print(f"load and make     {peak():7.0f} MiB")
    started = time.monotonic()
    for step in svae.fit(model, recordings):
        seconds = time.monotonic() - started
        if step.step in (1, 10, 11, 12) or step.step == step.total or np.isfinite(step.held_out):
            print(
                f"{step.phase:8} step {step.step:3d} {peak():7.0f} MiB  {seconds:6.1f} s  held out {step.held_out:.2f}"
            )
    print(f"peak {peak():.0f} MiB")


if __name__ == "__main__":
    main()
