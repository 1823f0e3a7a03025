"""What a few labels are worth: macro F1 on the frames that nobody labelled, on four recordings with known actions.

python -m benchmarks.labels --data ../shared/data --out labels.jsonl --draws 3 --seeds 3

5 % of the frames are labelled: a bout of each name, or a part of it where bouts are long, then other whole bouts.
`labels` is `svae fit DATA --labels FILE` with as many states as there are names; `free` is the same command without the
labels, each state called after the truth by what most of its frames are, which nobody could do; `forest` is a random
forest on windowed features of the same frames, given the same labels. Scores are of all other frames, over all names;
the labels of these frames are looked at by nothing but the score. A row is written when a fit ends, and not made again.
"""

import argparse
import csv
import itertools
import json
import shlex
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.segmentation import ours, sets

SETS = ("birdsong/gy6or6", "mocap6", "exercises", "open_field")
METHODS = ("forest", "labels", "free")
SHARE = 0.05  # of the frames
WINDOWS = (5, 15, 45)  # frames, of the features of the forest
TREES = 300
MOST_COLUMNS = 20  # principal components of wider frames
KEY = ("set", "method", "draw", "seed", "options")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("labels.jsonl"))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ours", default="", help='options added to ours, such as "--max-time 10min"')
    return parser.parse_args()


def main():
    options = arguments()
    lines = options.out.read_text(encoding="utf-8").splitlines() if options.out.exists() else []
    there = {tuple(json.loads(line)[name] for name in KEY) for line in lines}
    for seed in range(options.seeds):
        for draw in range(options.draws):
            for name in options.sets:
                for method in options.methods:
                    key = name, method, draw, seed, "" if method == "forest" else options.ours
                    if key not in there:
                        row = json.dumps(dict(zip(KEY, key, strict=True)) | one(*key, options.data))
                        print(row, flush=True)
                        with options.out.open("a", encoding="utf-8") as file:
                            file.write(row + "\n")


def one(name, method, draw, seed, more, data):
    """The scores of one method on one draw of labels."""
    with tempfile.TemporaryDirectory() as scratch:
        part = sets.read(name, data, Path(scratch))
        truth = [np.unique(np.concatenate(part.labels), return_inverse=True)[1]]
        truth = np.split(truth[0], np.cumsum([len(y) for y in part.labels])[:-1])
        known = drawn(truth, np.random.default_rng(draw))
        began = time.time()
        found = METHOD[method](part, truth, known, seed, shlex.split(more), Path(scratch))
        seconds = time.time() - began
    every, seen, z = np.concatenate(found), np.concatenate(known) >= 0, np.concatenate(truth)
    if method == "free":
        every = renamed(every, z)
    names = np.unique(np.concatenate(known)[seen])
    return {
        "macro_f1": round(macro_f1(z[~seen], every[~seen], int(z.max()) + 1), 4),
        "accuracy": round(float(np.mean(z[~seen] == every[~seen])), 4),
        "labelled": round(float(np.mean(seen)), 4),
        "names": int(z.max()) + 1,
        "names_labelled": len(names),
        "seconds": round(seconds, 1),
    }


def drawn(truth: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """Labels of SHARE of the frames, -1 elsewhere: of one bout of each name, then of other whole bouts.

    A first bout that is longer than the share of its name is labelled in part: with bouts of a minute 5 % of ten
    minutes would be less than one.
    """
    bouts = []
    for i, z in enumerate(truth):
        edges = np.flatnonzero(np.r_[True, z[1:] != z[:-1], True])
        bouts += [(i, int(a), int(b), int(z[a])) for a, b in itertools.pairwise(edges)]
    bouts = [bouts[n] for n in rng.permutation(len(bouts))]
    first = {k: (i, a, b, k) for i, a, b, k in reversed(bouts)}
    order = [*first.values(), *(bout for bout in bouts if bout not in first.values())]
    budget, known = SHARE * sum(map(len, truth)), [np.full(len(z), -1) for z in truth]
    most = int(budget / len(first))
    for number, (i, a, b, k) in enumerate(order):
        if number < len(first) and b - a > most:
            a += int(rng.integers(b - a - most + 1))
            b = a + most
        if b - a <= budget:
            known[i][a:b], budget = k, budget - (b - a)
    return known


def macro_f1(truth: np.ndarray, found: np.ndarray, K: int) -> float:
    """The mean over all names of 2 hits / (frames + answers)."""
    hits = [np.sum((truth == k) & (found == k)) for k in range(K)]
    return float(np.mean([2 * n / max(np.sum(truth == k) + np.sum(found == k), 1) for k, n in enumerate(hits)]))


def renamed(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Every state called after what most of its frames are."""
    called = {k: np.bincount(truth[found == k]).argmax() for k in np.unique(found)}
    return np.array([called[k] for k in found])


# --- methods ------------------------------------------------------------------------------------------------------


def labels(part, truth, known, seed, more, scratch):
    file = scratch / "labels.csv"
    names = [part.source.stem] if part.source else [f"recording_{i:04d}" for i in range(len(known))]
    with file.open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream)
        rows.writerow(["recording", "frame", "label"])
        rows.writerows(
            (name, t, k) for name, one in zip(names, known, strict=True) for t, k in enumerate(one) if k >= 0
        )
    return ours.segmented(part, _number(truth), seed, [*more, "--labels", str(file)], scratch)[0]


def free(part, truth, known, seed, more, scratch):
    return ours.segmented(part, _number(truth), seed, more, scratch)[0]


def _number(truth):
    return 1 + max(int(z.max()) for z in truth)


def forest(part, truth, known, seed, more, scratch):
    from sklearn.ensemble import RandomForestClassifier

    X, seen = np.concatenate(features(part.sequences)), np.concatenate(known) >= 0
    trees = RandomForestClassifier(TREES, class_weight="balanced", random_state=seed)
    found = trees.fit(X[seen], np.concatenate(known)[seen]).predict(X)
    return np.split(found, np.cumsum([len(z) for z in truth])[:-1])


def features(sequences: list[np.ndarray]) -> list[np.ndarray]:
    """Of every frame: itself, its velocity, and means and standard deviations of both over windows around it."""
    if sequences[0].ndim == 3 and sequences[0].shape[2] in (2, 3):  # points of a body
        sequences = [sets.upright(np.c_[y, np.ones((*y.shape[:2], 1))] if y.shape[2] == 2 else y) for y in sequences]
    flat = [y.reshape(len(y), -1).astype(float) for y in sequences]
    every = np.concatenate(flat)
    centred = (every - every.mean(0)) / (every.std(0) + 1e-9)
    if centred.shape[1] > MOST_COLUMNS:
        centred = centred @ np.linalg.svd(centred, full_matrices=False)[2][:MOST_COLUMNS].T
    return [_windowed(x) for x in np.split(centred, np.cumsum([len(y) for y in flat])[:-1])]


def _windowed(x):
    moving = np.c_[x, np.gradient(x, axis=0)]
    found = [moving]
    for width in WINDOWS:
        mean = _mean(moving, width)
        found += [mean, np.sqrt(np.maximum(_mean(moving**2, width) - mean**2, 0))]
    return np.concatenate(found, 1)


def _mean(x, width):
    ones = np.ones(width)
    count = np.convolve(np.ones(len(x)), ones, "same")[: len(x)]
    return np.stack([np.convolve(column, ones, "same")[: len(x)] for column in x.T], 1) / count[:, None]


METHOD = {"labels": labels, "free": free, "forest": forest}

if __name__ == "__main__":
    main()
