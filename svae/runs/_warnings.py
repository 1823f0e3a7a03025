"""What a finished fit should make people think twice about, in sentences, from numbers alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from svae.config import OWN, Config
from svae.named import DEFAULT_STATES, tables_of

MOST_OF_ONE_STATE = 0.8  # of the frames that one state may have
IN_USE = 0.01  # of the frames that a state in use has at least
RISE = 0.02  # of the whole climb of the held-out bound that its last step may still be
FEWEST = 3  # measurements that a climb is judged by


def warnings_of(shares: Sequence[float], metrics: Sequence[dict[str, Any]]) -> list[str]:
    """Sentences from the share of the frames of each state (K,), one for a model without states, and the metrics."""
    return [*of_states(shares), *rising(metrics)]


def of_states(shares: Sequence[float], block: str = "", more: int | None = None) -> list[str]:
    """Sentences about the states of one block, which has a name where there are several; `more` is what to try."""
    shares, of = np.asarray(shares, float), f" of {block}" if block else ""
    if len(shares) < 2:
        return []
    used, largest = int(np.sum(shares >= IN_USE)), int(np.argmax(shares))
    found = []
    if shares[largest] > MOST_OF_ONE_STATE:
        share = f"{100 * shares[largest]:.0f} %"
        found.append(
            f"State {largest}{of} has {share} of the frames: a shorter --target-duration or more steps may divide it."
        )
    return [*found, *filter(None, [all_used(used, len(shares), of, more)])]


def all_used(used: int, states: int, of: str = "", more: int | None = None) -> str:
    """A sentence where all states are in use, with what to type; `more` None means that no option changes them."""
    if used < states or states < 2:
        return ""
    what = "give the graph more" if more is None else f"try `--states {more}`"
    return f"All {used} states{of} are in use, so their number may be too small: {what}."


def more_states(config: Config, block: str | None = None) -> int | None:
    """The --states that give a block, or the one there is, twice as many states; None where the option does not."""
    if config.model == OWN:
        return None
    more = 2 * (config.states or DEFAULT_STATES)
    before, after = (tables_of(config.model, config.to_dict() | {"states": n}) for n in (more // 2, more))
    if not isinstance(before, dict):
        return more
    grown = [name for name in before if before[name].get("states", 0) < after[name].get("states", 0)]
    return more if grown and (block is None or block in grown) else None


def rising(metrics: Sequence[dict[str, Any]]) -> list[str]:
    """Whether the held-out bound, or without one the bound, was still rising when the fit ended."""
    held = [line["held_out"] for line in metrics if line.get("held_out") is not None]
    if len(held) < FEWEST:
        return []
    climb, last = max(held) - min(held), held[-1] - max(held[:-1])
    if climb <= 0 or last <= RISE * climb:
        return []
    return [f"The held-out bound was still rising at the end, by {last:.3g} nats per frame: more --steps may help."]
