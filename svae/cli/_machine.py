"""This machine: where compiled programs are kept, and what `doctor` finds."""

import os
import sys
from pathlib import Path
from typing import Any


def cache_home() -> Path:
    """The user's folder for caches on this system."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    variable, fallback = ("LOCALAPPDATA", "AppData/Local") if sys.platform == "win32" else ("XDG_CACHE_HOME", ".cache")
    return Path(os.environ.get(variable) or Path.home() / fallback)


def use_compilation_cache() -> None:
    """Keep compiled programs between runs (a first step falls from 15 s to 2 s); the user's own setting wins."""
    import jax

    if jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_home() / "svae" / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def quiet_compiler() -> None:
    """The compiler's own warnings are for its authors; several processes need them to know that one is gone."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def use_few_heaps() -> None:
    """glibc gives every thread a heap of its own, and those of a compiler stay behind: 330 MiB of a fit's peak.

    And it gives a large block back to the system as soon as it is free: fresh pages were half the time of the networks.
    """
    import contextlib
    import ctypes

    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        with contextlib.suppress(OSError, AttributeError):  # another C library
            for parameter, value in ((-8, 2), (-4, 0), (-1, 2**31 - 1)):  # M_ARENA_MAX, M_MMAP_MAX, M_TRIM_THRESHOLD
                ctypes.CDLL(None).mallopt(parameter, value)


def examine(version: str) -> dict[str, Any]:
    """Python, jax, its device, memory, the cache, and which extras are installed."""
    import platform

    import jax

    from svae.messages import cpu_kernels, gpu_kernels, served

    device = jax.devices()[0]
    return {
        "svae": version,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "device": f"{device.platform} ({device.device_kind}), {len(jax.devices())} in all",
        "device_works": _device_works(),
        "message_passing": cpu_kernels() if device.platform == "cpu" else gpu_kernels(),
        "chains": [dict(zip(served.HEADER, served.cells(form), strict=True)) for form in served.here()],
        "cores": os.cpu_count(),
        "memory_gb": memory_gb(),
        "cache": jax.config.jax_compilation_cache_dir,
        "extras": {extra: _installed(packages) for extra, packages in EXTRAS.items()},
    }


EXTRAS = {  # extra -> the packages it brings, as they are imported
    "figures": ("matplotlib",),
    "io": ("h5py", "pandas", "pyarrow", "av", "xarray"),
    "view": ("starlette", "uvicorn"),
    "paper": ("sklearn",),
}


def _installed(packages):
    from importlib.util import find_spec

    absent = [name for name in packages if find_spec(name) is None]
    return "installed" if not absent else f"{', '.join(absent)} not installed"


def _device_works():
    """Compile and run one small product whose value is known."""
    import jax
    import jax.numpy as jnp

    return bool(jax.jit(lambda a: (a @ a.T).sum())(jnp.ones((8, 8))) == 512)


def memory_gb() -> float | None:
    """Physical memory in GB; None where the system does not say."""
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (AttributeError, OSError, ValueError):
        return None
