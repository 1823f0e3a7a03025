"""The ethogram as people count it: states that were merged are one."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int


class Ethogram(NamedTuple):
    """Bout i of T frames goes from start[i] to start[i + 1], the last to T."""

    start: Int[np.ndarray, " n"]
    state: Int[np.ndarray, " n"]
    frames: int

    def at(self, frame: int) -> int:
        """The number of the bout that holds a frame."""
        return int(np.searchsorted(self.start, frame, "right")) - 1

    def span(self, i: int) -> tuple[int, int]:
        """First frame of a bout, and the first after it."""
        return int(self.start[i]), int(self.start[i + 1]) if i + 1 < len(self.start) else self.frames


def ethogram(state: Int[np.ndarray, " T"], counted: Int[np.ndarray, " K"]) -> Ethogram:
    """Maximal stretches of what counts as one state."""
    path = counted[state]
    start = np.flatnonzero(np.r_[True, path[1:] != path[:-1]])
    return Ethogram(start, path[start], len(path))


def majority(found: Ethogram, edges: Int[np.ndarray, " edges"], K: int) -> Int[np.ndarray, " n"]:
    """The commonest state between each edge and the next: frames by state, from the bouts that touch the stretch."""
    a, b = found.at(int(edges[0])), found.at(int(edges[-1]) - 1) + 1
    first = np.clip(found.start[a:b], edges[0], None)
    cuts = np.union1d(first, edges[:-1])
    length = np.diff(np.r_[cuts, edges[-1]])
    state = found.state[np.searchsorted(found.start, cuts, "right") - 1]
    bin_of = np.searchsorted(edges, cuts, "right") - 1
    n = len(edges) - 1
    return np.bincount(bin_of * K + state, length, minlength=n * K).reshape(n, K).argmax(1)


def following(found: Ethogram, frame: int, state: int, step: int) -> int | None:
    """The nearest bout of a state after (step 1) or before (step -1) the bout that holds a frame."""
    mine = np.flatnonzero(found.state == state)
    here = found.at(frame)
    others = mine[mine > here] if step > 0 else mine[mine < here][::-1]
    return int(others[0]) if len(others) else None


def statistics(found: list[Ethogram], K: int) -> list[tuple[float, int, float]]:
    """Share of all frames, number of bouts and median frames of a bout, for each state."""
    state = np.concatenate([e.state for e in found])
    length = np.concatenate([np.diff(np.r_[e.start, e.frames]) for e in found])
    share = np.bincount(state, length, minlength=K) / max(1, length.sum())
    each = [length[state == k] for k in range(K)]
    return [(float(share[k]), len(n), float(np.median(n)) if len(n) else 0.0) for k, n in enumerate(each)]
