"""keypoint-moseq on the exam of keypoints, at the settings of its tutorial: a row after every --every iterations.

python -m benchmarks.keypoint_moseq --out keypoint_moseq.jsonl --seeds 2

It runs in an environment of its own (`pip install keypoint-moseq`; its licence allows research). The steps are those of
the tutorial: outliers by their distance from the medoid, as many latent dimensions as explain 90 % of the variance, 50
iterations of the AR-HMM, then 500 of the full model with kappa 10,000; the rest is its default, 100 states among it.
Nothing is calibrated by hand. The number of true states is not given: it takes none.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import keypoint_exam
from benchmarks.segmentation import scores
from benchmarks.segmentation.sets import EXAMS

FULL_KAPPA = 1e4  # of the full model; the AR-HMM has the default
EXPLAINED = 0.9
SKELETON = [("nose", "neck"), ("ear_left", "neck"), ("ear_right", "neck"), ("paw_left", "neck"), ("paw_right", "neck")]
SKELETON += [("neck", "spine"), ("spine", "hip_left"), ("spine", "hip_right"), ("spine", "tail")]


def prepared(folder, project):
    """Data, names of recordings, principal components and configuration."""
    import keypoint_moseq as kpms

    points = list(keypoint_exam.POINTS)
    kpms.setup_project(str(project), video_dir=str(folder), bodyparts=points, skeleton=[list(s) for s in SKELETON])
    ends = {"anterior_bodyparts": ["nose"], "posterior_bodyparts": ["tail"], "use_bodyparts": points}
    kpms.update_config(str(project), fps=keypoint_exam.FPS, **ends)
    coordinates, confidences, _ = kpms.load_keypoints(str(folder), "deeplabcut")
    config = kpms.load_config(str(project))
    coordinates, confidences = kpms.outlier_removal(coordinates, confidences, str(project), **config)
    data, metadata = kpms.format_data(coordinates, confidences, **config)
    pca = kpms.fit_pca(**data, **config)
    dimensions = int(np.searchsorted(np.cumsum(pca.explained_variance_ratio_), EXPLAINED)) + 1
    kpms.update_config(str(project), latent_dim=min(dimensions, 10))
    return data, metadata, pca, kpms.load_config(str(project))


def fitted(data, metadata, pca, config, project, seed, options):
    """Iterations of the full model so far, 0 after the AR-HMM, and the states of every recording."""
    import jax
    import keypoint_moseq as kpms

    model = kpms.init_model(data, pca=pca, seed=jax.random.PRNGKey(seed), **config)
    quiet = {"generate_progress_plots": False, "save_every_n_iters": None}
    model, name = kpms.fit_model(
        model, data, metadata, str(project), ar_only=True, num_iters=options.ar_iterations, **quiet
    )
    yield 0, _states(model, metadata)
    model = kpms.update_hypparams(model, kappa=FULL_KAPPA)
    for done in range(0, options.iterations, options.every):
        span = {"start_iter": options.ar_iterations + done, "num_iters": options.ar_iterations + done + options.every}
        model = kpms.fit_model(model, data, metadata, str(project), name, ar_only=False, **span, **quiet)[0]
        yield done + options.every, _states(model, metadata)


def _states(model, metadata):
    import keypoint_moseq as kpms

    found = kpms.extract_results(model, metadata, save_results=False)
    return [np.asarray(found[key]["syllable"]) for key in sorted(found)]


def examined(part, seed, options):
    """Rows of one fit."""
    recordings, labels = keypoint_exam.make(options.draw, *EXAMS[part])
    with tempfile.TemporaryDirectory() as scratch:
        keypoint_exam.write(Path(scratch), recordings, labels)
        project = Path(scratch) / "project"
        material, began = prepared(Path(scratch) / "recordings", project), time.time()
        for iterations, found in fitted(*material, project, seed, options):
            row = {"part": f"keypoints/{part}", "method": "keypoint_moseq", "states": "unset", "seed": seed}
            row |= {"options": f"{options.ar_iterations}+{iterations}", "draw": options.draw}
            row |= scores.scores("frames", labels, found) | scores.shape(found)
            row |= {f"true_{name}": value for name, value in scores.shape(labels).items()}
            row |= {"latent_dim": material[-1]["ar_hypparams"]["latent_dim"], "seconds": round(time.time() - began, 1)}
            print(json.dumps(row), flush=True)
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            folder = options.out.with_suffix(".states")
            folder.mkdir(exist_ok=True)
            np.save(
                folder / f"keypoints-{part}-keypoint_moseq-unset-{seed}.npy", np.concatenate(found).astype(np.int16)
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("keypoint_moseq.jsonl"))
    parser.add_argument("--parts", nargs="+", choices=EXAMS, default=list(EXAMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--draw", type=int, default=0, help="seed of the exam")
    parser.add_argument("--ar-iterations", type=int, default=50)
    parser.add_argument("--iterations", type=int, default=500)
    parser.add_argument("--every", type=int, default=100)
    options = parser.parse_args()
    for seed in options.seeds:
        for part in options.parts:
            examined(part, seed, options)


if __name__ == "__main__":
    main()
