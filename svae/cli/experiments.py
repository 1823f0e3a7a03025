"""Verbs on synthetic data: demo, paper."""

from pathlib import Path
from typing import Literal

from svae.cli._app import Json, verb
from svae.cli._machine import use_compilation_cache
from svae.cli._print import report
from svae.config import ConfigError

VIDEO = ("mouse", "syllables")  # experiments that take any recordings
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

    The mouse leaves a run folder, OUT/run, and its report.

    Args:
        name: Which synthetic data.
        out: The folder to write; runs/demo-NAME unless given.
        seed: Seed of the data and of the fit.
    """
    _experiment(DEMOS[name], out or Path("runs", f"demo-{name}"), seed, json, {})


@verb
def paper(
    name: Literal["pinwheel", "dots", "gradients", "mouse", "syllables"],
    /,
    *,
    data: str | None = None,
    net: Literal["mlp", "conv"] | None = None,
    out: Path | None = None,
    seed: int = 0,
    json: Json = False,
):
    """Repeat an experiment of the 2016 paper and write its figures and numbers.json.

    Pinwheel, dots and gradients are Figures 1, 4 and 5a. Mouse (Figures 5b and 6) fits an LDS SVAE to video and
    predicts frames that it has not seen; syllables (Figures 7 and 8) finds units of behaviour with 30 states, and
    leaves a run folder, OUT/run, with movies.

    Args:
        name: Which experiment.
        data: Video for mouse and syllables, such as "day1/*.h5"; the synthetic mouse unless given.
        net: The networks of mouse and syllables: two layers of 200 units (mlp, the default), or convolutions.
        out: The folder to write; runs/paper-NAME unless given.
        seed: Seed of the data and of the fit.
    """
    out = out or Path("runs", f"paper-{name}")
    if name not in VIDEO and (data is not None or net is not None):
        raise ConfigError(f"--data and --net are for {' and '.join(VIDEO)}; {name} makes its own data")
    if name == "syllables":
        _require_movies()
    _experiment(name, out, seed, json, {"data": data, "net": net or "mlp"} if name in VIDEO else {})


def _experiment(name, out, seed, json, options):
    """Run `svae.experiments.<name>` under a progress bar and print the numbers that it returns."""
    from importlib import import_module

    from svae.experiments._figures import require_matplotlib
    from svae.progress import bar, quiet

    require_matplotlib()  # rather now than after the fit
    use_compilation_cache()
    experiment = import_module(f"svae.experiments.{name}")
    numbers = experiment.run(out, seed=seed, progress=quiet if json else bar, **options)
    if name == "syllables":
        numbers |= {"movies": _movies(out / "run")}
    if name == "demo":
        numbers |= _page(out / "run")
    report(numbers, str(out), json)


def _require_movies():
    from svae.report._encode import require_av

    require_av()  # rather now than after the fit


def _page(run):
    """The path of the page that shows the run of an experiment, if it has left one."""
    from svae.report import report
    from svae.runs import Run, is_run

    return {"report": str(report(Run(run)).page)} if is_run(run) else {}


def _movies(run):
    """The number of movies written into RUN/movies."""
    from svae.report import movies
    from svae.runs import Run

    return sum(1 for _ in movies(Run(run)))
