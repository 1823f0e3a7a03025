"""A latent model with inputs: what it learns of their effect, in the units of input and data."""

import jax
import numpy as np
import pytest

import svae
from svae import data
from svae.config import ConfigError
from svae.pgm import Dynamics, graph

A, B = np.array([[0.9, -0.25], [0.25, 0.9]]), np.array([0.5, -0.2])
UNIT, AT = np.array([1.0, 10.0, 0.1, 3.0]), 30.0  # of the columns of y; of the input
AHEAD = 40
KEY = jax.random.key(0)


def driven_by(u, rng, C):
    """y (T, 4) of latents that an input (T,) drives."""
    x = np.zeros((len(u), 2))
    for t in range(1, len(u)):
        x[t] = A @ x[t - 1] + B * (u[t] - 100) / AT + 0.05 * rng.normal(size=2)
    return (x @ C.T + 0.05 * rng.normal(size=(len(u), 4))) * UNIT + 5


@pytest.fixture(scope="module")
def fits():
    """Models with and without the input, the past of a stimulus that neither has seen, and what follows it."""
    rng = np.random.default_rng(0)
    C = rng.normal(size=(4, 2))
    u = 100 + AT * np.repeat(rng.integers(0, 2, 240), 10)
    records = data.with_inputs(svae.load({"walk": driven_by(u, rng, C)}, fps=30), {"walk": u[:, None]}, names=["light"])
    options = {"hidden": (), "network": "affine", "steps": 150, "warmup_steps": 10, "window": 200, "overlap": 20}
    models = []
    for inputs in (1, 0):
        model = svae.make((4,), pgm=graph(x=Dynamics(2, inputs=inputs)), natural_step=0.3, **options)
        for step in svae.fit(model, records):
            model = step.model
        models.append(model)
    new = 100 + AT * np.sin(np.arange(200 + AHEAD) / 4)
    return models, C, new, driven_by(new, rng, C)


def test_the_response_to_an_impulse_is_recovered(fits):
    (model, _), C, _, _ = fits
    true = np.stack([C @ np.linalg.matrix_power(A, h) @ B * UNIT / AT for h in range(20)])
    found = svae.response(model, frames=20, samples=64, key=KEY)
    assert found.inputs == ("light",)
    assert np.linalg.norm((found.mean[0] - true) / UNIT) < 0.05 * np.linalg.norm(true / UNIT)


def test_a_stimulus_that_it_never_saw_is_foretold(fits):
    (model, without), _, u, y = fits
    past = data.with_inputs(svae.load({"walk": y[:200]}, fps=30), {"walk": u[:200, None]}, names=["light"])
    asked = {"horizon": AHEAD, "samples": 30, "key": KEY}
    ours = svae.forecast(model, past, inputs={"walk": u[200:, None]}, **asked).means[0].mean(0)
    others = svae.forecast(without, past, **asked).means[0].mean(0)
    error = lambda guess: np.sqrt(np.mean(((guess - y[200:]) / UNIT) ** 2))  # noqa: E731
    assert error(ours) < 0.5 * error(others)


def test_what_is_not_given_is_said(fits):
    (model, without), _, u, y = fits
    with pytest.raises(data.DataError, match="takes 1 inputs at every frame and the data have none; give them"):
        svae.infer(model, y)
    with pytest.raises(ConfigError, match="takes no inputs"):
        svae.response(without, key=KEY)
    with pytest.raises(ConfigError, match="must have the shape"):
        svae.generate(model, 5, inputs=u[:4], key=KEY)


def test_a_saved_model_keeps_the_units_of_its_inputs(fits, tmp_path):
    (model, _), *_ = fits
    svae.save(model, tmp_path / "model")
    again = svae.load_model(tmp_path / "model", like=model)
    for a, b in zip(model.driven, again.driven, strict=True):
        np.testing.assert_array_equal(a, b)
    assert again.layout.inputs == ("light",)
