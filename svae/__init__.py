"""Structured variational autoencoders: latent graphical models with neural observations.

`make` a model, `fit` it to recordings, and ask it: `infer`, `segment`, `reconstruct`, `impute`, `forecast`, `generate`,
`score`. `save` and `load_model` keep it. `help(svae.fit)` and its like have the arguments, the result and an example.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what type checkers and editors see; `_HOMES` says the same, and a test compares the two
    from svae import data, expfam, messages, nets, pgm, runs, testing
    from svae.adapters.datatree import to_datatree
    from svae.bound import (
        elbo,
        value_and_grad,
        value_and_grad_2016,
        value_and_grad_flat,
        value_and_grad_printed,
    )
    from svae.config import Config, ConfigError
    from svae.data import DataError, Recordings, load
    from svae.fitting.defaults import model_for
    from svae.fitting.loop import FitError, FitState, Step, fit
    from svae.fitting.steps import Parts
    from svae.model import SVAE, make
    from svae.queries import (
        Forecast,
        Generated,
        Imputation,
        Inference,
        Reconstruction,
        Response,
        Score,
        Segmentation,
        forecast,
        generate,
        impute,
        infer,
        reconstruct,
        response,
        score,
        segment,
    )
    from svae.store import StoreError, load_extra, load_model, save

__version__: str  # read from the installed package on first use

__all__ = [
    "SVAE",
    "Config",
    "ConfigError",
    "DataError",
    "FitError",
    "FitState",
    "Forecast",
    "Generated",
    "Imputation",
    "Inference",
    "Parts",
    "Reconstruction",
    "Recordings",
    "Response",
    "Score",
    "Segmentation",
    "Step",
    "StoreError",
    "data",
    "elbo",
    "expfam",
    "fit",
    "forecast",
    "generate",
    "impute",
    "infer",
    "load",
    "load_extra",
    "load_model",
    "make",
    "messages",
    "model_for",
    "nets",
    "pgm",
    "reconstruct",
    "response",
    "runs",
    "save",
    "score",
    "segment",
    "testing",
    "to_datatree",
    "value_and_grad",
    "value_and_grad_2016",
    "value_and_grad_flat",
    "value_and_grad_printed",
]

_ROOMS = ("data", "expfam", "messages", "nets", "pgm", "runs", "testing")
_ANSWERS = ("Forecast", "Generated", "Imputation", "Inference", "Reconstruction", "Response", "Score", "Segmentation")
_QUESTIONS = ("forecast", "generate", "impute", "infer", "reconstruct", "response", "score", "segment")
_HOMES = {  # name -> the module that defines it; imported on first use, so that `svae --help` needs no jax
    **dict.fromkeys(("elbo", "value_and_grad", "value_and_grad_2016"), "bound"),
    **dict.fromkeys(("value_and_grad_flat", "value_and_grad_printed"), "bound"),
    **dict.fromkeys(("FitError", "FitState", "Step", "fit"), "fitting.loop"),
    **dict.fromkeys(("SVAE", "make"), "model"),
    "model_for": "fitting.defaults",
    **dict.fromkeys(("Config", "ConfigError"), "config"),
    **dict.fromkeys(_QUESTIONS, "queries"),
    **dict.fromkeys(_ANSWERS, "queries"),
    "Parts": "fitting.steps",
    **dict.fromkeys(("DataError", "Recordings", "load"), "data"),
    **dict.fromkeys(("StoreError", "load_extra", "load_model", "save"), "store"),
    "to_datatree": "adapters.datatree",
}


def __getattr__(name):
    if name in _ROOMS:
        return import_module(f"svae.{name}")
    if name in _HOMES:
        return getattr(import_module(f"svae.{_HOMES[name]}"), name)
    if name == "__version__":
        return _version()
    raise AttributeError(f"module 'svae' has no attribute {name!r}")


def __dir__():
    return [*__all__, "__version__"]


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("svae")
    except PackageNotFoundError:
        return "a source tree that is not installed"
