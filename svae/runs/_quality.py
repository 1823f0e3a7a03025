"""states.csv: how well the frames of each state were observed, so that a state of tracking errors is seen as one."""

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from svae._sealed import write_atomically
from svae.data.views import blocks
from svae.runs._folder import STATES, RunError, read_text, writing
from svae.runs._names import roots

VIDEO = ("frames", "depth")  # kinds of recordings in which no entry is ever missing
SUSPECT = 0.25  # share of incomplete frames from which a state may be a fault of the tracker
TIMES = 3.0  # as many of them as in all other frames
DOUBTFUL = 0.6  # mean confidence below which a tracker is unsure


class Quality(NamedTuple):
    """Sums over the frames of each state; sums of two recordings, or of two merged states, can be added."""

    frames: Float[np.ndarray, " K"]
    incomplete: Float[np.ndarray, " K"]  # frames with at least one missing entry
    missing: Float[np.ndarray, " K"]  # over these frames, the sum of the share of entries that are missing
    confidence: Float[np.ndarray, " K"]  # the sum of the mean confidence of a frame's points, as its tracker gave it
    rated: Float[np.ndarray, " K"]  # frames that have a confidence

    @property
    def share_incomplete(self) -> Float[np.ndarray, " K"]:
        """Share of the frames of each state with a missing entry; NaN for a state without frames."""
        return _divided(self.incomplete, self.frames)

    @property
    def share_missing(self) -> Float[np.ndarray, " K"]:
        """Share of the entries of each state that are missing."""
        return _divided(self.missing, self.frames)

    @property
    def mean_confidence(self) -> Float[np.ndarray, " K"]:
        """Mean confidence of each state; NaN where the file gives none."""
        return _divided(self.confidence, self.rated)


def _divided(a, b):
    return np.where(b > 0, a / np.maximum(b, 1), np.nan)


def quality(sequence: Any, state: np.ndarray, K: int, keep: tuple[int, ...] = ()) -> Quality:
    """The sums of one raw recording; of points, `keep` are those that the model sees."""
    found = [np.zeros(K) for _ in Quality._fields]
    found[0] += np.bincount(state, minlength=K)
    if getattr(sequence, "kind", "") not in VIDEO:
        for first, frames in blocks(sequence):
            seen = frames[:, list(keep)] if keep else frames
            absent = np.isnan(seen).reshape(len(frames), -1)
            now = state[first : first + len(frames)]
            found[1] += np.bincount(now, absent.any(1), minlength=K)
            found[2] += np.bincount(now, absent.mean(1), minlength=K)
    if (trust := getattr(sequence, "confidence", None)) is not None:
        trust = np.asarray(trust)[:, list(keep)] if keep else np.asarray(trust)
        known = np.isfinite(trust)
        mean = np.where(known, trust, 0).sum(1) / np.maximum(known.sum(1), 1)
        found[3] += np.bincount(state, mean, minlength=K)
        found[4] += np.bincount(state, known.any(1), minlength=K)
    return Quality(*found)


def added(a: Quality, b: Quality) -> Quality:
    """The sums over the frames of both."""
    return Quality(*(x + y for x, y in zip(a, b, strict=True)))


def as_counted(found: Quality, merged: Mapping[int, int]) -> Quality:
    """Merged states are one."""
    K = len(found.frames)
    return Quality(*(np.bincount(roots(merged, K), values, minlength=K) for values in found))


def suspects(found: Quality) -> list[int]:
    """States that may be faults of the tracker: many more incomplete frames than the rest, or a low confidence."""
    return [k for k in range(len(found.frames)) if found.frames[k] and (_gaps(found, k) or _doubts(found, k))]


def _gaps(found, k):
    others = (found.incomplete.sum() - found.incomplete[k]) / max(found.frames.sum() - found.frames[k], 1)
    return found.share_incomplete[k] > max(SUSPECT, TIMES * others)


def _doubts(found, k):
    others = (found.confidence.sum() - found.confidence[k]) / max(found.rated.sum() - found.rated[k], 1)
    mine = found.mean_confidence[k]
    return np.isfinite(mine) and mine < DOUBTFUL and 1 - mine > TIMES * max(1 - others, 0.02)


def warning(found: Quality, k: int, name: str) -> str:
    """A sentence about a state that may be a fault of the tracker."""
    rest = found.frames.sum() - found.frames[k]
    others = (found.incomplete.sum() - found.incomplete[k]) / max(rest, 1)
    trust = (
        f" Their mean confidence is {found.mean_confidence[k]:.2f}." if np.isfinite(found.mean_confidence[k]) else ""
    )
    return (
        f"{name[0].upper()}{name[1:]} may be a fault of the tracker, not an action: "
        f"{100 * found.share_incomplete[k]:.0f} % of its frames have a missing point or number, and {100 * others:.0f} "
        f"% of all other frames.{trust} Look at its frames before you name it."
    )


# --- states.csv ---------------------------------------------------------------------------------------------------

COLUMNS = ("state", "frames", "share", "frames_with_missing", "missing", "confidence", "frames_with_confidence")
AGAIN = "found_again"  # (`svae.runs._stability`); older tables have none
BLOCK = "block"  # the last column, where there are several discrete blocks


def write_quality(folder: Path, found: Mapping[str, Quality], again: Float[np.ndarray, " K"] | None = None) -> None:
    """Replace states.csv whole: one row for each state, with how well it is found again where that is known.

    `found` is by block: one alone has the name "", of several the first is the one that `again` speaks of.
    """
    text = io.StringIO(newline="")
    rows, several = csv.writer(text), len(found) > 1
    rows.writerow([*COLUMNS, AGAIN, *([BLOCK] if several else [])])
    for i, (block, one) in enumerate(found.items()):
        for row in _rows(one, None if i else again):
            rows.writerow([*row, block] if several else row)
    with writing(folder):
        write_atomically(folder / STATES, text.getvalue().encode())


def _rows(found: Quality, again: Float[np.ndarray, " K"] | None) -> Iterator[list]:
    """A row for each state of one block."""
    again = np.full(len(found.frames), np.nan) if again is None else again
    shares = found.frames / max(found.frames.sum(), 1)
    for k, parts in enumerate(zip(found.frames, shares, found.share_incomplete, found.share_missing, strict=True)):
        trust = found.mean_confidence[k]
        frames, *others = ("" if np.isnan(value) else value for value in parts)
        numbers = ["" if value == "" else f"{value:.6f}" for value in others]
        sure, same = ("" if np.isnan(value) else f"{value:.6f}" for value in (trust, again[k]))
        yield [k, int(frames), *numbers, sure, int(found.rated[k]), same]


def read_quality(folder: Path, block: str | None = None) -> Quality | None:
    """What `write_quality` wrote, of several blocks the one that is named, or the first; None for older answers."""
    found = read_all_qualities(folder)
    return found.get(next(iter(found), "") if block is None else block)


def read_all_qualities(folder: Path) -> dict[str, Quality]:
    """The same of all blocks by name; one alone has the name "". Nothing for answers that are older."""
    if not (folder / STATES).exists():
        return {}
    rows = list(csv.reader(io.StringIO(read_text(folder / STATES), newline="")))
    try:
        if tuple(rows[0]) not in (COLUMNS, (*COLUMNS, AGAIN), (*COLUMNS, AGAIN, BLOCK)):
            raise ValueError
        block_of = [row[-1] if rows[0][-1] == BLOCK else "" for row in rows[1:]]
        table = np.array([[float(cell or 0) for cell in row[: len(COLUMNS)]] for row in rows[1:]])
        table = table.reshape(-1, len(COLUMNS))
    except (ValueError, IndexError):
        raise RunError(f"{folder / STATES} is damaged; write it again with `svae apply`") from None
    names = dict.fromkeys(block_of or [""])
    return {name: _of_rows(table[[block == name for block in block_of]]) for name in names}


def _of_rows(table: Float[np.ndarray, "K n"]) -> Quality:
    _, frames, _, incomplete, missing, confidence, rated = table.T
    return Quality(frames, incomplete * frames, missing * frames, confidence * rated, rated)
