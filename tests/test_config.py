import dataclasses
import random
import string
import subprocess
import sys

import numpy as np
import pytest

import svae
from svae import config
from svae.config import CHECKS, MODELS, Config, ConfigError

OTHER = {
    "preprocess": "depth", "size": 24,
    "model": "gmm", "states": 12, "latent_dim": 3, "stickiness": 40.5, "target_duration": 12.5,
    "concentration": 1e-5, "network": "mlp",
    "hidden": (50,), "precision": "full", "likelihood": "poisson", "variance": "network", "missing": True,
    "weights": "gaussian", "samples": 4, "batch_size": 7, "window": 200, "overlap": 0, "steps": 31, "patience": 3,
    "natural_step": 1.0, "learning_rate": 1e-20, "warmup_steps": 0, "restarts": 4, "held_out": 0.0,
    "split_seed": 7, "seed": 2**32 - 1, "latent": (), "inputs": 2, "linear": 0.25,
}  # fmt: skip

BAD = [
    ("model", "sdls"), ("model", 3), ("model", None), ("states", 0), ("states", 2.0), ("states", True),
    ("states", "10"), ("latent_dim", None), ("hidden", 64), ("hidden", (64, 0)), ("hidden", ("a",)), ("hidden", "64"),
    ("precision", "ful"), ("missing", 1), ("missing", "yes"), ("natural_step", 0.0), ("natural_step", 1.01),
    ("natural_step", float("nan")), ("learning_rate", float("inf")), ("learning_rate", "fast"), ("held_out", 1.0),
    ("held_out", -0.1), ("overlap", -1), ("seed", -1), ("seed", 2**32), ("restarts", 0), ("concentration", 0),
    ("stickiness", -1), ("linear", 1.01), ("linear", -0.1), ("target_duration", 1.0),
    ("steps", [3]), ("window", {"frames": 3}), ("samples", 0), ("patience", 0), ("batch_size", 0),
]  # fmt: skip


def test_defaults_are_valid_and_every_field_is_checked():
    assert Config.make({}) == Config()
    assert list(CHECKS) == [field.name for field in dataclasses.fields(Config)]
    assert set(OTHER) == set(CHECKS)


def test_toml_round_trip_of_every_option():
    for original in (Config(), Config.make(OTHER)):
        assert Config.from_toml(original.to_toml()) == original
    assert all(getattr(Config.make(OTHER), name) == value for name, value in OTHER.items())


GRAPH = {"mood": {"block": "markov", "states": 3}, "x": {"block": "normal", "dimensions": 2, "given": ["mood"]}}


def test_a_graph_of_ones_own_is_hashable_and_survives_toml():
    config = Config.make({"latent": {"show": "mood"} | GRAPH, "steps": 7})
    assert (config.model, config.latent_dim) == ("own", 2) and config.tables()["x"] == GRAPH["x"]
    assert len({config, Config.from_toml(config.to_toml())}) == 1
    assert config.to_toml().endswith('\n[latent.x]\nblock = "normal"\ndimensions = 2\ngiven = ["mood"]\n')
    assert dataclasses.replace(config, steps=8).latent == config.latent


@pytest.mark.parametrize(
    ("name", "value"), [("model", "slds"), ("states", 4), ("latent_dim", 5), ("stickiness", 1.0), ("concentration", 2)]
)
def test_what_the_blocks_say_is_not_said_again(name, value):
    with pytest.raises(ConfigError, match=name):
        Config.make({"latent": GRAPH, name: value})


def test_toml_round_trip_of_random_numbers():
    rng = random.Random(0)
    for _ in range(300):
        config = Config(learning_rate=10 ** rng.uniform(-300, 300), held_out=rng.random(), seed=rng.getrandbits(32))
        assert Config.from_toml(config.to_toml()) == config


def test_every_option_that_may_be_none_defaults_to_none():
    # TOML has no null: leaving the option out must mean None again
    for name, value in Config().to_dict().items():
        if value is not None:
            with pytest.raises(ConfigError):
                Config.make({name: None})


@pytest.mark.parametrize(("name", "value"), BAD)
def test_bad_value_is_one_sentence_that_names_the_option(name, value):
    with pytest.raises(ConfigError) as caught:
        Config.make({name: value})
    message = str(caught.value)
    assert name in message and "\n" not in message and len(message) < 200


@pytest.mark.parametrize(
    ("typo", "meant"), [("state", "states"), ("latent_dims", "latent_dim"), ("batchsize", "batch_size")]
)
def test_unknown_option_suggests_the_nearest(typo, meant):
    with pytest.raises(ConfigError, match=f"did you mean '{meant}'"):
        Config.make({typo: 3})


def test_every_option_with_a_letter_missing_is_recognised():
    for name in CHECKS:
        with pytest.raises(ConfigError, match=name):
            Config.make({name[:-1]: 1})


def test_unknown_name_of_a_value_suggests_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'slds'"):
        Config.make({"model": "sdls"})
    assert all(Config(model=model).model == model for model in MODELS)


def test_numpy_numbers_become_plain_ones():
    config = Config.make({"states": np.int64(5), "learning_rate": np.float32(0.5), "hidden": [np.int32(4)]})
    assert [type(v) for v in (config.states, config.learning_rate, config.hidden[0])] == [int, float, int]
    assert hash(config) == hash(Config(states=5, learning_rate=0.5, hidden=(4,)))


def test_replace_checks_too():
    with pytest.raises(ConfigError):
        dataclasses.replace(Config(), states=-1)


def test_broken_toml_is_one_sentence():
    rng = random.Random(0)
    for _ in range(200):
        text = "".join(rng.choices(string.printable, k=rng.randrange(1, 60)))
        try:
            Config.from_toml(text)
        except ConfigError as error:
            assert "\n" not in str(error)
    for text in ("[model]\nname = 3", "states = nan", "states = ", "hidden = [[1]]", "when = 2020-01-01"):
        with pytest.raises(ConfigError):
            Config.from_toml(text)


def test_config_needs_the_standard_library_only():
    code = "import sys, svae.config; print([m for m in ('jax', 'numpy', 'equinox') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_the_names_are_those_of_the_rooms():
    from svae import nets

    assert set(config.NETWORKS) == set(nets.RECOGNITION_NETWORKS) >= set(nets.OBSERVATION_NETWORKS)
    assert set(config.PRECISIONS) == set(nets.PRECISIONS)
    assert set(config.LIKELIHOODS) == set(nets.LIKELIHOODS)
    assert set(config.VARIANCES) == set(nets.VARIANCES)


def test_a_posterior_over_weights_is_made_of_our_own_networks():
    made = svae.make((3,), model="lds", latent_dim=2, hidden=(4,), weights="gaussian")
    assert type(made.observe).__name__ == "GaussianWeights"
