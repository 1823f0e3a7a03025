"""Many fits to the same recordings, side by side: a grid of settings, and a leaderboard of what each reached."""

from importlib import import_module

_HOMES = {
    **dict.fromkeys(("Plan", "grid", "is_done", "read_plan", "write_plan"), "_grid"),
    **dict.fromkeys(("leaderboard", "write_leaderboard"), "_leaderboard"),
    **dict.fromkeys(("draw",), "_figure"),
}
__all__ = sorted(_HOMES)


def __getattr__(name):
    if name in _HOMES:
        return getattr(import_module(f"svae.sweep.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'svae.sweep' has no attribute {name!r}")
