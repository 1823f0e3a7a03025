"""Structured variational autoencoders: latent graphical models with neural observations."""

from importlib import import_module

_ROOMS = ("data", "expfam", "messages", "nets", "pgm", "runs")
_HOMES = {  # name -> the module that defines it; imported on first use, so that `svae --help` needs no jax
    **dict.fromkeys(("elbo", "value_and_grad", "value_and_grad_2016"), "_elbo"),
    **dict.fromkeys(("value_and_grad_flat", "value_and_grad_printed"), "_elbo"),
    **dict.fromkeys(("FitError", "FitState", "Step", "fit"), "_fit"),
    **dict.fromkeys(("SVAE", "make"), "_model"),
    **dict.fromkeys(("Config", "ConfigError"), "config"),
    **dict.fromkeys(("forecast", "generate", "impute", "infer", "reconstruct", "score", "segment"), "_queries"),
    **dict.fromkeys(("DataError", "load"), "data"),
    **dict.fromkeys(("load_extra", "load_model", "save"), "store"),
}
__all__ = sorted((*_ROOMS, *_HOMES))


def __getattr__(name):
    if name in _ROOMS:
        return import_module(f"svae.{name}")
    if name in _HOMES:
        return getattr(import_module(f"svae.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'svae' has no attribute {name!r}")
