"""Several discrete blocks in the files of a run and in the answers of a model; one block leaves them as they were."""

import dataclasses

import jax
import numpy as np
import pytest

import svae
from svae.data import load_labels
from svae.pgm import Dynamics, Markov, Normal, SemiMarkov, graph
from svae.runs import Bout, Labels, Posterior, RunError, merge, rename, write_labels
from svae.runs._names import read_labels
from svae.runs._posterior import (
    States,
    blocks_of,
    bouts,
    read_all_bouts,
    read_blocks,
    read_bouts,
    read_posterior,
    read_states,
    states_before,
    write_bouts,
    write_posterior,
)
from svae.runs._quality import quality, read_all_qualities, read_quality, write_quality
from svae.runs._warnings import of_states

T = 6
Z, W = np.array([0, 0, 1, 1, 2, 2]), np.array([1, 1, 1, 0, 0, 0])


def states(path, K):
    return States(path.astype(np.int32), np.eye(K, dtype=np.float32)[path])


def answer(*, several):
    blocks = {"z": states(Z, 3), "w": states(W, 2)} if several else {}
    flat = np.zeros((T, 1), np.float32)
    return Posterior(np.arange(T) / 10, *states(Z, 3), flat, flat, flat[:, 0], blocks)


def written(folder, *, several):
    (folder / "posterior").mkdir(parents=True)
    found = answer(several=several)
    write_posterior(folder / "posterior" / "walk.nc", "walk", found, clock=True)
    write_bouts(folder, list(bouts("walk", found)))
    parts = found.blocks or {"": States(found.state, found.probability)}
    write_quality(folder, {k: quality(np.zeros((T, 2)), s.state, s.probability.shape[1]) for k, s in parts.items()})
    return folder


def test_files_of_one_block_have_nothing_new(tmp_path):
    one, several = written(tmp_path / "one", several=False), written(tmp_path / "several", several=True)
    assert read_blocks(one / "posterior" / "walk.nc") == {} == blocks_of(one)
    head = "recording,state,start_s,stop_s,probability"
    lines = {path: (path / "bouts.csv").read_text().splitlines() for path in (one, several)}
    assert lines[one][0] == head and lines[several][0] == f"{head},block"
    assert [f"{line},z" for line in lines[one][1:]] == lines[several][1:4]
    assert "block" not in (one / "states.csv").read_text()


def test_what_is_written_of_each_block_is_read(tmp_path):
    folder = written(tmp_path, several=True)
    file = folder / "posterior" / "walk.nc"
    found = read_posterior(file)
    assert list(found.blocks) == ["z", "w"] and blocks_of(folder) == {"z": 3, "w": 2}
    np.testing.assert_array_equal(found.state, Z)
    np.testing.assert_array_equal(found.of("w").state, W)
    np.testing.assert_array_equal(found.of("w").probability, np.eye(2)[W])
    np.testing.assert_array_equal(read_states(file, "w"), W)
    np.testing.assert_array_equal(read_states(file, "z"), read_states(file))
    assert [b.state for b in read_bouts(folder)] == [0, 1, 2] and [b.state for b in read_bouts(folder, "w")] == [1, 0]
    assert read_bouts(folder, "w")[0] == Bout("walk", 1, 0.0, 0.3, 1.0, "s", "w")
    assert len(read_all_bouts(folder)) == 5
    assert read_quality(folder).frames.tolist() == [2, 2, 2] and read_quality(folder, "w").frames.tolist() == [3, 3]
    assert list(read_all_qualities(folder)) == ["z", "w"] and read_quality(folder, "x") is None


def test_a_row_that_lost_its_block_is_damage(tmp_path):
    folder = written(tmp_path, several=True)
    text = (folder / "bouts.csv").read_text()
    (folder / "bouts.csv").write_text(text.replace(",w", "", 1))
    with pytest.raises(RunError, match="damaged"):
        read_bouts(folder)


def test_names_of_each_block_are_kept_apart(tmp_path):
    labels = rename(Labels({}, {}), 1, "walk").with_block("w", merge(rename(Labels({}, {}), 0, "up"), [1], into=0))
    write_labels(tmp_path, labels)
    again = read_labels(tmp_path)
    assert again == labels and again.of("w") == Labels({0: "up"}, {1: 0}) and again.of("u") == Labels({}, {})
    assert rename(again, 1, "").of("w").names == {0: "up"}
    write_labels(tmp_path, rename(Labels({}, {}), 2, "sit"))
    assert (tmp_path / "names.json").read_text() == '{\n "2": "sit"\n}\n'


def test_colours_go_on_from_block_to_block():
    assert [states_before({"z": 3, "w": 2, "v": 4}, name) for name in ("z", "w", "v", None)] == [0, 3, 5, 0]


def test_warnings_name_the_block():
    assert "State 1 of w has 90 % of the frames" in of_states([0.1, 0.9, 0.0], "w")[0]
    assert "State 1 has" in of_states([0.1, 0.9, 0.0])[0]


def test_labels_are_those_of_the_first_block(tmp_path):
    folder = written(tmp_path, several=True)
    walk = svae.load({"walk": np.zeros((T, 2))}, fps=10)
    np.testing.assert_array_equal(load_labels(walk, folder / "bouts.csv").beside[0].labels, Z)


# --- answers of a model -------------------------------------------------------------------------------------------


def model(pgm):
    return svae.make((3,), pgm=pgm, hidden=(), network="affine")


def shows(fitted, block):
    return dataclasses.replace(fitted, pgm=dataclasses.replace(fitted.pgm, shown=block))


def test_each_block_answers_as_if_it_were_the_one_that_is_shown():
    """The same questions to the same graph with `show=`."""
    rng = np.random.default_rng(0)
    fitted = model(graph(z=Markov(3), w=Markov(2), x=Normal(2, given=("z", "w"))))
    y, other = rng.normal(size=(12, 3)), shows(fitted, "w")
    assert fitted.pgm.blocks == ("z", "w") and other.pgm.blocks == ("w", "z")
    here, there = svae.segment(fitted, y), svae.segment(other, y)
    np.testing.assert_array_equal(here.blocks["w"].labels[0], there.labels[0])
    np.testing.assert_array_equal(here.blocks["w"].marginals[0], there.marginals[0])
    np.testing.assert_array_equal(here.blocks["z"].labels[0], here.labels[0])
    np.testing.assert_array_equal(svae.infer(fitted, y).blocks["w"][0], svae.infer(other, y).states[0])
    ahead = [svae.forecast(m, y, horizon=4, samples=3, key=jax.random.key(1)) for m in (fitted, other)]
    np.testing.assert_array_equal(ahead[0].blocks["w"][0], ahead[1].states[0])
    drawn = [svae.generate(m, 5, samples=2, key=jax.random.key(1)) for m in (fitted, other)]
    np.testing.assert_array_equal(drawn[0].blocks["w"], drawn[1].states)
    assert "blocks z and w" in repr(here) and "blocks" not in repr(here.blocks["w"])


def test_states_above_other_states_have_no_conditional():
    pgm = graph(mood=Markov(2), z=Markov(3, given="mood"), x=Normal(2, given="z"))
    q = pgm.prior
    assert pgm.conditionals(q).W.shape[0] == 3
    assert dataclasses.replace(pgm, shown="mood").conditionals(q) is None


def test_learned_durations_are_the_mean_of_their_dirichlet():
    pgm = graph(z=SemiMarkov(2, longest=4), x=Normal(1, given="z"))
    counts = pgm.prior.z.durations.counts.at[0, 1].add(5.0)
    q = pgm.prior._replace(z=pgm.prior.z._replace(durations=type(pgm.prior.z.durations)(counts)))
    np.testing.assert_allclose(pgm.durations(q)[0], np.array([0.5, 5.5, 0.5, 0.5]) / 7, rtol=1e-6)
    plain = graph(z=Markov(2), x=Normal(1, given="z"))
    assert plain.durations(plain.prior) is None


@pytest.mark.parametrize("pgm", [graph(z=Markov(2), w=Markov(2), x=Dynamics(2, add=("z", "w")))], ids=["factorial"])
def test_a_recording_of_one_frame_is_inferred(pgm):
    found = svae.infer(model(pgm), np.zeros((1, 3)))
    assert found.mean[0].shape == (1, 2) and np.isfinite(found.mean[0]).all()
