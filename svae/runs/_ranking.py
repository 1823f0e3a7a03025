"""A run among plain models of the same recordings: who predicts held-out frames best, and how sure that is."""

from typing import NamedTuple

from svae.data.scores import Difference, difference
from svae.runs._run import Run

SURE = 2.0  # standard errors


class Place(NamedTuple):
    """One model of a ranking."""

    name: str
    held_out: float  # nats per frame
    against: Difference | None  # how much higher than the run; None for the run itself, or where it is not known
    ours: bool


def ranking(run: Run) -> list[Place]:
    """The run and its baselines, the best first; nothing where none are known.

    Args:
        run: A run.

    Returns:
        A `Place` for each: its name, its held-out nats per frame, and how far it is behind the best.
    """
    found, ours = run.baselines() or {}, run.held_out()
    values = {k: float(v) for k, v in (found.get("baselines") or {}).items() if isinstance(v, int | float)}
    if not values or ours is None:
        return []
    blocks, own = found.get("blocks") or {}, run.held_out_blocks()
    rows = [Place(name, value, difference(blocks.get(name), own), False) for name, value in values.items()]
    rows.append(Place(f"this run ({run.config.model} SVAE)", ours, None, True))
    return sorted(rows, key=lambda row: -row.held_out)


def words(against: Difference | None) -> str:
    """How much higher, with its standard error; nothing where it is not known.

    Args:
        against: The difference of two held-out numbers.

    Returns:
        Words, or nothing.
    """
    if against is None:
        return ""
    digits = 2 if abs(against.mean) < 100 else 1
    return f"{against.mean:+.{digits}f} ± {against.standard_error:.{digits}f}".replace("-", "−")


def verdict(places: list[Place]) -> str:
    """A sentence on the run and the best plain model; nothing where their difference is not known.

    Args:
        places: What `ranking` gives.

    Returns:
        A sentence, or nothing.
    """
    best = next((place for place in places if not place.ours), None)
    if best is None or best.against is None:
        return ""
    apart, size = -best.against.mean, best.against.size
    sure = "" if size >= SURE else ", which may be chance"
    side = "above" if apart >= 0 else "below"
    return (
        f"The run is {abs(apart):.{2 if abs(apart) < 100 else 1}f} nats per frame {side} the best plain model "
        f"({best.name}), {size:.1f} standard errors{sure}."
    )
