"""Run folders: a fit that survives whatever stops it, and the answers that it leaves. Reading one needs no jax."""

from importlib import import_module

_HOMES = {
    **dict.fromkeys(("RunError",), "_folder"),
    **dict.fromkeys(("Run", "is_run"), "_run"),
    **dict.fromkeys(("Bout", "Posterior"), "_posterior"),
    **dict.fromkeys(("Labels", "merge", "rename", "unmerge", "write_labels"), "_names"),
    **dict.fromkeys(("start",), "_start"),
    **dict.fromkeys(("train",), "_train"),
    **dict.fromkeys(("assist", "new_model"), "_processes"),
    **dict.fromkeys(("write_baselines",), "_baselines"),
    **dict.fromkeys(("ranking", "verdict", "words"), "_ranking"),
    **dict.fromkeys(("apply",), "_apply"),
    **dict.fromkeys(("Left", "done", "watching"), "_attended"),
    **dict.fromkeys(("saved",), "_saved"),
    **dict.fromkeys(("forecast",), "_cost"),
}
__all__ = sorted(_HOMES)


def __getattr__(name):
    if name in _HOMES:
        return getattr(import_module(f"svae.runs.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'svae.runs' has no attribute {name!r}")
