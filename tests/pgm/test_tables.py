"""Graphs in TOML: broken ones are refused in one sentence that names the block, before anything is compiled."""

import random

import pytest

from svae.config import Config, ConfigError
from svae.model import pgm_of
from svae.named import MODELS, Sizes
from svae.pgm import GraphError, from_tables, named, to_tables

GOOD = {
    "mood": {"block": "markov", "states": 2},
    "z": {"block": "markov", "states": 3, "given": ["mood"]},
    "x": {"block": "dynamics", "dimensions": 2, "given": ["z"]},
    "w": {"block": "normal", "dimensions": 1, "add": ["mood", "z"]},
}
VALUES = [0, -1, 2.5, 10**12, True, "", "zz", "markvo", ["nobody"], ["w"], [], [1], {}, float("nan"), float("inf")]
WRONG_SIZES = [0, -1, 2.5, 10**12, True, "", "zz", ["w"], {}]


def broken(rng: random.Random) -> tuple[str, dict]:
    """Tables with one mistake, and the name that the sentence must have in it."""
    tables = {name: dict(table) for name, table in GOOD.items()}
    name = rng.choice(list(tables))
    table = tables[name]
    size = "dimensions" if "dimensions" in table else "states"
    kind = rng.randrange(6)
    if kind == 0:
        table[size] = rng.choice(WRONG_SIZES)
    elif kind == 1:
        table["block"] = rng.choice(["markvo", "", 3, True, ["markov"]])
    elif kind == 2:
        del table[rng.choice(["block", size])]
    elif kind == 3:
        table["given"] = rng.choice([["nobody"], [name], ["x"], "w", [1], 3])
    elif kind == 4:
        table[rng.choice(["state", "sizes", "colour"])] = rng.choice(VALUES)
    else:
        tables[name] = rng.choice([3, "markov", True, []])
    return name, tables


@pytest.mark.parametrize("seed", range(4))
def test_broken_tables_are_one_sentence_that_names_the_block(seed):
    rng = random.Random(seed)
    for _ in range(50):
        name, tables = broken(rng)
        with pytest.raises((ConfigError, GraphError)) as caught:
            pgm_of(Config.make({"latent": tables}))
        said = str(caught.value)
        assert "\n" not in said and len(said) < 300 and name in said, (tables, said)


@pytest.mark.parametrize("name", MODELS)
def test_a_name_is_its_tables(name):
    pgm = named(name, Sizes(4, 2, target_duration=3.0))
    assert from_tables(to_tables(pgm)).nodes == pgm.nodes
    text = Config.make({"latent": to_tables(pgm)}).to_toml()
    assert pgm_of(Config.from_toml(text)).title == pgm.title
