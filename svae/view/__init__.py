"""A run to look at in the browser: `svae view RUN`. Needs the extra `view`."""

from importlib import import_module

_HOMES = {"Viewer": "_server", "show_in_browser": "_server"}
__all__ = sorted(_HOMES)


def __getattr__(name):
    if name in _HOMES:
        return getattr(import_module(f"svae.view.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'svae.view' has no attribute {name!r}")
