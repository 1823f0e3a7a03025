"""Figure 5a in miniature: what is written, and that a run ends where a matrix becomes indefinite."""

import json

import numpy as np

from svae.experiments import gradients
from svae.progress import quiet

TINY = gradients.Settings(
    sequences=4,
    length=6,
    width=5,
    hidden=(4,),
    latent_dim=2,
    iterations=6,
    every=2,
    standard_steps=(1e3, 1e-4),
)


def test_natural_goes_on_where_a_large_standard_step_ends(monkeypatch, tmp_path):
    monkeypatch.setattr(gradients, "SETTINGS", TINY)
    numbers = gradients.run(tmp_path, seed=0, progress=quiet)
    assert {f.name for f in tmp_path.iterdir()} == {"numbers.json", "gradients.png", "gradients.pdf"}
    assert json.loads((tmp_path / "numbers.json").read_text()) == numbers
    natural, large, small = numbers["curves"]
    assert natural["indefinite"] is None and len(natural["bound"]) == 4
    assert large["indefinite"] == 1 and large["iterations"] == [0]
    assert small["indefinite"] is None
    assert natural["bound"][0] == large["bound"][0] == small["bound"][0]  # one start
    assert np.isfinite(natural["bound"] + small["bound"]).all()


def test_a_curve_ends_before_its_indefinite_matrix():
    alive = np.array([True, True, True, False, False, False])
    found = gradients.curve("standard", 0.1, alive, np.array([-3.0, -2.0, -1.5, -1.5]), TINY)
    assert found.indefinite == 4 and found.iterations == [0, 2] and found.bound == [-3.0, -2.0]
