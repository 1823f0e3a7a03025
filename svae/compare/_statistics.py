"""Differences between groups where each animal is one number: effects, intervals, permutation tests, discovery rate."""

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import special

RELABELLINGS = 50_000  # all of them where there are no more than these, else as many at random
SEED = 0  # of those at random
SURE = 0.95  # of every interval
FLOOR = 1e-8  # of the variance of a mean, in units of the spread of all animals: groups of equal numbers stay finite
SAME = 1e-6  # statistics closer than this, relatively, are ties
BLOCK = 2**22  # numbers held at once


class Interval(NamedTuple):
    """An estimate and the ends of its interval."""

    value: float
    low: float
    high: float


NOTHING = Interval(math.nan, math.nan, math.nan)


def difference(a: Float[np.ndarray, " m"], b: Float[np.ndarray, " n"]) -> Interval:
    """mean b - mean a with Welch's interval, which lets the groups differ in spread."""
    va, vb = np.var(a, ddof=1) / len(a), np.var(b, ddof=1) / len(b)
    value, error = float(np.mean(b) - np.mean(a)), float(np.sqrt(va + vb))
    if error == 0:
        return Interval(value, value, value)
    freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    reach = float(special.stdtrit(freedom, 0.5 + SURE / 2)) * error
    return Interval(value, value - reach, value + reach)


def hedges(a: Float[np.ndarray, " m"], b: Float[np.ndarray, " n"]) -> Interval:
    """Hedges' g: the difference in pooled standard deviations, freed of bias; its interval is the noncentral t's."""
    freedom = len(a) + len(b) - 2
    pooled = np.sqrt(((len(a) - 1) * np.var(a, ddof=1) + (len(b) - 1) * np.var(b, ddof=1)) / freedom)
    if pooled <= 1e-12 * np.max(np.abs(np.r_[a, b])):
        return NOTHING
    d, unit = float((np.mean(b) - np.mean(a)) / pooled), math.sqrt(1 / len(a) + 1 / len(b))
    unbiased = math.exp(math.lgamma(freedom / 2) - math.lgamma((freedom - 1) / 2)) / math.sqrt(freedom / 2)
    low, high = (unit * _noncentrality(freedom, d / unit, p) for p in (0.5 + SURE / 2, 0.5 - SURE / 2))
    return Interval(d * unbiased, low, high)


def _noncentrality(freedom: int, t: float, probability: float) -> float:
    """The noncentrality for which a t as small as this has the probability; by bisection, it falls with it."""
    low, high = -4 * abs(t) - 10, 4 * abs(t) + 10
    for _ in range(80):
        middle = (low + high) / 2
        above = special.nctdtr(freedom, middle, t) > probability
        low, high = (middle, high) if above else (low, middle)
    return (low + high) / 2


# --- permutation --------------------------------------------------------------------------------------------------


def relabellings(sizes: tuple[int, ...]) -> int:
    """In how many ways animals can be shared out over groups of these sizes."""
    return math.factorial(sum(sizes)) // math.prod(map(math.factorial, sizes))


def is_exact(sizes: tuple[int, ...]) -> bool:
    """Whether all of them are gone through."""
    return relabellings(sizes) <= RELABELLINGS


def smallest_p(sizes: tuple[int, ...]) -> float:
    """The smallest p that a test can reach: groups of equal size may change places, which changes no statistic."""
    alike = math.prod(math.factorial(n) for n in np.unique(sizes, return_counts=True)[1].tolist())
    return alike / relabellings(sizes) if is_exact(sizes) else 1 / RELABELLINGS


def permutation_p(values: Float[np.ndarray, "n m"], group: Int[np.ndarray, " n"]) -> Float[np.ndarray, " m"]:
    """The p of each column: the share of relabellings of the animals whose statistic is at least the one observed.

    An animal that says nothing in a column (NaN) is left out of it; groups are 0..G-1, each of at least 2 animals.
    """
    found = np.full(values.shape[1], np.nan)
    known = np.isfinite(values)
    for pattern in np.unique(known, axis=1).T:
        columns = np.flatnonzero((known == pattern[:, None]).all(0))
        order = np.flatnonzero(pattern)[np.argsort(group[pattern], kind="stable")]
        found[columns] = _p(values[np.ix_(order, columns)], group[order])
    return found


def _p(values, group):
    """For columns without gaps, animals sorted by group."""
    labels = _labels(tuple(np.bincount(group).tolist()))
    step = max(1, BLOCK // len(labels))
    parts = [_share(values[:, i : i + step], labels) for i in range(0, values.shape[1], step)]
    return np.concatenate(parts)


def _share(values, labels):
    found = statistic(values, labels)
    return np.mean(found >= found[0] * (1 - SAME), axis=0)


def statistic(values: Float[np.ndarray, "n m"], labels: Int[np.ndarray, "r n"]) -> Float[np.ndarray, "r m"]:
    """Welch's sum of squares between groups, sum_g (mean_g - mean)^2 / v_g, v_g the variance of mean_g; t^2 for two.

    Being in units of each group's own spread, it tests means also where the spreads differ.
    """
    spread = values.std(0)
    z = (values - values.mean(0)) / np.where(spread > 1e-12 * np.abs(values).max(0), spread, np.inf)
    means, weights = zip(*(_moments(z, labels == g) for g in range(labels.max() + 1)), strict=True)
    means, weights = np.stack(means), np.stack(weights)
    middle = (weights * means).sum(0) / weights.sum(0)
    return (weights * (means - middle) ** 2).sum(0)


def _moments(z, member):
    """Mean of the members and one over its variance, (r, m) each."""
    member = member.astype(float)
    n = member[0].sum()
    mean = member @ z / n
    variance = (member @ z**2 - n * mean**2) / (n - 1) / n
    return mean, 1 / np.maximum(variance, FLOOR)


@functools.lru_cache(maxsize=8)
def _labels(sizes: tuple[int, ...]) -> np.ndarray:
    """Group of each animal (relabellings, animals); the first row is as it was observed."""
    if is_exact(sizes):
        return _all(sizes)
    observed = np.repeat(np.arange(len(sizes), dtype=np.int8), sizes)
    drawn = np.random.default_rng(SEED).permuted(np.tile(observed, (RELABELLINGS, 1)), axis=1)
    drawn[0] = observed  # counted as one of them: p is never 0, and the test keeps its level
    return drawn


def _all(sizes):
    """Members of the first group in every way, and the rest shared out in every way."""
    n, size = sum(sizes), sizes[0]
    if len(sizes) == 1:
        return np.zeros((1, n), np.int8)
    rest = _all(sizes[1:]) + np.int8(1)
    chosen = np.array(list(itertools.combinations(range(n), size)))
    outside = np.ones((len(chosen), n), bool)
    outside[np.arange(len(chosen))[:, None], chosen] = False
    found = np.zeros((len(chosen), len(rest), n), np.int8)
    found[np.broadcast_to(outside[:, None], found.shape)] = np.broadcast_to(rest, (len(chosen), *rest.shape)).ravel()
    return found.reshape(-1, n)


def false_discovery(p: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
    """q of each test by Benjamini and Hochberg over all tests that were made; NaN where none was."""
    q, made = np.full(p.shape, np.nan), np.flatnonzero(np.isfinite(p))
    order = made[np.argsort(p[made], kind="stable")]
    raw = p[order] * len(order) / np.arange(1, len(order) + 1)
    q[order] = np.minimum(np.minimum.accumulate(raw[::-1])[::-1], 1.0)
    return q
