"""The command line; jax and the experiments are imported only when a command needs them.

Exit codes: 0 done; 1 an error that nobody foresaw (its traceback is shown); 2 a mistake that one sentence explains;
130 Ctrl-C.
"""

import os
import sys
from pathlib import Path
from typing import Literal

from cyclopts import App, CycloptsError

FORESEEN = {"ConfigError", "DataError", "StoreError", "FitError"}
DEMOS = {"mouse": "demo", "dots": "dots", "pinwheel": "pinwheel"}  # name -> module of svae.experiments


def _version():
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("svae")
    except PackageNotFoundError:
        return "a source tree that is not installed"


app = App(name="svae", help="Structured variational autoencoders.", version=_version, suppress_keyboard_interrupt=False)


@app.command
def demo(name: Literal["mouse", "dots", "pinwheel"] = "mouse", /, *, out: Path | None = None, seed: int = 0):
    """Fit a model to synthetic data and write the model, numbers.json and figures.

    Args:
        name: Which synthetic data.
        out: The folder to write; runs/demo-NAME unless given.
        seed: Seed of the data and of the fit.
    """
    _experiment(DEMOS[name], out or Path("runs", f"demo-{name}"), seed)


@app.command
def paper(name: Literal["pinwheel", "dots", "gradients"], /, *, out: Path | None = None, seed: int = 0):
    """Repeat an experiment of the 2016 paper and write its figures and numbers.json.

    Args:
        name: Which experiment: Figure 1, 4 or 5a.
        out: The folder to write; runs/paper-NAME unless given.
        seed: Seed of the data and of the fit.
    """
    _experiment(name, out or Path("runs", f"paper-{name}"), seed)


@app.command
def doctor(*, json: bool = False):
    """Check this machine: Python, jax, its device, memory and the compilation cache.

    Args:
        json: Print JSON instead of a table.
    """
    _use_compilation_cache()
    findings = _examine()
    if json:
        _print_json(findings)
    else:
        _print_table("this machine", findings)
    return 0 if findings["device_works"] else 2


def _experiment(name, out, seed):
    """Run `svae.experiments.<name>` under a progress bar and print the numbers that it returns."""
    from importlib import import_module

    from svae.progress import bar

    _use_compilation_cache()
    numbers = import_module(f"svae.experiments.{name}").run(out, seed=seed, progress=bar)
    _print_table(str(out), numbers)


def _cache_home():
    """The user's folder for caches on this system."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    variable, fallback = ("LOCALAPPDATA", "AppData/Local") if sys.platform == "win32" else ("XDG_CACHE_HOME", ".cache")
    return Path(os.environ.get(variable) or Path.home() / fallback)


def _use_compilation_cache():
    """Keep compiled programs between runs (a first step falls from 15 s to 2 s); the user's own setting wins."""
    import jax

    if jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(_cache_home() / "svae" / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _examine():
    import platform

    import jax

    device = jax.devices()[0]
    return {
        "svae": _version(),
        "python": platform.python_version(),
        "jax": jax.__version__,
        "device": f"{device.platform} ({device.device_kind}), {len(jax.devices())} in all",
        "device_works": _device_works(),
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "cache": jax.config.jax_compilation_cache_dir,
    }


def _device_works():
    """Compile and run one small product whose value is known."""
    import jax
    import jax.numpy as jnp

    return bool(jax.jit(lambda a: (a @ a.T).sum())(jnp.ones((8, 8))) == 512)


def _memory_gb():
    """Physical memory in GB; None where the system does not say."""
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (AttributeError, OSError, ValueError):
        return None


def _print_json(numbers):
    import json

    print(json.dumps(numbers, indent=2))


def _print_table(title, numbers):
    from rich.console import Console
    from rich.table import Table

    table = Table("name", "value", title=title, title_justify="left")
    for name, value in _flat(numbers):
        table.add_row(name, f"{value:.4g}" if isinstance(value, float) else str(value))
    Console().print(table)


def _flat(numbers, prefix=""):
    """(dotted name, value) of every single value; lists are for numbers.json, not for the screen."""
    for name, value in numbers.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        elif not isinstance(value, list | tuple):
            yield f"{prefix}{name}", value


def _foreseen(error):
    """Is it one of our own errors? By name, so that the rooms that define them need not be imported here."""
    return any(c.__name__ in FORESEEN and c.__module__.startswith("svae") for c in type(error).__mro__)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    try:
        return app(arguments, exit_on_error=False, result_action="return_value") or 0
    except CycloptsError:  # already printed, with the nearest name
        return 2
    except KeyboardInterrupt:
        print("svae: stopped", file=sys.stderr)
        return 130
    except Exception as error:
        if not _foreseen(error):
            raise
        print(f"svae: {error}", file=sys.stderr)
        return 2
