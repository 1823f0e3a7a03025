"""Groups of animals compared: how much each state is used, how long it lasts and what follows it."""

from importlib import import_module

_HOMES = {
    **dict.fromkeys(("Comparison", "blocks_in", "bouts_of", "compare", "examine"), "_compare"),
    **dict.fromkeys(("recordings_of", "summary", "write"), "_compare"),
    **dict.fromkeys(("FILE", "write_template"), "_groups"),
}
__all__ = sorted(_HOMES)


def __getattr__(name):
    if name in _HOMES:
        return getattr(import_module(f"svae.compare.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'svae.compare' has no attribute {name!r}")
