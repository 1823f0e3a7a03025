"""What a run found, to be looked at: one page, its figures, and movies. Needs the extras `figures` and `io`."""

from importlib import import_module

_HOMES = {"report": "_report", "Report": "_report", "movies": "_movies", "palette": "_palette"}
__all__ = sorted(_HOMES)


def __getattr__(name):
    if name in _HOMES:
        return getattr(import_module(f"svae.report.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'svae.report' has no attribute {name!r}")
