"""Segments of labelled recordings against their labels, ours and the peers on the same frames, one process a fit.

python benchmarks/segmentation.py --data ../shared/data --seeds 5 --jobs 2 --out segmentation.json
Every method is given the true number of states. Ours is `svae fit DATA --states K` and nothing else: the target
duration comes from one rule (svae.data.bout_frames). Peers: k-means and GaussianHMM (best of 3) on 10 principal
components (all columns where there are fewer than 20), dynamax's AR(1)-HMM from k-means (stickiness 20, 60 steps of EM,
best of 3).
Open field: balanced accuracy of rearing, each state mapped to the class that it meets most often for its prevalence.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

SETS = ("mocap6", "exercise", "birdsong", "open_field")
PEERS = ("kmeans", "gaussian_hmm", "ar_hmm")
OPEN_FIELD_STATES = 12


def mocap6(data):
    z = np.load(data / "mocap6" / "dataset.npz")
    edges = z["doc_range"][1:-1]
    return np.split(z["X"], edges), np.split(z["TrueZ"], edges), 10.0


def exercise(data):
    z = np.load(data / "mocap_cmu_multi" / "mocap_exercise_30hz.npz")
    clips = ("13_29", "13_30", "14_14")
    return [z[f"X_{c}"] for c in clips], [z[f"z_{c}"] for c in clips], 30.0


def birdsong(data):
    z = np.load(data / "birdsong" / "gy6or6_day1_logmel48.npz")
    edges = np.cumsum(z["length"])[:-1]
    return np.split(z["logmel"].astype(np.float32), edges), np.split(z["label"], edges), 250.0


def open_field(data):
    """Body points, and whether the majority of three raters saw a rear."""
    import svae

    folder = data / "mouse_oft_labelled"
    recordings = svae.load(folder / "8_01_A_dlc.csv", fps=25.0)
    seconds = np.arange(len(recordings.sequences[0])) / 25.0
    votes = np.zeros(len(seconds))
    for row in _rows(folder / "8_01_A_labels.csv"):
        if row["type"] in ("Supported", "Unsupported"):  # kinds of rearing
            votes += (seconds >= float(row["from"])) & (seconds < float(row["to"]))
    return list(recordings.sequences), [(votes >= 2).astype(int)], 25.0


def _rows(path):
    import csv

    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def ours(sequences, fps, states, seed, settings, limit):
    """What `svae fit DATA --states K --max-time` does; also the labels of its warm start."""
    import svae
    from svae._fit import final_model
    from svae.cli._options import suited
    from svae.data import find_preprocess, recordings

    data = recordings(sequences, fps=fps)
    options = {"states": states, "seed": seed} | settings
    config = svae.Config.make(suited(options, data) | options)
    preprocess = find_preprocess(data, config)
    model = svae.make(preprocess.shape(data.sequences[0].shape[1:]), config, preprocess=preprocess)
    labels = lambda model: np.concatenate(svae.segment(model, data).labels)  # noqa: E731
    end, warm = time.process_time() + limit, model
    for step in svae.fit(model, data):
        warm = step.model if step.phase == "warm-up" else warm
        if time.process_time() > end and step.state is not None:
            break
    facts = {"steps": int(step.step), "best": int(step.state.best_done), "held_out": float(step.state.best_bound)}
    return labels(final_model(step.state)), facts | {"target": config.target_duration, "warm": labels(warm)}


def components(sequences):
    """10 principal components of the standardised columns; all columns where there are fewer than 20."""
    flat = [np.nan_to_num(np.asarray(y, float).reshape(len(y), -1)) for y in sequences]
    rows = np.concatenate(flat)
    sd = rows.std(0)
    flat = [(y - rows.mean(0)) / np.where(sd > 1e-6 * sd.max(), sd, np.inf) for y in flat]
    if rows.shape[1] < 20:
        return flat
    Vt = np.linalg.svd(np.concatenate(flat), full_matrices=False)[2]
    return [y @ Vt[:10].T for y in flat]


def kmeans(x, states, seed):
    from sklearn.cluster import KMeans

    return KMeans(states, n_init=10, random_state=seed).fit_predict(np.concatenate(x))


def gaussian_hmm(x, states, seed):
    from hmmlearn.hmm import GaussianHMM

    rows, lengths = np.concatenate(x), [len(y) for y in x]
    fits = [GaussianHMM(states, "full", n_iter=60, random_state=3 * seed + r).fit(rows, lengths) for r in range(3)]
    return max(fits, key=lambda model: model.score(rows, lengths)).predict(rows, lengths)


def ar_hmm(x, states, seed):
    """dynamax's sticky AR(1)-HMM from k-means; sequences of unequal lengths as one, their seams left to the model."""
    fits = [_ar_fit(np.concatenate(x), states, 3 * seed + r) for r in range(3)]
    return max(fits, key=lambda fit: fit[0])[1]


def _ar_fit(rows, states, seed):
    import jax.numpy as jnp
    import jax.random as jr
    from dynamax.hidden_markov_model import LinearAutoregressiveHMM

    hmm = LinearAutoregressiveHMM(states, rows.shape[1], num_lags=1, transition_matrix_stickiness=20.0)
    rows = jnp.asarray(rows, jnp.float32)
    inputs = hmm.compute_inputs(rows)
    params, props = hmm.initialize(key=jr.PRNGKey(seed), method="kmeans", emissions=rows)
    params, log_probs = hmm.fit_em(params, props, rows, inputs=inputs, num_iters=60, verbose=False)
    return float(log_probs[-1]), np.asarray(hmm.most_likely_states(params, rows, inputs))


def agreement(truth, found):
    """Accuracy (Hungarian), NMI and ARI."""
    from scipy.optimize import linear_sum_assignment
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
    from sklearn.metrics.cluster import contingency_matrix

    table = contingency_matrix(truth, found)
    accuracy = table[linear_sum_assignment(table, maximize=True)].sum() / len(truth)
    values = accuracy, normalized_mutual_info_score(truth, found), adjusted_rand_score(truth, found)
    return dict(zip(("accuracy", "nmi", "ari"), map(float, values), strict=True))


def balanced(truth, found):
    """Balanced accuracy of a yes-or-no label when every state stands for the class it meets more often than chance."""
    from sklearn.metrics import balanced_accuracy_score

    often = np.array([np.mean(truth[found == k]) if np.any(found == k) else 0 for k in range(found.max() + 1)])
    return {
        "majority": float(balanced_accuracy_score(truth, (often > 0.5)[found])),
        "balanced": float(balanced_accuracy_score(truth, (often > truth.mean())[found])),
    }


def one(name, method, seed, data, settings, limit):
    """One fit and its scores."""
    sequences, labels, fps = globals()[name](data)
    truth = np.concatenate(labels)
    binary = name == "open_field"
    states = OPEN_FIELD_STATES if binary else len(np.unique(truth))
    measure, started = balanced if binary else agreement, time.time()
    row = {"set": name, "method": method, "seed": seed, "settings": settings}
    if method == "ours":
        found, facts = ours(sequences, fps, states, seed, settings, limit)
        row |= {"warm": measure(truth, facts.pop("warm"))} | facts
    else:
        found = globals()[method](components(sequences), states, seed)
    switches = int(np.sum(np.diff(found) != 0))
    row |= {"states": len(np.unique(found)), "mean_bout": len(found) / (switches + 1)}
    return row | measure(truth, found) | {"seconds": round(time.time() - started)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--methods", nargs="+", choices=("ours", *PEERS), default=("ours", *PEERS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--settings", type=json.loads, default={}, help="options of ours, as JSON, for experiments")
    parser.add_argument("--limit", type=float, default=float("inf"), help="processor seconds of one fit of ours")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("segmentation.json"))
    parser.add_argument("--one", nargs=3, metavar=("SET", "METHOD", "SEED"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, method, seed = options.one
        print(json.dumps(one(name, method, int(seed), options.data, options.settings, options.limit)))
        return
    rows = run_all(options)
    options.out.write_text(json.dumps(rows, indent=1))
    print(table(rows))


def run_all(options):
    """Every fit in a process of its own, on one core each, as many at a time as --jobs says."""
    from concurrent.futures import ThreadPoolExecutor

    wanted = [(n, m, str(s)) for s in range(options.seeds) for m in options.methods for n in options.sets]
    limits = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    same = ["--data", str(options.data), "--settings", json.dumps(options.settings), "--limit", str(options.limit)]

    def run(words):
        line = [sys.executable, __file__, *same, "--one", *words]
        done = subprocess.run(line, capture_output=True, text=True, env=os.environ | limits)
        last = done.stdout.strip().splitlines()[-1:] if done.returncode == 0 else []
        error = {"set": words[0], "method": words[1], "seed": int(words[2]), "error": done.stderr[-500:]}
        row = json.loads(last[0]) if last else error
        print(json.dumps(row), flush=True)
        return row

    with ThreadPoolExecutor(options.jobs) as pool:
        return list(pool.map(run, wanted))


def _mean(key, values):
    return f"{key} {values.mean():.3f} ± {values.std() / max(1, len(values) - 1) ** 0.5:.3f}"


def table(rows):
    """Mean and standard error over the seeds of each set and method."""
    lines = []
    for name, method in sorted({(r["set"], r["method"]) for r in rows}):
        good = [r for r in rows if (r["set"], r["method"]) == (name, method) and "error" not in r]
        keys = ("majority", "balanced") if name == "open_field" else ("accuracy", "nmi", "ari")
        words = "  ".join(_mean(key, np.array([r[key] for r in good])) for key in keys)
        lines.append(f"{name:11s} {method:13s} {len(good)} seeds  {words}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
