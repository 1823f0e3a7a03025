"""A forecast of a fit in words."""

from typing import Any


def words(found: Any, config: Any) -> str:
    """The forecast as a sentence."""
    parts = {"compiling": found.compiling, "warm-up": found.warm_up, "states": found.states}
    parts |= {f"{config.steps:,} steps": found.fit, "answers": found.answers, "baselines": found.baselines}
    known = ", ".join(f"{name} {_span(seconds)}" for name, seconds in parts.items() if seconds >= 1)
    early = ", fewer steps where it stops early" if found.least < found.most else ""
    return f"this will take {span(found.least, found.most)} ({known}{early})"


def span(least: float, most: float) -> str:
    """A range of seconds in words of one unit."""
    unit, size = next((u, s) for u, s in (("h", 3600.0), ("min", 60.0), ("s", 1.0)) if most >= 1.5 * s or s == 1.0)
    low, high = (_number(seconds / size) for seconds in (least, most))
    return f"about {high} {unit}" if low == high else f"{low} to {high} {unit}"


def _span(seconds: float) -> str:
    return span(seconds, seconds).removeprefix("about ")


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 9.5 else f"{value:.1f}".removesuffix(".0")
