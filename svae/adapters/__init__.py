"""Doors to other packages: xarray and ArviZ, aeon, sktime. None of them is imported before it is asked for."""

from importlib import import_module

_HOMES = {"Forecaster": "forecaster", "Segmenter": "segmenter", "to_datatree": "datatree"}
__all__ = sorted(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module 'svae.adapters' has no attribute {name!r}")
    try:
        return getattr(import_module(f"svae.adapters.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package in ("", "svae"):
            raise
        raise ImportError(
            f"svae.adapters.{name} needs the package {package}, which is not installed; run  "
            'pip install "svae[adapters]"  first.'
        ) from None
