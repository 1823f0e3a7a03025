"""A run as a tree of data sets: what is in it, and that ArviZ and movement take it where they are installed."""

import numpy as np
import pytest

import svae
from svae import data, runs
from svae.adapters._layout import frames_of
from tests.old import problem

xarray = pytest.importorskip("xarray", reason="a DataTree needs  pip install '.[io]'")


def old(name):
    """A run of two recordings of 40 frames that is kept as data."""
    return runs.Run(problem.FOLDER / "runs" / name)


@pytest.fixture(scope="module")
def tree():
    return svae.to_datatree(old("slds"), data.recordings(problem.recordings()), draws=400)


def test_parameters_are_draws_from_q(tree):
    """Means of draws are those of q(theta), within 5 standard errors."""
    q, drawn = old("slds").model().q, tree["posterior"]
    transitions = np.asarray(q.z.transitions.counts)
    found = drawn["z_transitions"]
    assert found.dims == ("chain", "draw", "state_index", "next_state_index")
    np.testing.assert_allclose(found.sum("next_state_index"), 1, rtol=1e-5)
    error = 5 * found.std(("chain", "draw")) / np.sqrt(400) + 1e-6
    assert (abs(found.mean(("chain", "draw")) - transitions / transitions.sum(-1, keepdims=True)) < error).all()
    weights = drawn["x_dynamics_weights"]
    error = 5 * weights.std(("chain", "draw")) / np.sqrt(400)
    assert (abs(weights.mean(("chain", "draw")) - np.asarray(q.x.dynamics.mean().W)) < error).all()
    assert (np.linalg.eigvalsh(drawn["x_dynamics_covariance"]) > 0).all()


def test_frames_are_those_of_the_run(tree):
    run, summary = old("slds"), tree["posterior_summary"]
    for name in run.recordings():
        kept, mine = run.posterior(name), summary.sel(individuals=name)
        np.testing.assert_array_equal(mine["state"], kept.state)
        np.testing.assert_array_equal(mine["latent_mean"], kept.mean)
        np.testing.assert_array_equal(tree["observed_data/y"].sel(individuals=name), problem.recordings()[name])
    assert summary.attrs["time_unit"] == "frames" and list(summary["frames"]) == [40, 40]


@pytest.mark.parametrize("name", ["vae", "gmm", "lds"])
def test_every_model_has_a_tree_and_what_is_left_out_is_said(name):
    with pytest.warns(UserWarning, match="no observed_data: .* recordings in memory; give them again"):
        found = svae.to_datatree(old(name), draws=2)
    assert ("state" in found["posterior_summary"]) == bool(old(name).model().pgm.discrete)
    assert all(v.dims[:2] == ("chain", "draw") for v in found["posterior"].data_vars.values())
    with pytest.raises(runs.RunError, match="other data than"):
        svae.to_datatree(old(name), {"one": np.zeros((40, 3)), "two": np.zeros((40, 3))})


def poses():
    """Two animals of which one is seen for longer, with confidences."""
    return data.load(problem.FOLDER.parent / "data" / "deeplabcut" / "two.csv", fps=25)


def test_keypoints_are_named_as_movement_names_them():
    raw = poses()
    found = frames_of(raw._replace(sequences=(raw.sequences[0], raw.sequences[1][:-3])))
    dims, position = found.variables["position"]
    assert dims == ("time", "space", "keypoints", "individuals")
    assert found.variables["confidence"][0] == ("time", "keypoints", "individuals")
    np.testing.assert_array_equal(position[..., 0].swapaxes(1, 2), np.asarray(raw.sequences[0]))
    assert np.isnan(position[-3:, ..., 1]).all() and found.coordinates["keypoints"] == list(raw.sequences[0].points)
    assert found.attributes["time_unit"] == "seconds" and found.attributes["fps"] == 25


def test_recordings_without_a_common_clock_keep_their_own():
    raw = data.Recordings((np.zeros((3, 1)), np.zeros((2, 1))), ("a", "b"), times=([0.0, 1.0, 2.0], [5.0, 7.0]))
    found = frames_of(raw)
    np.testing.assert_array_equal(found.coordinates["time"], [0, 1, 2])
    np.testing.assert_array_equal(found.variables["clock"][1], [[0, 5], [1, 7], [2, np.nan]])


@pytest.mark.adapters
def test_arviz_takes_the_tree(tree):
    base = pytest.importorskip("arviz_base", reason="needs  pip install arviz-base")
    stats = pytest.importorskip("arviz_stats", reason="needs  pip install arviz-stats")
    assert base.convert_to_datatree(tree) is tree
    assert base.extract(tree)["z_transitions"].sizes["sample"] == 400
    assert "z_transitions[0, 0]" in stats.summary(tree).index
    assert (tree["posterior"].dataset.azstats.ess()["x_dynamics_weights"] > 200).all()  # draws are independent


@pytest.mark.adapters
@pytest.mark.filterwarnings("default")  # those of movement are its own
def test_movement_takes_the_poses():
    datasets = pytest.importorskip("movement.validators.datasets", reason="needs  pip install movement")
    from movement.kinematics import compute_velocity

    table = frames_of(poses())
    made = xarray.Dataset(table.variables, table.coordinates, table.attributes)
    datasets.ValidPosesInputs.validate(made)
    assert compute_velocity(made["position"]).dims == made["position"].dims
