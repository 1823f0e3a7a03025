"""Groups from data to answers: fit, names, save and load, questions on known and new groups, the run folder."""

import jax
import numpy as np
import pytest

import svae
from svae import runs
from svae.config import Config, ConfigError
from svae.data import DataError
from svae.queries.batches import prepare

LATENT = {
    "z": {"block": "markov", "states": 2, "by": "animal"},
    "x": {"block": "normal", "dimensions": 1, "given": ["z"]},
}
OPTIONS = {"latent": LATENT, "hidden": (), "steps": 3, "warmup_steps": 2, "held_out": 0.25}


def recordings():
    """a changes its state every thirty frames, b every five."""
    rng, long = np.random.default_rng(0), {"a1": 30, "a2": 30, "b1": 5, "b2": 5}
    states = {name: np.arange(120) // frames % 2 for name, frames in long.items()}
    walks = {name: 4.0 * z[:, None] + 0.3 * rng.normal(size=(120, 2)) for name, z in states.items()}
    return svae.data.with_groups(svae.load(walks, fps=30), {name: name[0] for name in walks})


@pytest.fixture(scope="module")
def fitted():
    model, notes = svae.model_for(recordings(), **OPTIONS), []
    for step in svae.fit(model, recordings()):
        model = step.model
        notes.append(step.note)
    return model, notes


def switches(model, group):
    rows = np.asarray(model.q.z.transitions.mean())[model.layout.groups.index(group)]
    return 1 - np.diag(rows)


def test_every_group_has_its_own_rows(fitted):
    model, notes = fitted
    assert model.layout.groups == ("a", "b") and model.pgm.groups == 2
    assert switches(model, "a").max() < 0.1 < switches(model, "b").min()
    assert not any("habits" in note for note in notes)


def test_questions_know_old_groups_and_say_what_is_new(fitted, tmp_path):
    model, _ = fitted
    svae.save(model, tmp_path / "model")
    model = svae.load_model(tmp_path / "model")
    one = np.full((12, 2), 2.0)  # says nothing of its state
    data = svae.data.with_groups(svae.load({"1": one, "2": one, "3": one}, fps=30), ["a", "b", "new"])
    assert "has not seen new" in " ".join(prepare(model, data).notes)
    assert "Nobody says which animal recording 0 is of" in " ".join(prepare(model, one).notes)
    kl = svae.infer(model, data).kl
    assert all(not np.allclose(x, y) for x, y in ((kl[0], kl[1]), (kl[0], kl[2]), (kl[1], kl[2])))
    np.testing.assert_allclose(kl[2], svae.infer(model, one).kl[0], atol=1e-5)
    ahead = svae.forecast(model, recordings(), horizon=40, samples=20, key=jax.random.key(0)).states
    changes = [np.mean(np.diff(z, axis=1) != 0) for z in ahead]
    assert max(changes[:2]) < 0.1 < min(changes[2:])
    draws = {g: svae.generate(model, 40, samples=20, key=jax.random.key(0), group=g).states for g in ("a", "b", None)}
    changes = {g: np.mean(np.diff(z, axis=1) != 0) for g, z in draws.items()}
    assert changes["a"] < 0.1 < changes["b"] and changes["a"] != changes[None] != changes["b"]
    with pytest.raises(ConfigError, match="no group 'c'; it knows a, b"):
        svae.generate(model, 4, key=jax.random.key(0), group="c")
    svae.score(model, data, key=jax.random.key(0), samples=2, importance_samples=2)


def test_what_cannot_be_is_said():
    plain = recordings()._replace(beside=())
    with pytest.raises(DataError, match="has habits for each animal, and the data do not say whose a1"):
        next(svae.fit(svae.model_for(plain, **OPTIONS), plain))
    with pytest.raises(DataError, match="no group of b2"):
        svae.data.with_groups(plain, {"a1": "a", "a2": "a", "b1": "b"})
    found = next(svae.fit(svae.model_for(recordings(), **(OPTIONS | {"latent": {}, "model": "hmm"})), recordings()))
    assert "the same habits for all" in found.note and found.model.layout.groups == ()


def test_the_only_recording_of_a_group_is_held_out_last():
    data = svae.data.with_groups(recordings(), ["a", "b", "c", "c"])
    for seed in range(5):
        held = svae.data.split(data, 0.25, seed)[1]
        assert held.beside[0].group == "c"


def test_a_run_is_resumed_and_applied_to_known_and_new_groups(tmp_path):
    data, config = recordings(), Config.make(OPTIONS)
    assert Config.from_toml(config.to_toml()) == config
    run = runs.start(tmp_path / "run", data, config)
    runs.train(run, data)
    model = run.model()
    assert model.layout.groups == ("a", "b") and (run.path / "groups.csv").exists()
    runs.apply(model, svae.data.take(data, [0, 3]), tmp_path / "known")
    runs.apply(model, svae.load({"other": np.zeros((12, 2))}, fps=30), tmp_path / "new")
    assert (tmp_path / "new" / "bouts.csv").exists()
