"""Packages of other people: graphs, networks and readers that a really installed package adds by entry points."""

import sys

import numpy as np
import pytest

import svae
from svae.cli import main
from svae.config import Config, ConfigError
from svae.data import DataError
from svae.pgm import GraphError

MODULE = '''
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


def weekdays(sizes):
    """States that repeat, from a package."""
    x = {"block": "normal", "dimensions": sizes.latent_dim, "given": "day"}
    return {"day": {"block": "markov", "states": 2}, "x": x}


def raises(sizes):
    """It fails when it is asked."""
    raise KeyError("no week")


def number(sizes):
    """It gives no graph."""
    return 3


class Sum(eqx.Module):
    """Features of a frame and the frame before."""

    layer: eqx.nn.Linear

    def __call__(self, y, mask):
        y = y.reshape(len(y), -1)
        before = jnp.concatenate([y[:1], y[:-1]])
        return jnp.tanh(jax.vmap(self.layer)(jnp.concatenate([y, before], -1)))


def pairs(event_shape, channels, hidden, key):
    """A network that sees two frames."""
    return Sum(eqx.nn.Linear(2 * channels * int(np.prod(event_shape)), hidden[-1], key=key))


def flat(event_shape, channels, hidden, key):
    """It gives one number for each frame."""
    return lambda y, mask: y.reshape(len(y), -1).sum(-1)


def read_week(file):
    """Numbers that this package alone can read."""
    rows = [line.split("|") for line in file.read_text().splitlines()]
    return np.array([[float(cell) for cell in row] for row in rows])
'''
ENTRIES = """
[svae.pgms]
weekdays = weeks:weekdays
absent = weeks_that_are_not_there:graph
raising = weeks:raises
three = weeks:number

[svae.nets]
pairs = weeks:pairs
flat = weeks:flat
missing = weeks:nothing

[svae.readers]
week = weeks:read_week
csv = weeks:read_week
lost = weeks_that_are_not_there:read
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A folder on the search path with a module and what an installer writes beside it."""
    (tmp_path / "weeks.py").write_text(MODULE)
    about = tmp_path / "weeks-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: weeks\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("weeks", None)


def test_a_graph_is_found_by_its_name(package):
    model = svae.make((3,), model="weekdays", latent_dim=2, hidden=())
    assert model.pgm.discrete == {"day": 2} and model.pgm.dimensions == 2
    svae.save(model, package / "model")
    assert svae.load_model(package / "model").pgm.discrete == {"day": 2}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("absent", "'absent' of the package weeks .* fails: ModuleNotFoundError: No module named"),
        ("raising", "'raising' of the package weeks .* fails: KeyError: 'no week'"),
        ("three", "three must give a graph or the tables of one, not 3"),
    ],
)
def test_a_broken_graph_gets_one_sentence(package, name, why, capsys):
    with pytest.raises((ConfigError, GraphError), match=why):
        svae.make((3,), model=name, latent_dim=2)
    assert main(["models", name]) == 2 and "Traceback" not in capsys.readouterr().err


def test_the_list_of_models_leaves_broken_packages_out(package, capsys):
    assert main(["models"]) == 0
    told = capsys.readouterr()
    assert "weekdays: States that repeat, from a package." in told.out and "slds:" in told.out
    assert len(told.err.splitlines()) == 3 and "absent" in told.err and "absent:" not in told.out


def test_a_network_is_found_by_its_name_and_begins_at_pca(package):
    y = np.random.default_rng(0).normal(size=(40, 3))
    options = {"model": "lds", "latent_dim": 2, "hidden": (4,), "steps": 1, "warmup_steps": 1, "held_out": 0.0}
    *_, step = svae.fit(svae.make((3,), network="pairs", **options), y)
    assert step.note == "" and step.model.recognize.trunk.size == 4
    svae.save(step.model, package / "model")
    again = svae.load_model(package / "model")
    np.testing.assert_array_equal(svae.infer(again, y).mean[0], svae.infer(step.model, y).mean[0])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("missing", "'missing' of the package weeks .* fails: AttributeError"),
        ("flat", r"the network 'flat' gives the shape \(3,\), but must give \(3, features\)"),
        ("pears", "network must be one of affine.* did you mean 'pairs'"),
    ],
)
def test_a_broken_network_gets_one_sentence(package, name, why):
    with pytest.raises(ConfigError, match=why):
        svae.make((3,), model="lds", latent_dim=2, network=name)


def test_a_reader_is_found_by_the_extension(package):
    folder = package / "data"
    folder.mkdir()
    for day in ("monday", "tuesday"):
        (folder / f"{day}.week").write_text("1|2\n3|4\n5|6\n")
    found = svae.load(folder, fps=10)
    assert found.names == ("monday", "tuesday") and found.fps == 10
    np.testing.assert_array_equal(found.sequences[1][:], [[1, 2], [3, 4], [5, 6]])


def test_a_reader_leaves_our_formats_alone(package):
    (package / "plain.csv").write_text("a,b\n1,2\n3,4\n5,6\n")
    assert svae.load(package / "plain.csv").sequences[0].shape == (3, 2)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a.lost", "a.lost could not be read: 'lost' of the package weeks .* fails: ModuleNotFoundError"),
        ("a.week", "a.week could not be read: 'week' of the package weeks .* fails: ValueError: could not convert"),
    ],
)
def test_a_broken_reader_gets_one_sentence(package, name, why, capsys):
    (package / name).write_text("not|numbers\n")
    with pytest.raises(DataError, match=why):
        svae.load(package / name)
    assert main(["check", str(package / name)]) == 3 and "Traceback" not in capsys.readouterr().err


def test_names_are_checked_before_anything_is_imported(package):
    assert Config(model="absent").model == "absent" and "weeks_that_are_not_there" not in sys.modules
