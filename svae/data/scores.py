"""How well a segmentation agrees with the truth."""

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
