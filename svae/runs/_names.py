"""names.json: what people call the states, and which they count as one: {"3": "rear", "merged": {"5": 3}}.

With several discrete blocks these are of the one that is shown; the same of each other block is below "blocks".

The files of a run keep what the model says; whoever reads a `Run` sees the states as people count them.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from svae.runs._folder import NAMES, RunError, read_json, write_json, writing
from svae.runs._posterior import Bout, Posterior

MERGED, BLOCKS = "merged", "blocks"
LONGEST_NAME = 80  # characters of a name


class Labels(NamedTuple):
    """What people have said of the states of a run; no state is merged into one that is itself merged."""

    names: dict[int, str]
    merged: dict[int, int]  # state -> the state that it counts as
    blocks: Mapping[str, "Labels"] = MappingProxyType({})  # of the other discrete blocks, where there are several

    def of(self, block: str) -> "Labels":
        """The labels of another block than the one that is shown."""
        return self.blocks.get(block, Labels({}, {}))

    def with_block(self, block: str, labels: "Labels") -> "Labels":
        """The same with other names and merges of another block."""
        return self._replace(blocks={**self.blocks, block: labels})


def read_labels(folder: Path) -> Labels:
    """What `write_labels` wrote; entries that make no sense are left out."""
    if not (folder / NAMES).exists():
        return Labels({}, {})
    found = read_json(folder / NAMES)
    others = found.get(BLOCKS) if isinstance(found.get(BLOCKS), dict) else {}
    known = {str(block): _labels(one) for block, one in others.items() if isinstance(one, dict)}
    return _labels(found)._replace(blocks=known) if known else _labels(found)


def _labels(found: Mapping) -> Labels:
    names = {int(k): str(v) for k, v in found.items() if _is_state(k)}
    pairs = found.get(MERGED) if isinstance(found.get(MERGED), dict) else {}
    known = {int(k): v for k, v in pairs.items() if _is_state(k) and isinstance(v, int) and _is_state(str(v))}
    merged = {k: v for k, v in known.items() if k != v}
    return Labels(names, {k: v for k, v in merged.items() if v not in merged})


def _is_state(key: str) -> bool:
    return key.isascii() and key.isdigit() and len(key) <= 5  # no model has 100,000


def write_labels(folder: Path, labels: Labels) -> None:
    """Replace names.json whole.

    Args:
        folder: A run folder.
        labels: Names and merges.
    """
    others = {block: _plain(one) for block, one in labels.blocks.items() if any(one)}
    with writing(folder):
        write_json(folder / NAMES, _plain(labels) | ({BLOCKS: others} if others else {}))


def _plain(labels: Labels) -> dict:
    named = {str(k): labels.names[k] for k in sorted(labels.names)}
    return named | ({MERGED: {str(k): labels.merged[k] for k in sorted(labels.merged)}} if labels.merged else {})


def rename(labels: Labels, state: int, name: str) -> Labels:
    """Give a state a name; an empty one takes it away.

    Args:
        labels: Names and merges, as `Run.labels()` gives them.
        state: A state.
        name: Its name.

    Returns:
        `Labels`.
    """
    name = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    if len(name) > LONGEST_NAME:
        raise RunError(f"a name has at most {LONGEST_NAME} characters, not {len(name)}; choose a shorter one")
    others = {k: v for k, v in labels.names.items() if k != state}
    return labels._replace(names=others | {state: name} if name else others)


def merge(labels: Labels, states: Iterable[int], into: int) -> Labels:
    """Count states, and all that were merged into them, as `into`; names are kept for the day they part again.

    Args:
        labels: Names and merges, as `Run.labels()` gives them.
        states: The states to count as another one.
        into: That one.

    Returns:
        `Labels`.
    """
    root = labels.merged.get(into, into)
    roots = {labels.merged.get(k, k) for k in states} - {root}
    moved = roots | {k for k, v in labels.merged.items() if v in roots}
    return labels._replace(merged=labels.merged | dict.fromkeys(sorted(moved), root))


def unmerge(labels: Labels, state: int) -> Labels:
    """Let a state count as itself again; the state that others were merged into lets all of them go.

    Args:
        labels: Names and merges, as `Run.labels()` gives them.
        state: A state.

    Returns:
        `Labels`.
    """
    return labels._replace(merged={k: v for k, v in labels.merged.items() if state not in (k, v)})


# --- answers as people count states -------------------------------------------------------------------------------


def roots(merged: Mapping[int, int], K: int) -> Int[np.ndarray, " K"]:
    """The state that each of 0..K-1 counts as."""
    counted = np.arange(K)
    for k, root in merged.items():
        if k < K and root < K:
            counted[k] = root
    return counted


def as_counted(found: Posterior, merged: Mapping[int, int]) -> Posterior:
    """Merged states are one: it has the frames and the probability of all of them, and they have none."""
    if not merged:
        return found
    counted = roots(merged, found.probability.shape[1])
    probability = np.zeros_like(found.probability)
    np.add.at(probability.T, counted, found.probability.T)
    return found._replace(state=counted[found.state].astype(found.state.dtype), probability=probability)


def joined(bouts: Iterable[Bout], merged: Mapping[int, int]) -> list[Bout]:
    """Merged states are one, and bouts of it that meet are one bout.

    Its probability is the mean over its frames of that of the state each was in: at least this much of the whole.
    """
    found: list[Bout] = []
    for bout in bouts:
        bout = bout._replace(state=merged.get(bout.state, bout.state))
        last = found[-1] if found else None
        if last and (last.recording, last.state) == (bout.recording, bout.state):
            found[-1] = _both(last, bout)
        else:
            found.append(bout)
    return found


def _both(a: Bout, b: Bout) -> Bout:
    ours, theirs = a.stop - a.start, b.stop - b.start
    share = ours / (ours + theirs) if ours + theirs > 0 else 0.5
    return a._replace(stop=b.stop, probability=share * a.probability + (1 - share) * b.probability)
