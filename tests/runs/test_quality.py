"""What a run says of its own worth: parts of the bound, states over training, restarts, baselines."""

import json

import numpy as np
import pytest

from svae import runs
from svae.data.scores import adjusted_rand_index
from svae.runs._restarts import agreement
from svae.runs._train import run_lengths
from tests.runs.conftest import begin, walks

PARTS = ("log_likelihood", "local_kl", "global_kl", "weights_kl")


def fitted(run):
    return [line for line in run.metrics() if line["phase"] == "fit"]


def test_the_parts_of_the_bound_add_up(several):
    for line in fitted(several):
        likelihood, *divergences = (line[name] for name in PARTS)
        assert likelihood - sum(divergences) == pytest.approx(line["bound"], abs=1e-3)


def test_each_measurement_tells_the_states_of_one_stretch(several):
    told = [line for line in fitted(several) if line["held_out"] is not None]
    assert len(told) == 10 and all(len(line["restarts"]) == 3 for line in told)
    assert all(line["held_out"] == pytest.approx(max(line["restarts"])) for line in told)
    frames = {sum(n for _, n in line["labels"]) for line in told}
    assert len(frames) == 1 and frames < {len(y) for y in walks().sequences}
    assert not any("labels" in line for line in fitted(several) if line["held_out"] is None)


def test_run_lengths_hold_the_labels():
    labels = np.random.default_rng(0).integers(0, 3, 200)
    again = np.concatenate([np.full(n, k) for k, n in run_lengths(labels)])
    assert np.array_equal(again, labels) and all(n > 0 for _, n in run_lengths(labels))


def test_restarts_are_compared_with_each_other(several):
    found = several.restarts()
    table = np.array(found["ari"])
    assert table.shape == (3, 3) and np.array_equal(table, table.T) and np.array_equal(np.diag(table), np.ones(3))
    assert found["mean_ari"] == pytest.approx(table[np.triu_indices(3, 1)].mean())
    last = [line for line in several.metrics() if line["held_out"] is not None][-1]
    assert found["held_out"] == last["restarts"] and found["step"] == last["step"]
    best = int(np.argmax(last["restarts"]))
    path = np.concatenate([several.states(name) for name in several.recordings()])
    assert found["states_in_use"][best] == np.sum(np.bincount(path) > 0.01 * len(path))


def test_agreement_leaves_out_a_restart_that_went_astray():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, 100), rng.integers(0, 3, 100)
    found = agreement([a, None, b, a])
    assert found["ari"][0][3] == 1 and found["ari"][0][1] is None and found["states_in_use"][1] is None
    assert found["mean_ari"] == pytest.approx((1 + 2 * adjusted_rand_index(a, b)) / 3)


def test_a_run_without_these_files_says_so(tmp_path):
    old = begin(tmp_path / "old")
    assert old.restarts() is None and old.baselines() is None and old.held_out() is None


def test_files_that_say_something_else_are_refused(tmp_path):
    old = begin(tmp_path / "old")
    (old.path / "restarts.json").write_text('{"ari": [[1, 2]], "mean_ari": 3}')
    (old.path / "baselines.json").write_text('{"baselines": {"PCA": "good"}}')
    for read in (old.restarts, old.baselines):
        with pytest.raises(runs.RunError, match="is damaged"):
            read()


def test_baselines_are_written_beside_the_model(several):
    found = runs.write_baselines(several, walks())
    assert found == several.baselines() == json.loads((several.path / "baselines.json").read_text())
    assert found["held_out"] == several.held_out() and np.isfinite(list(found["baselines"].values())).all()
    assert len(found["baselines"]) == 4


def test_a_failure_of_the_baselines_is_a_note(several):
    other = walks()._replace(sequences=tuple(y[:, :2] for y in walks().sequences))
    found = runs.write_baselines(several, other)
    assert found["baselines"] == {} and found["note"].startswith("they could not be computed: The model is for frames")


@pytest.mark.slow
def test_simpler_networks_join_them(several):
    found = runs.write_baselines(several, walks(), networks=True)
    assert {"LDS SVAE", "VAE"} <= set(found["baselines"])
    assert {"LDS SVAE", "VAE"} <= set(runs.write_baselines(several, walks())["baselines"])
