"""names.json: what people call the states, and which they count as one: {"3": "rear", "merged": {"5": 3}}."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from svae.runs._folder import NAMES, RunError, read_json, write_json, writing

MERGED = "merged"
LONGEST = 80  # characters of a name


class Labels(NamedTuple):
    """What people have said of the states of a run; no state is merged into one that is itself merged."""

    names: dict[int, str]
    merged: dict[int, int]  # state -> the state that it counts as


def read_labels(folder: Path) -> Labels:
    """What `write_labels` wrote; entries that make no sense are left out."""
    if not (folder / NAMES).exists():
        return Labels({}, {})
    found = read_json(folder / NAMES)
    names = {int(k): str(v) for k, v in found.items() if _is_state(k)}
    pairs = found.get(MERGED) if isinstance(found.get(MERGED), dict) else {}
    merged = {int(k): v for k, v in pairs.items() if _is_state(k) and isinstance(v, int) and v >= 0 and v != int(k)}
    return Labels(names, {k: v for k, v in merged.items() if v not in merged})


def _is_state(key: str) -> bool:
    return key.isascii() and key.isdigit()


def write_labels(folder: Path, labels: Labels) -> None:
    """Replace names.json whole."""
    named = {str(k): labels.names[k] for k in sorted(labels.names)}
    merged = {MERGED: {str(k): labels.merged[k] for k in sorted(labels.merged)}} if labels.merged else {}
    with writing(folder):
        write_json(folder / NAMES, named | merged)


def rename(labels: Labels, state: int, name: str) -> Labels:
    """Give a state a name; an empty one takes it away."""
    name = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    if len(name) > LONGEST:
        raise RunError(f"a name has at most {LONGEST} characters, not {len(name)}; choose a shorter one")
    others = {k: v for k, v in labels.names.items() if k != state}
    return labels._replace(names=others | {state: name} if name else others)


def merge(labels: Labels, states: Iterable[int], into: int) -> Labels:
    """Count states, and all that were merged into them, as `into`; names are kept for the day they part again."""
    root = labels.merged.get(into, into)
    roots = {labels.merged.get(k, k) for k in states} - {root}
    moved = roots | {k for k, v in labels.merged.items() if v in roots}
    return labels._replace(merged=labels.merged | dict.fromkeys(sorted(moved), root))


def unmerge(labels: Labels, state: int) -> Labels:
    """Let a state count as itself again; the state that others were merged into lets all of them go."""
    return labels._replace(merged={k: v for k, v in labels.merged.items() if state not in (k, v)})
