"""Figure 4 in small: the files are whole, the baselines are the regressions they claim to be, coverage is coverage."""

import json
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from svae import Step
from svae.data import synthetic
from svae.experiments import _forecasts, dots
from svae.progress import quiet

TINY = dots.Settings(
    sequences=6,
    width=8,
    prefix=11,
    horizon=4,
    test_sequences=2,
    draws=6,
    hidden=(6,),
    latent_dim=2,
    few=2,
    options=(("network", "mlp"), ("steps", 4), ("warmup_steps", 3), ("batch_size", 3)),
)


def unchanged(model, data):
    """The steps of a fit that leaves its model as it is: `fit` has tests of its own, and takes long to compile."""
    for phase, steps in (("warm-up", range(1, 4)), ("states", [3, 3]), ("fit", range(4, 8))):
        yield from (Step(i, 7, phase, model, 0.0, np.nan, 1, 1.0, "") for i in steps)


def test_run_writes_figures_and_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(dots, "SETTINGS", TINY)
    monkeypatch.setattr(dots, "fit", unchanged)
    monkeypatch.setattr(_forecasts, "CHUNK", 1)  # the shape that the figure asks for: one program less to compile
    found = dots.run(tmp_path, seed=0, progress=quiet)
    for name in ("dots.png", "dots.pdf", "horizons.png", "horizons.pdf"):
        assert (tmp_path / name).stat().st_size > 1000
    assert json.loads((tmp_path / "numbers.json").read_text()) == found
    assert found["steps_of_stages"] == [2, 4]
    assert {len(by_horizon) for by_horizon in found["rmse_by_horizon"].values()} == {TINY.horizon}
    assert 0 <= found["coverage_90_bright"] <= 1 and 0 <= found["coverage_90_dark"] <= 1


def rotating(sequences, length, seed):
    """Noise-free y_t = C R^t x: second-order in its two pixels' past, with an offset."""
    rng = np.random.default_rng(seed)
    phase = rng.uniform(0, 2 * np.pi, (sequences, 1)) + 0.3 * np.arange(length)
    return np.stack([1 + np.cos(phase), 2 * np.cos(phase), 3 - np.cos(phase)], -1)


@pytest.mark.parametrize("order", [2, 4])
def test_autoregression_foretells_a_rotation_exactly(order):
    train, test = rotating(20, 30, 0), rotating(5, 30, 1)
    C = _forecasts.regress(train, order, ridge=1e-9)
    np.testing.assert_allclose(_forecasts.roll(C, test[:, :10], order, 20), test[:, 10:], atol=1e-4)


def test_ridge_is_chosen_by_forecasts_of_sequences_left_out():
    train = rotating(20, 30, 0) + 0.1 * np.random.default_rng(2).standard_normal((20, 30, 3))
    chosen = _forecasts.fit_var(train, 2, 10)
    assert any(np.array_equal(chosen, _forecasts.regress(train, 2, ridge)) for ridge in _forecasts.RIDGES)


def test_repeating_the_last_frame_has_the_error_of_its_noise_and_motion():
    still = np.zeros((4, 18, 3), np.float32)
    still[:, 12:] = 2.0  # it jumps where the forecast begins
    data = synthetic.Dots(still, still, still[..., 0].astype(float))
    found = _forecasts.baselines(rotating(10, 18, 0), data, prefix=12)
    np.testing.assert_allclose(found["repeat"], 2.0)


def test_true_noise_is_covered_ninety_percent(monkeypatch):
    test = synthetic.dots(sequences=40, length=15, seed=3)
    ahead = iter(test.clean[:, 5:])

    def oracle(model, data, *, horizon, samples, key):
        means = [np.broadcast_to(next(ahead), (samples, horizon, 20)) for _ in data]
        noise = np.asarray(jax.random.normal(key, (len(data), *means[0].shape)))
        return SimpleNamespace(samples=list(means + dots.NOISE_SD * noise), means=means)

    monkeypatch.setattr(_forecasts, "forecast", oracle)
    model = dots.first_model(TINY, 0)  # for its type: the oracle does not ask it
    found = _forecasts.accuracy(model, test, prefix=5, draws=400, key=jax.random.key(0))
    np.testing.assert_allclose(found.rmse, 0, atol=1e-6)
    assert abs(found.coverage_bright - 0.9) < 0.03 and abs(found.coverage_dark - 0.9) < 0.02
