"""How well each state is found again: by other restarts, or by the other starts of the search for states."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from svae.runs._folder import RESTARTS, STARTS, RunError, read_json, write_json, writing

WEAK = 0.5  # of an overlap: a state that is found again less than this has no boundaries of its own
Numbers = list[float | None]


class Stability(NamedTuple):
    """The stability of a run: how well its states are found again."""

    again: Float[np.ndarray, " K"]  # from 0 to 1 for each state; NaN where it is not known
    others: int  # segmentations that it was looked for in
    by: str  # who they are of, in words


class Unknown(NamedTuple):
    """Why there is no such number, in a clause."""

    why: str


def keep_starts(folder: Path, restart: int, starts: Any) -> None:
    """Write what the search of one restart says of its starts into starts.json; the other restarts stay."""
    before = _read_starts(folder)[:restart]
    now = {"starts": starts.number, "found_again": plain(starts.found_again), "duration": starts.duration}
    with writing(folder):
        write_json(folder / STARTS, {"restarts": [*before, *[None] * (restart - len(before)), now]})


def plain(values: Any) -> Numbers:
    """Numbers as JSON has them: null where one is not known."""
    return [float(value) if math.isfinite(value) else None for value in values]


def overruled(folder: Path) -> bool:
    """Whether the first search found its states without the target duration, because with it they explained little."""
    found = _read_starts(folder)
    return bool(found and found[0]) and found[0]["duration"] is None


def stability(folder: Path, restarts: int) -> Stability | Unknown:
    """The stability of a run: by its restarts, or by the starts of its search for states if it has one restart."""
    return _of_restarts(folder) if restarts > 1 else _of_starts(folder)


def as_counted(found: Stability | Unknown, merged: Mapping[int, int]) -> Stability | Unknown:
    """The same without numbers for states that people have merged with others: nobody has looked for their union."""
    if isinstance(found, Unknown):
        return found
    gone = [k for pair in merged.items() for k in pair if k < len(found.again)]
    again = found.again.copy()
    again[gone] = np.nan
    return found._replace(again=again)


def _of_restarts(folder: Path) -> Stability | Unknown:
    if not (folder / RESTARTS).exists():
        return Unknown("the fit has not written yet how its restarts agree")
    body = read_json(folder / RESTARTS)
    if not body.get("found_again"):
        return Unknown("fewer than two restarts could be compared, or the run is of an older version")
    return Stability(_numbers(folder / RESTARTS, body), int(body["others"]), "restarts")


def _of_starts(folder: Path) -> Stability | Unknown:
    found = _read_starts(folder)
    if not found or found[0] is None:
        return Unknown("its states had one start, or the run is of an older version")
    if found[0]["starts"] < 2:
        return Unknown(
            "its states began from labels or together with those of other blocks, so no starts can be compared"
        )
    number = int(found[0]["starts"]) - 1
    return Stability(_numbers(folder / STARTS, found[0]), number, "starts of the search for states, before training")


def _read_starts(folder: Path) -> list[dict[str, Any] | None]:
    if not (folder / STARTS).exists():
        return []
    found = read_json(folder / STARTS).get("restarts")
    fields = {"starts", "found_again", "duration"}
    if not isinstance(found, list) or not all(e is None or (isinstance(e, dict) and fields <= e.keys()) for e in found):
        raise RunError(f"{folder / STARTS} is damaged: it is not what was written; remove it")
    return found


def _numbers(file: Path, body: Mapping[str, Any]) -> np.ndarray:
    try:
        return np.array([math.nan if value is None else float(value) for value in body["found_again"]])
    except (TypeError, ValueError):
        raise RunError(f"{file} is damaged: it is not what was written; remove it") from None


def number(found: Stability | Unknown, k: int) -> float | None:
    """The number of one state; None where it is not known."""
    if isinstance(found, Unknown) or k >= len(found.again) or np.isnan(found.again[k]):
        return None
    return float(found.again[k])


def in_words(found: Stability) -> str:
    """What the numbers mean."""
    many = f"{found.others} other {found.by}" if found.others > 1 else f"one other of the {found.by}"
    return (
        f"How well each state is found again by {many}: the frames that it has in common with the most similar state "
        f"there, as a share of all frames of the two. 1 is the same state; below {WEAK:g} it is hardly found again."
    )


def weak(found: Stability, used: list[int], names: Mapping[int, str]) -> str:
    """A sentence about states in use that are hardly found again, else nothing."""
    values = {k: number(found, k) for k in used}
    poor = {k: value for k, value in values.items() if value is not None and value < WEAK}
    if not poor:
        return ""
    said = ", ".join(f"{names.get(k, f'state {k}')} ({value:.2f})" for k, value in poor.items())
    return (
        f"{said[0].upper()}{said[1:]} {'is' if len(poor) == 1 else 'are'} hardly found again by other {found.by}: "
        "another fit may divide these frames otherwise. Add recordings, or ask for fewer --states."
    )
