"""How well states fit labels, and what states are like without labels."""

from collections.abc import Sequence

import numpy as np

IN_USE = 0.01  # of the frames; a state with less is not in use


def scores(kind: str, labels: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> dict[str, float]:
    """Scores of one segmentation, (T_i,) of each recording, by the kind of its labels (`sets.Part`)."""
    truth, states = np.concatenate(labels), np.concatenate(found)
    measured = {"covering": covering(labels, found)}
    if kind in ("frames", "series"):
        measured |= agreement(truth, states)
    if kind == "series":
        usual = [np.bincount(one).argmax() for one in found]
        series = agreement(np.array([one[0] for one in labels]), np.array(usual))
        measured |= {f"series_{name}": value for name, value in series.items()}
    if kind == "rearing":
        measured |= balanced(truth, states)
    return measured


def agreement(truth: np.ndarray, found: np.ndarray) -> dict[str, float]:
    """Accuracy (one state for one label), NMI, AMI and ARI."""
    from scipy.optimize import linear_sum_assignment
    from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score, normalized_mutual_info_score
    from sklearn.metrics.cluster import contingency_matrix

    table = contingency_matrix(truth, found)
    return {
        "accuracy": float(table[linear_sum_assignment(table, maximize=True)].sum() / len(truth)),
        "nmi": float(normalized_mutual_info_score(truth, found)),
        "ami": float(adjusted_mutual_info_score(truth, found)),
        "ari": float(adjusted_rand_score(truth, found)),
    }


def balanced(truth: np.ndarray, found: np.ndarray) -> dict[str, float]:
    """Balanced accuracy of yes or no when a state stands for its majority, or for what it meets more than most."""
    from sklearn.metrics import balanced_accuracy_score

    often = np.array([np.mean(truth[found == k]) if np.any(found == k) else 0 for k in range(found.max() + 1)])
    return {
        "majority": float(balanced_accuracy_score(truth, (often > 0.5)[found])),
        "balanced": float(balanced_accuracy_score(truth, (often > truth.mean())[found])),
    }


def covering(labels: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> float:
    """Segment covering (Arbelaez et al. 2011; van den Burg and Williams 2020), in the mean over frames.

    Every true segment gets the largest intersection over union that it has with a segment that was found, and counts
    by its length. Which states the segments are in does not matter.
    """
    covered = sum(_covered(segments(a), segments(b)) for a, b in zip(labels, found, strict=True))
    return float(covered / sum(map(len, labels)))


def segments(labels: np.ndarray) -> np.ndarray:
    """Begin and end of every run of one label (S, 2)."""
    edges = np.flatnonzero(np.diff(labels)) + 1
    return np.stack([np.r_[0, edges], np.r_[edges, len(labels)]], 1)


def _covered(true, found):
    """Frames of true segments times their best intersection over union."""
    begin, end = np.maximum(true[:, None, 0], found[:, 0]), np.minimum(true[:, None, 1], found[:, 1])
    both = np.maximum(end - begin, 0)
    length = np.diff(true)[:, 0]
    either = length[:, None] + np.diff(found)[:, 0] - both
    return np.sum(length * np.max(both / either, axis=1))


def shape(found: Sequence[np.ndarray]) -> dict[str, float]:
    """States in use, the share of the largest one, and the median bout in frames."""
    share = np.bincount(np.concatenate(found)) / sum(map(len, found))
    return {
        "in_use": int(np.sum(share > IN_USE)),
        "largest": float(share.max()),
        "median_bout": float(np.median(np.concatenate([np.diff(segments(one))[:, 0] for one in found]))),
    }
