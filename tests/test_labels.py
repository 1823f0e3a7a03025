"""Labels from recordings to answers: a state that is known stays, and what nobody looks at changes nothing."""

import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import svae
from svae import data, expfam, runs
from svae.data import Beside
from svae.data.beside import FREE
from svae.runs import RunError
from svae.starting import begun, labelled, search, states

TINY = {"latent_dim": 2, "hidden": (), "network": "affine", "steps": 2, "warmup_steps": 1, "batch_size": 4}
NAMES = np.array(["turn", "walk", "back", "rest"])


def rotations():
    """Recordings of bouts whose states somebody has named, and the same with a few of them labelled."""
    found = svae.data.switching_rotations(bouts=12, bout_length=30, seed=0)
    records = svae.load({"walk": found.y}, fps=10)
    return records, NAMES[found.labels]


def test_a_chain_with_labels_is_the_chain_given_them():
    """Enumerated: x all but known by its potentials, so that mean field is exact."""
    model = svae.make((1,), model="hmm", states=3, latent_dim=1, hidden=(), network="affine")
    y, labels = jnp.zeros((5, 1)), jnp.array([FREE, 2, FREE, FREE, 0])
    moments, mask = expfam.moments(model.q), jnp.ones(5, bool)
    q = jax.jit(lambda m: model.posterior(m, y, mask, None, Beside(labels=labels)))(moments)
    chain = jax.tree.map(np.asarray, q.factors.z.chain)
    free = chain.node - np.asarray(svae.model.of_labels(labels, 3))
    weight = np.zeros((5, 3))
    for path in itertools.product(range(3), repeat=5):
        if path[1] == 2 and path[4] == 0:
            steps = itertools.pairwise(path)
            log_p = chain.log_init[path[0]] + sum(chain.log_trans[i, j] for i, j in steps)
            weight[np.arange(5), path] += np.exp(float(log_p + sum(free[t, k] for t, k in enumerate(path))))
    np.testing.assert_allclose(q.states, weight / weight.sum(-1, keepdims=True), atol=2e-4)


def test_a_search_keeps_known_states_and_their_order():
    rng, truth = np.random.default_rng(0), np.repeat([0, 1, 2, 3, 0, 1, 2, 3], 40)
    x = np.array([[3.0, 0], [0, 3], [-3, 0], [0, -3]])[truth] + rng.normal(size=(len(truth), 2))
    labels = np.where(np.arange(len(truth)) % 40 < 8, truth, FREE)
    labels[truth == 3] = FREE  # a state without a name
    asked = {"dynamic": False, "duration": None, "seed": 0, "starts": 2}
    found = states.result(search([x], 4, labels=[labels], **asked)).weights[0]
    assert np.all(found[labels >= 0].argmax(1) == labels[labels >= 0])
    assert np.mean(found.argmax(1) == truth) > 0.95
    assert np.mean(begun(x, labels, 4, rng) == truth) > 0.9


def test_the_discriminant_is_the_one_of_scikit_learn():
    """Of one class: its covariance is then the pooled one, and Ledoit and Wolf's."""
    from sklearn.covariance import ledoit_wolf

    x = np.random.default_rng(0).normal(size=(30, 6)) @ np.diag([3.0, 1, 1, 1, 0.5, 0.1])
    centred = x - x.mean(0)
    np.testing.assert_allclose(labelled.shrunk(centred), ledoit_wolf(centred, assume_centered=True)[0], rtol=1e-6)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose first half has some labels in a file."""
    folder = tmp_path_factory.mktemp("labelled")
    records, truth = rotations()
    np.save(folder / "walk.npy", records.sequences[0])
    known = np.where(np.arange(len(truth)) % 60 < 20, truth, "")
    (folder / "scored.csv").write_text("label\n" + "\n".join(known) + "\n")
    source = {"path": str(folder / "walk.npy"), "fps": 10, "labels": str(folder / "scored.csv")}
    labelled = data.load_source(source)
    config = svae.Config.make(TINY | {"model": "slds", "states": 5})
    return runs.train(runs.start(folder / "run", labelled, config, source=source), labelled), known, folder


def test_a_run_is_labelled_as_its_labels_say(run):
    folder, known, _ = run
    names = folder.names
    assert sorted(names.values()) == sorted(NAMES)
    called = np.array([names.get(k, "") for k in folder.states("walk")])
    assert np.all(called[known != ""] == known[known != ""])
    assert folder.model().layout.labels == tuple(sorted(NAMES))
    log = (folder.path / "log.txt").read_text()
    assert "labelled frames are held out, and nobody looks at their labels" in log
    assert any("frames are labelled" in note for note in folder.provenance()["notes"])


def test_a_run_goes_on_with_the_same_labels_only(run):
    folder, _, home = run
    assert data.load_source(folder.provenance()["source"]).called == folder.load_data().called
    file, before = home / "scored.csv", (home / "scored.csv").read_text()
    file.write_text(before.replace("turn", "spin"))
    with pytest.raises(RunError, match="other labels or inputs of walk"):
        folder.load_data()
    file.write_text(before)


def test_labels_of_held_out_frames_change_nothing(run):
    """The held-out bound, the plain models' split and the score are of frames without labels."""
    folder, known, _ = run
    model, records = folder.model(), folder.load_data()
    bare = records._replace(beside=(), called=data.Called())
    key = jax.random.key(0)
    assert svae.score(model, records, key=key, samples=1) == svae.score(model, bare, key=key, samples=1)
    answers = svae.segment(model, records).labels[0]
    assert np.all(answers[known != ""] == [model.layout.labels.index(name) for name in known[known != ""]])
    with pytest.raises(data.DataError, match="which is no state of the model"):
        svae.segment(model, data.with_labels(bare, ["dance"] * len(known)))


def test_more_labels_than_states_are_refused():
    records, truth = rotations()
    labelled = data.with_labels(records, [truth])
    model = svae.make((2,), model="hmm", states=3, **TINY)
    with pytest.raises(data.DataError, match="of 4 states, the model has 3; give it 4 states or more"):
        next(svae.fit(model, labelled))


def test_scikit_learn_takes_labels():
    from svae.sklearn import HMM

    found = svae.data.switching_rotations(bouts=12, bout_length=30, seed=0)
    y = np.where(np.arange(len(found.y)) % 60 < 20, found.labels, -1)
    fitted = HMM(states=5, **(TINY | {"steps": 0, "warmup_steps": 0})).fit(found.y, y)
    assert fitted.predict(found.y).shape == y.shape
    with pytest.raises(data.DataError, match=r"has the label 0\.5"):
        HMM(**TINY).fit(found.y, y / 2)


def test_names_are_kept_beside_the_answers(run, tmp_path):
    folder, _, _ = run
    names = json.loads((folder.path / "names.json").read_text())
    assert names == {str(k): name for k, name in enumerate(sorted(NAMES))}
