"""How well a segmentation agrees with the truth."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


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
