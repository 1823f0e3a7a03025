"""Figure 1 in miniature: what is written, and that its measures mean what they say."""

import json
from dataclasses import replace

import numpy as np
import pytest

from svae.experiments import _densities, pinwheel
from svae.progress import quiet

TINY = pinwheel.Settings(
    points=20,
    new_points=20,
    config=replace(pinwheel.CONFIG, states=3, hidden=(4,), batch_size=20, steps=3, warmup_steps=2),
    mixtures=(2,),
    samples=2,
    importance_samples=2,
    draws=500,
)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(pinwheel, "SETTINGS", TINY)


def test_writes_numbers_and_pictures(tiny, tmp_path):
    numbers = pinwheel.run(tmp_path / "out", seed=0, progress=quiet)
    assert {f.name for f in (tmp_path / "out").iterdir()} == {"numbers.json", "pinwheel.png", "pinwheel.pdf"}
    assert json.loads((tmp_path / "out" / "numbers.json").read_text()) == numbers
    assert 1 <= numbers["svae"]["components_in_use"] <= 3
    assert np.isfinite([numbers[m]["held_out_bound"] for m in ("svae", "vae")]).all()
    assert np.isfinite(numbers["gmm_2"]["log_likelihood"])


def test_without_scikit_learn_one_sentence(tiny, monkeypatch):
    monkeypatch.setattr(pinwheel, "find_spec", lambda name: None)
    assert pinwheel.mixture_scores(np.zeros((5, 2)), np.zeros((5, 2)), 0) == {"gmm": pinwheel.NO_SKLEARN}


def test_purity_forgives_split_arms_and_not_merged_ones():
    arms = np.array([0, 0, 1, 1])
    assert pinwheel.purity(np.array([3, 4, 5, 5]), arms) == 1.0
    assert pinwheel.purity(np.array([7, 7, 7, 7]), arms) == 0.5


def test_densities_put_mass_where_the_samples_are():
    samples = np.array([[10.0, -5.0]] * 100)
    found = _densities.densities(samples, np.ones(100, int), 2)
    row, column = np.unravel_index(found[1].argmax(), found[1].shape)
    centre = lambda cell: (cell + 0.5) / _densities.CELLS * 2 * _densities.EXTENT - _densities.EXTENT  # noqa: E731
    np.testing.assert_allclose([centre(column), centre(row)], [10, -5], atol=0.3)
    assert found[0].sum() == 0 and np.isclose(found[1].sum(), 100)


def test_the_ideal_is_the_entropy_of_the_generator():
    """-log 5 - log(2 pi e) - log(10^2 * .3 * .05): the map of (r, s) nearly keeps areas, arms hardly overlap."""
    assert abs(-np.log(5) - np.log(2 * np.pi * np.e) - np.log(100 * 0.3 * 0.05) - pinwheel.IDEAL) < 0.01
