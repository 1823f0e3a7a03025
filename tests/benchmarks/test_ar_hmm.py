"""The plain AR-HMM of the benchmark against a sum over all paths of states, and on rotations that it must find."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from benchmarks.segmentation import peers, scores
from benchmarks.segmentation.ar_hmm import AutoregressiveHMM
from svae.data.synthetic import switching_rotations

pytest.importorskip("hmmlearn")


def test_likelihood_is_the_sum_over_all_paths():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    model = AutoregressiveHMM(2, 0, 3).fit(X)
    few = X[:5]
    means = [few[:, 2:] @ W[:, :2].T + W[:, 2] for W in model.W_]
    logs = np.stack(
        [
            [multivariate_normal.logpdf(y, m, Q) for y, m in zip(few[:, :2], mean, strict=True)]
            for mean, Q in zip(means, model.Q_, strict=True)
        ]
    )
    paths = [
        np.log(model.startprob_[path[0]])
        + sum(np.log(model.transmat_[a, b]) for a, b in itertools.pairwise(path))
        + sum(logs[k, t] for t, k in enumerate(path))
        for path in itertools.product(range(2), repeat=5)
    ]
    assert model.score(few) == pytest.approx(logsumexp(paths), rel=1e-9)


def test_states_that_differ_in_their_dynamics_alone_are_found():
    drawn = switching_rotations(states=2, bouts=20, seed=0)
    truth = np.array_split(drawn.labels, 3)
    found = peers.segmented("ar_hmm", np.array_split(drawn.y, 3), 2, 0)
    assert scores.scores("frames", truth, found)["ari"] > 0.9
