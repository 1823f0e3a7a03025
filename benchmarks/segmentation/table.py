"""Tables of the rows that `python -m benchmarks.segmentation` wrote.

python -m benchmarks.segmentation.table rows.jsonl ...
"""

import itertools
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks.segmentation.__main__ import METHODS, rows

MEASURE = {"open_field": "balanced", "vowels": "series_ari", "basic_motions": "series_ari", "locomotion": "series_ari"}
MEASURE["bees"] = "covering"
TOLD = {"true": "the true number of states", "twice": "twice the true number", "unset": "no number given"}
PARTED = ("birdsong", "red_sds", "keypoints")  # each part has a line of its own; the others are means over their parts


def line_of(part: str) -> str:
    """The line that a part counts in."""
    known = part.partition("/")[0]
    return part if known in PARTED else known


def measure_of(part: str) -> str:
    """The score that compares methods on this part."""
    return MEASURE.get(part.partition("/")[0], "ari")


def means(found: list[dict], measure=None) -> dict[tuple[str, str], np.ndarray]:
    """By line and method, the score of each seed, in the mean over the parts of the line."""
    values = defaultdict(lambda: defaultdict(list))
    for row in found:
        value = row.get(measure or measure_of(row["part"]))
        if value is not None:
            values[line_of(row["part"]), row["method"]][row["seed"]].append(value)
    return {key: np.array([np.mean(by[seed]) for seed in sorted(by)]) for key, by in values.items()}


def agreement(paths: list[Path], found: list[dict]) -> dict[tuple[str, str], np.ndarray]:
    """Mean ARI between the states of two seeds, by line and method."""
    folders, kept = [path.with_suffix(".states") for path in paths], defaultdict(list)
    for row in found:
        name = f"{row['part']}-{row['method']}-{row['states']}-{row['seed']}".replace("/", "-") + ".npy"
        kept[row["part"], row["method"]] += [np.load(folder / name) for folder in folders if (folder / name).exists()]
    pairs = defaultdict(list)
    for (part, method), states in kept.items():
        pairs[line_of(part), method] += [adjusted_rand_score(a, b) for a, b in itertools.combinations(states, 2)]
    return {key: np.array(values) for key, values in pairs.items() if values}


def markdown(title: str, values: dict[tuple[str, str], np.ndarray], name=lambda line: line, ranked=True) -> str:
    """One table: lines are sets, columns are methods; the largest mean of a line stands out where it is ranked."""
    if not values:
        return ""
    methods = [method for method in METHODS if any(key[1] == method for key in values)]
    lines = [f"**{title}**", "", "| | " + " | ".join(methods) + " |", "|---" * (1 + len(methods)) + "|"]
    for line in dict.fromkeys(key[0] for key in values):
        found = [values.get((line, method), np.array([])) for method in methods]
        best = max((value.mean() for value in found if value.size), default=np.nan) if ranked else np.nan
        lines.append(f"| {name(line)} | " + " | ".join(_cell(value, best) for value in found) + " |")
    return "\n".join(lines) + "\n"


def _cell(values, best):
    if not values.size:
        return "–"
    text = f"{values.mean():.3f}" + (f" ± {values.std(ddof=1) / len(values) ** 0.5:.3f}" if len(values) > 1 else "")
    return f"**{text}**" if values.mean() == best else text


def below(values: dict[tuple[str, str], np.ndarray], least: float = 0.03) -> str:
    """On how many sets ours is above the best plain model, and on which it is clearly below."""
    lines = [line for line, method in values if method == "ours"]
    gaps = {}
    for line in lines:
        plain = [v.mean() for (name, method), v in values.items() if name == line and method != "ours"]
        if plain:
            gaps[line] = values[line, "ours"].mean() - max(plain)
    under = [f"{line} ({gap:.3f})" for line, gap in gaps.items() if gap < -least]
    above = sum(gap > 0 for gap in gaps.values())
    where = ", ".join(under) or "none"
    return f"Ours is above the best plain model on {above} of {len(gaps)}; more than {least} below on: {where}."


def main():
    paths = [Path(path) for path in sys.argv[1:]]
    everything = [row for path in paths for row in rows(path)]
    failed = [row for row in everything if "error" in row]
    for number in dict.fromkeys(row["states"] for row in everything):
        found = [row for row in everything if row["states"] == number and "error" not in row]
        values = means(found)
        told = TOLD[number]
        print(markdown(f"Score, {told}", values, lambda line: f"{line} ({measure_of(line)})"))
        if any(method == "ours" for _, method in values):
            print(below(values), "\n")
        print(markdown(f"Seeds agree (ARI), {told}", agreement(paths, found)))
        for measure, ranked in (
            ("accuracy", True),
            ("nmi", True),
            ("ami", True),
            ("covering", True),
            ("in_use", False),
        ):
            print(markdown(f"{measure}, {told}", means(found, measure), ranked=ranked))
        print(markdown(f"Share of the largest state, {told}", means(found, "largest"), ranked=False))
        ratios = [row | {"ratio": row["median_bout"] / row["true_median_bout"]} for row in found]
        print(markdown(f"Median bout over the true one, {told}", means(ratios, "ratio"), ranked=False))
        print(markdown(f"Processor seconds of a fit, {told}", means(found, "processor_seconds"), ranked=False))
    for row in failed:
        print(f"Failed: {row['part']} {row['method']} {row['states']} {row['seed']}: {row['error'][-200:]}")


if __name__ == "__main__":
    main()
