"""Groups of simulated animals, with a known difference or none: how often `svae compare` is right.

    python -m benchmarks.compare_study            false positives, coverage and false discoveries, about a minute
    python -m benchmarks.compare_study --out runs/study     a run folder with two groups, and its comparison

Nothing is fitted: an animal is a semi-Markov chain of named actions with habits of its own.
"""

import argparse
import csv
import itertools
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from svae import runs
from svae.compare import _statistics as statistics
from svae.compare import compare
from svae.compare._measures import measures
from svae.compare._tables import controlled
from svae.config import Config
from svae.data import recordings
from svae.runs import Bout
from svae.runs._posterior import write_bouts

ACTIONS = ("walk", "run", "scan", "rear", "sniff", "groom", "curl", "freeze")
SHARES = np.array([0.20, 0.08, 0.16, 0.12, 0.17, 0.11, 0.07, 0.09])  # how often each action begins
SECONDS = np.array([0.7, 0.5, 0.6, 0.8, 0.5, 1.2, 0.9, 1.1])  # median of a bout
FPS = 30.0


class Animal(NamedTuple):
    """How often an action follows another (rows sum to 1, none follows itself), and the median of its bouts."""

    follows: np.ndarray
    seconds: np.ndarray


def animal(rng, shares=SHARES, seconds=SECONDS, habit=0.12) -> Animal:
    """An animal near the typical one: each of its numbers is its own by about `habit`."""
    K = len(shares)
    weights = np.exp(np.log(shares) + habit * rng.normal(size=K)) * np.exp(habit * rng.normal(size=(K, K)))
    np.fill_diagonal(weights, 0)
    return Animal(weights / weights.sum(1, keepdims=True), seconds * np.exp(habit * rng.normal(size=K)))


def bouts(rng, one: Animal, name: str, length: float) -> list[Bout]:
    """One recording of `length` seconds, in whole frames."""
    found, time, state = [], 0.0, int(rng.integers(len(one.seconds)))
    while time < length:
        frames = max(1, round(FPS * float(one.seconds[state] * np.exp(0.5 * rng.normal()))))
        found.append(Bout(name, state, time, min(time + frames / FPS, length), 0.9))
        time += frames / FPS
        state = int(rng.choice(len(one.seconds), p=one.follows[state]))
    return found


def treated(rng) -> Animal:
    """Rears and runs more, freezes less and for shorter; after a scan it rears."""
    shares, seconds = SHARES * [1, 1.3, 1, 1.5, 1, 1, 1, 0.6], SECONDS * [1, 1, 1, 1, 1, 1.25, 1, 0.75]
    found = animal(rng, shares / shares.sum(), seconds)
    follows = found.follows.copy()
    follows[ACTIONS.index("scan"), ACTIONS.index("rear")] *= 2.2
    return found._replace(follows=follows / follows.sum(1, keepdims=True))


def study(folder: Path, *, animals: int = 8, sessions: int = 2, length: float = 300.0, seed: int = 0) -> runs.Run:
    """A run folder with vehicle and drug, as if a fit had found the actions, and groups.csv in it."""
    rng, found, rows = np.random.default_rng(seed), [], []
    for group, kind in (("vehicle", animal), ("drug", treated)):
        for i in range(animals):
            one = kind(rng)
            for session in range(sessions):
                name = f"{group[0]}{i + 1}-day{session + 1}"
                found += bouts(rng, one, name, length)
                rows.append([name, f"{group[0]}{i + 1}", group])
    data = recordings({name: np.zeros((4, 2), np.float32) for name, *_ in rows}, fps=FPS)
    run = runs.start(folder, data, Config(model="slds", states=len(ACTIONS)), command=["benchmarks.compare_study"])
    write_bouts(run.path, found)
    (run.path / "names.json").write_text(json.dumps({str(k): name for k, name in enumerate(ACTIONS)}))
    with open(run.path / "groups.csv", "w", newline="") as stream:
        csv.writer(stream).writerows([["recording", "animal", "group"], *rows])
    return run


# --- how often it is right ----------------------------------------------------------------------------------------


def one_p(a: np.ndarray, b: np.ndarray) -> float:
    group = np.repeat([0, 1], [len(a), len(b)])
    return float(statistics.permutation_p(np.r_[a, b][:, None], group)[0])


def false_positives(sizes, sds, studies, seed=0, tests=1) -> float:
    """Share of studies without a difference of means in which p is at most 0.05."""
    rng, hits = np.random.default_rng(seed), 0
    group = np.repeat(np.arange(len(sizes)), sizes)
    for _ in range(studies):
        values = np.concatenate([sd * rng.normal(size=(n, tests)) for n, sd in zip(sizes, sds, strict=True)])
        hits += int((statistics.permutation_p(values, group) <= 0.05).sum())
    return hits / (studies * tests)


def mean_only(sizes, sds, studies, seed=0) -> float:
    """The same for a permutation test of the bare difference of means."""
    rng, hits = np.random.default_rng(seed), 0
    labels = statistics._labels(tuple(sizes))
    for _ in range(studies):
        values = np.concatenate([sd * rng.normal(size=n) for n, sd in zip(sizes, sds, strict=True)])
        gaps = np.abs((labels == 1) @ values / sizes[1] - (labels == 0) @ values / sizes[0])
        hits += int(np.mean(gaps >= gaps[0] * (1 - 1e-9)) <= 0.05)
    return hits / studies


def coverage(sizes, sds, studies, seed=0) -> dict[str, float]:
    """How often 95 % intervals hold the true difference 1: Welch's, and the percentile bootstrap's of 2,000 draws."""
    rng, welch, bootstrap = np.random.default_rng(seed), 0, 0
    for _ in range(studies):
        a, b = (m + sd * rng.normal(size=n) for m, n, sd in zip((0.0, 1.0), sizes, sds, strict=True))
        found = statistics.difference(a, b)
        drawn = [rng.choice(x, (2000, len(x))).mean(1) for x in (a, b)]
        low, high = np.quantile(drawn[1] - drawn[0], [0.025, 0.975])
        welch, bootstrap = welch + (found.low <= 1 <= found.high), bootstrap + (low <= 1 <= high)
    return {"welch": welch / studies, "bootstrap": bootstrap / studies}


def discoveries(animals, studies, seed=0) -> dict[str, float]:
    """False discovery rate and power over simulated studies: usage of 20 states that share one whole, 5 differ."""
    rng, rates, power = np.random.default_rng(seed), [], []
    typical = np.full(20, 0.05)
    other = typical * np.r_[np.full(3, 1.5), np.full(2, 0.25), np.ones(15)]  # the whole is unchanged
    true = np.arange(20) < 5
    group = np.repeat([0, 1], animals)
    for _ in range(studies):
        values = np.concatenate([rng.dirichlet(60 * mean, animals) for mean in (typical, other / other.sum())])
        called = statistics.false_discovery(statistics.permutation_p(values, group)) <= 0.05
        rates.append((called & ~true).sum() / max(called.sum(), 1))
        power.append(called[true].mean())
    return {"false_discovery_rate": float(np.mean(rates)), "power": float(np.mean(power))}


def discoveries_of_three(animals, studies, seed=0) -> dict[str, float]:
    """Three groups, 20 states: the third group differs in 5. False pairs among those called, over the chosen states."""
    rng, rates, power = np.random.default_rng(seed), [], []
    group, shift = np.repeat([0, 1, 2], animals), 2.0 * (np.arange(20) < 5)
    pairs = list(itertools.combinations(range(3), 2))
    true = np.array([shift * (2 in pair) for pair in pairs]) > 0
    for _ in range(studies):
        values = rng.normal(size=(3 * animals, 20)) + shift * (group == 2)[:, None]
        p = np.array([_pair_p(values, group, *pair) for pair in pairs])
        found = controlled(p, statistics.permutation_p(values, group))
        chosen = found.q_all <= 0.05
        false = (found.differs & ~true).sum(0) / np.maximum(found.differs.sum(0), 1)
        rates.append(false[chosen].mean() if chosen.any() else 0.0)
        power.append(found.differs[true].mean())
    return {"false_discovery_rate": float(np.mean(rates)), "power": float(np.mean(power))}


def _pair_p(values, group, a, b):
    mine = (group == a) | (group == b)
    return statistics.permutation_p(values[mine], (group[mine] == b).astype(int))


def whole_studies(studies, animals, seed=0) -> dict[str, float]:
    """Simulated animals without a difference, through bouts: share of tests with p at most 0.05, of each family."""
    hits, made = {}, {}
    for number in range(studies):
        rng = np.random.default_rng([seed, number])
        chains = [bouts(rng, animal(rng), f"r{i}", 120.0) for i in range(2 * animals)]
        for measure in measures([b for c in chains for b in c], {f"r{i}": i for i in range(2 * animals)}, 2 * animals):
            p = statistics.permutation_p(measure.values, np.repeat([0, 1], animals))
            hits[measure.name] = hits.get(measure.name, 0) + int((p <= 0.05).sum())
            made[measure.name] = made.get(measure.name, 0) + len(p)
    return {name: hits[name] / made[name] for name in hits}


def report():
    print("false positives at 5 %, normal animals (groups, standard deviations: Welch's t, bare difference)")
    for sizes, sds in [((4, 4), (1, 1)), ((6, 6), (1, 1)), ((8, 8), (1, 3)), ((4, 12), (1, 3)), ((4, 12), (3, 1))]:
        print(f"  {sizes} {sds}: {false_positives(sizes, sds, 2000):.3f}, {mean_only(sizes, sds, 2000):.3f}")
    print(f"  (4, 4, 4) (1, 1, 1): {false_positives((4, 4, 4), (1, 1, 1), 500):.3f}")
    print("coverage of 95 % intervals")
    for sizes, sds in [((3, 3), (1, 1)), ((5, 5), (1, 1)), ((8, 8), (1, 3)), ((4, 12), (3, 1))]:
        print(f"  {sizes} {sds}: {coverage(sizes, sds, 2000)}")
    for animals in (6, 8, 12):
        print(f"discoveries, {animals} animals in each group: {discoveries(animals, 200)}")
    print(f"discoveries among three groups of 6: {discoveries_of_three(6, 100)}")
    print(f"animals through bouts, no difference, 6 in each group: {whole_studies(60, 6)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.out:
        print(compare(study(arguments.out, seed=arguments.seed).path, "group").methods)
    else:
        report()
