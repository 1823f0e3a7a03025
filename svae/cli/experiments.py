"""Verbs on synthetic data: demo, paper."""

from pathlib import Path
from typing import Literal

from svae.cli._app import Json, verb
from svae.cli._machine import use_compilation_cache
from svae.cli._print import report

DEMOS = {"mouse": "demo", "dots": "dots", "pinwheel": "pinwheel"}  # name -> module of svae.experiments


@verb
def demo(
    name: Literal["mouse", "dots", "pinwheel"] = "mouse",
    /,
    *,
    out: Path | None = None,
    seed: int = 0,
    json: Json = False,
):
    """Fit a model to synthetic data and write the model, numbers.json and figures.

    Args:
        name: Which synthetic data.
        out: The folder to write; runs/demo-NAME unless given.
        seed: Seed of the data and of the fit.
    """
    _experiment(DEMOS[name], out or Path("runs", f"demo-{name}"), seed, json)


@verb
def paper(
    name: Literal["pinwheel", "dots", "gradients"], /, *, out: Path | None = None, seed: int = 0, json: Json = False
):
    """Repeat an experiment of the 2016 paper and write its figures and numbers.json.

    Args:
        name: Which experiment: Figure 1, 4 or 5a.
        out: The folder to write; runs/paper-NAME unless given.
        seed: Seed of the data and of the fit.
    """
    _experiment(name, out or Path("runs", f"paper-{name}"), seed, json)


def _experiment(name, out, seed, json):
    """Run `svae.experiments.<name>` under a progress bar and print the numbers that it returns."""
    from importlib import import_module

    from svae.experiments._figures import require_matplotlib
    from svae.progress import bar, quiet

    require_matplotlib()  # rather now than after the fit
    use_compilation_cache()
    numbers = import_module(f"svae.experiments.{name}").run(out, seed=seed, progress=quiet if json else bar)
    report(numbers, str(out), json)
