"""The command line as its users meet it: a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Programs as they come, hardly optimised: here they run once, and compiling them is all that takes time.
QUICK_TO_COMPILE = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false"
)


def environment(**more):
    """The variables of this process, ours, and `more`; None takes one away."""
    cache = str(Path(sys.prefix) / ".cache" / "jax")  # that of the tests themselves, whose flags are the same
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    base = {"JAX_COMPILATION_CACHE_DIR": cache, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": QUICK_TO_COMPILE}
    base |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
    wanted = {**os.environ, **base, "PYTHONPATH": path, **more}
    return {name: value for name, value in wanted.items() if value is not None}


def command(*arguments):
    return [sys.executable, "-m", "svae", *map(str, arguments)]


def svae(*arguments, folder=None, **more):
    """Run one command to its end."""
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, cwd=folder, env=environment(**more), timeout=600
    )
