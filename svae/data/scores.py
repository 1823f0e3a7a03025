"""How well a segmentation agrees with the truth."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

IN_USE = 0.01  # of the frames, that a state in use has at least


def contingency(truth: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Counts (true labels, found labels)."""
    table = np.zeros((truth.max() + 1, found.max() + 1))
    np.add.at(table, (truth, found), 1)
    return table


def adjusted_rand_index(truth: np.ndarray, found: np.ndarray) -> float:
    """Agreement of two labellings: 1 for the same partition, 0 on average for chance (Hubert and Arabie, 1985)."""
    table = contingency(truth, found)
    pairs = lambda n: float(np.sum(n * (n - 1) / 2))  # noqa: E731
    both, rows, columns = pairs(table), pairs(table.sum(1)), pairs(table.sum(0))
    expected = rows * columns / pairs(np.array([table.sum()]))
    most = (rows + columns) / 2
    return 1.0 if most == expected else (both - expected) / (most - expected)


def matched(truth: np.ndarray, found: np.ndarray) -> np.ndarray:
    """The true label that each found label meets most often (labels,)."""
    return contingency(truth, found).argmax(0)


def purity(truth: np.ndarray, found: np.ndarray) -> float:
    """The share of frames whose found label meets their true label most often."""
    return float(contingency(truth, found).max(0).sum() / len(truth))


def found_again(path: np.ndarray, others: Sequence[np.ndarray], K: int) -> np.ndarray:
    """How well each state (K,) of a segmentation is found again by others of the same frames, from 0 to 1.

    The largest Jaccard index with one state of another segmentation (frames that both have, as a share of those that
    one of them has), averaged over the others; NaN for a state without frames, and where there are no others.
    """
    if not others:
        return np.full(K, np.nan)
    found = np.mean([_largest_overlap(path, other, K) for other in others], 0)
    return np.where(np.bincount(path, minlength=K) > 0, found, np.nan)


def _largest_overlap(path, other, K):
    both = np.zeros((K, other.max() + 1))
    np.add.at(both, (path, other), 1)
    either = both.sum(1, keepdims=True) + both.sum(0) - both
    return (both / np.maximum(either, 1)).max(1)


def bout_lengths(labels: list[np.ndarray]) -> np.ndarray:
    """Lengths of all runs of equal labels."""
    edges = [np.flatnonzero(np.r_[True, z[1:] != z[:-1], True]) for z in labels]
    return np.concatenate([np.diff(e) for e in edges])


Parts = Sequence[float] | np.ndarray | None
BLOCKS, SHORTEST = 10, 5  # parts of held-out frames, and frames of one at least


def block_means(values: np.ndarray) -> np.ndarray:
    """Means of successive parts of values (N,): frames near each other are alike, parts much less so."""
    number = min(BLOCKS, len(values) // SHORTEST)
    return np.array([part.mean(dtype=float) for part in np.array_split(values, number)]) if number > 1 else np.zeros(0)


class Difference(NamedTuple):
    """How much higher one held-out number is than another, and how sure that is."""

    mean: float
    standard_error: float

    @property
    def size(self) -> float:
        """In standard errors."""
        return abs(self.mean) / max(self.standard_error, 1e-300)


def difference(a: Parts, b: Parts) -> Difference | None:
    """a - b from the means of the same parts of the same frames; None where they are not known."""
    if a is None or b is None or len(a) != len(b) or len(a) < 2:
        return None
    apart = np.asarray(a, float) - np.asarray(b, float)
    return Difference(float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(len(apart))))
