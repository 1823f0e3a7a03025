"""What earlier versions wrote and computed, kept as data: their numbers are ours, and their folders open."""

import contextlib
import shutil

import numpy as np
import pytest
import safetensors.numpy

from svae import data, runs, store
from tests.old import problem

FOLDER = problem.FOLDER
every = pytest.mark.parametrize("name", problem.NAMES)


def close(found, expected, tolerance):
    """To a tolerance relative to the largest entry of each array."""
    size = max(np.max(np.abs(expected), initial=0.0), 1.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * size)


@every
def test_posterior_bound_and_gradients_are_what_they_were(name, x64):
    """In float64, mean field to 1e-13: the unknown of the fixed point carries that error times its gain."""
    kept, found = (
        store.named_now(safetensors.numpy.load_file(FOLDER / "numbers" / f"{name}.safetensors"), 1),
        problem.numbers(name),
    )
    assert found.keys() == kept.keys()
    for key, expected in kept.items():
        close(found[key], expected, 1e-12)


@every
def test_a_run_folder_opens_and_its_model_answers_alike(name, tmp_path):
    run = runs.Run(FOLDER / "runs" / name)
    runs.apply(run.model(), data.recordings(problem.recordings()), tmp_path / "again")
    for recording in run.recordings():
        before = run.posterior(recording)
        now = runs._posterior.read_posterior(tmp_path / "again" / "posterior" / f"{recording}.nc")
        np.testing.assert_array_equal(now.state, before.state)
        np.testing.assert_allclose(now.mean, before.mean, atol=1e-5)
        np.testing.assert_allclose(now.probability, before.probability, atol=1e-5)


def test_a_fit_goes_on_from_an_old_checkpoint(tmp_path):
    """Its arrays have other names now; the finished fit is resumed, and writes the same answers."""
    shutil.copytree(FOLDER / "runs" / "slds", tmp_path / "run")
    (tmp_path / "run" / "bouts.csv").unlink()
    with pytest.warns(UserWarning, match="from a run never stopped") if _elsewhere() else contextlib.nullcontext():
        run = runs.train(runs.Run(tmp_path / "run"), problem.recordings(), resume=True)
    for recording in run.recordings():
        before = runs.Run(FOLDER / "runs" / "slds").posterior(recording)
        np.testing.assert_array_equal(run.posterior(recording).state, before.state)
    before = runs.Run(FOLDER / "runs" / "slds").bouts()
    assert [(b.recording, b.state, b.start, b.stop) for b in run.bouts()] == [
        (b.recording, b.state, b.start, b.stop) for b in before
    ]


def _elsewhere() -> bool:
    """Whether versions or the machine are not those of the folder."""
    kept = runs.Run(FOLDER / "runs" / "slds").provenance()
    return kept["versions"] != runs._provenance.versions() or kept["machine"] != runs._provenance.machine()
