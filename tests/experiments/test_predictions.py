"""What a prediction may see, that the linear one is the regression it claims to be, and what is carried on."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from svae.data import recordings
from svae.experiments import _forecast_dynamics, _predictions
from svae.expfam import MNIW
from svae.queries import residuals


def test_the_last_fifth_of_one_recording_or_of_many_is_kept():
    one, tested = _predictions.split_last_fifth(recordings(np.zeros((100, 3))))
    assert len(one.sequences[0]) == 80 and tested == {0: 80}
    four, tested = _predictions.split_last_fifth(recordings([np.zeros((10 + i, 3)) for i in range(4)]))
    assert [len(y) for y in four.sequences] == [10, 11, 12] and tested == {3: 0}


def test_a_prediction_begins_after_the_training_frames_and_ends_with_the_recording():
    data = recordings(np.zeros((100, 3)))
    found = _predictions.places(data, {0: 80}, context=30, horizon=5, number=1000)
    assert [p.cut for p in found] == list(range(80, 96))
    assert _predictions.places(data, {0: 99}, context=30, horizon=5, number=3) == []


def spiral(length, seed):
    """An exact VAR(1) with intercept in two dimensions, seen through 12 pixels."""
    rng = np.random.default_rng(seed)
    A, b = 0.98 * np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]]), np.array([0.1, -0.2])
    x = [rng.normal(size=2)]
    for _ in range(length - 1):
        x.append(A @ x[-1] + b)
    return (5 + np.stack(x) @ np.random.default_rng(7).normal(size=(2, 12))).reshape(-1, 3, 4)


def test_pca_and_var_foretell_their_own_kind_exactly():
    train, test = [spiral(60, 0), spiral(50, 1)], spiral(40, 2)
    found = _predictions.by_linear(_predictions.fit_linear(train, 2), test[:10], 30)
    truth = np.stack([test[i + 1 : i + 31] for i in range(10)])
    np.testing.assert_allclose(found, truth, atol=1e-6)
    np.testing.assert_allclose(_predictions.rmse(found, truth), 0, atol=1e-6)


def test_summary_counts_every_horizon_alike():
    told = _predictions.summary({"a": np.array([3.0, 4.0])})["a"]
    assert told == {"1 frame": 3.0, "2 frames": 4.0, "1 to 2": pytest.approx(np.sqrt(12.5))}
    assert len(list(_predictions.rows({"a": told}))) == 2


# --- what is carried on of the last residual ------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_autocorrelation_of_noise_with_and_without_memory(memory):
    rng = np.random.default_rng(0)
    r = np.zeros((256, 40))
    for t in range(1, 256):
        r[t] = memory * r[t - 1] + np.sqrt(1 - memory**2) * rng.normal(size=40)
    found = np.asarray(residuals.autocorrelation(jnp.asarray(r, jnp.float32), 8))
    np.testing.assert_allclose(found, memory ** np.arange(1, 9), atol=0.06 if memory else 0.02)


def test_few_frames_prove_no_memory():
    r = jnp.ones((3, 5))
    np.testing.assert_array_equal(residuals.autocorrelation(r, 6), np.zeros(6))
    np.testing.assert_array_equal(residuals.autocorrelation(jnp.zeros((20, 5)), 4), np.zeros(4))


def test_the_weights_are_those_of_the_conditional_gaussian():
    """An offset, an AR(1) and white noise: the exact E[r_{T+h} | r_T, ..., r_{T-7}] and its variance."""
    c = np.r_[1.0, 0.3 + 0.5 * 0.8 ** np.arange(1, 18)]
    whole = c[np.abs(np.subtract.outer(np.arange(18), np.arange(18)))]
    weights, known = residuals.best_linear(jnp.asarray(c[1:]), 8)
    order = np.r_[np.arange(8)[::-1], 8:18]  # the last comes first
    past, across = whole[np.ix_(order[:8], order[:8])], whole[np.ix_(order[8:], order[:8])]
    np.testing.assert_allclose(weights, across @ np.linalg.inv(past), atol=1e-5)
    np.testing.assert_allclose(known, np.diag(across @ np.linalg.inv(past) @ across.T), atol=1e-5)
    nothing = residuals.best_linear(jnp.zeros(12), 4)
    assert nothing[0].shape == (9, 4) and not nothing[0].any() and not nothing[1].any()


def test_what_is_carried_no_longer_varies():
    share = jnp.array([1.0, 0.6, 0.0])
    left = residuals.Residual(2.0 * share[:, None] * jnp.ones((1, 3)), share**2)
    mean = jnp.zeros((3, 3))
    drawn = jax.random.normal(jax.random.key(0), (4000, 3, 3))
    means, draws = jax.vmap(lambda d: residuals.carried(left, mean, d))(drawn)
    np.testing.assert_allclose(means[0], np.array([[2.0], [1.2], [0.0]]) * np.ones(3), rtol=1e-6)
    np.testing.assert_allclose(np.std(draws, 0), np.array([[0.0], [0.8], [1.0]]) * np.ones(3), atol=0.05)
    np.testing.assert_allclose(np.mean(draws, 0), means[0], atol=0.05)


def test_foresight_finds_the_dynamics_that_last():
    """Smooth latents of an AR(2): one frame ahead says they stay, many frames ahead that they fade."""
    rng = np.random.default_rng(1)
    x = np.zeros((3000, 1))
    for t in range(2, 3000):
        x[t] = 1.8 * x[t - 1] - 0.84 * x[t - 2] + rng.normal()
    x = jnp.asarray(_forecast_dynamics.stretches([x / x.std()], 20), jnp.float32)
    before = jnp.asarray([[float(jnp.sum(x[:, 1] * x[:, 0]) / jnp.sum(x[:, 0] ** 2)), 0.0]])
    after = _forecast_dynamics.least_error_ahead(before, x, 3000 / 20)
    assert after[0, 0] < before[0, 0] - 0.01
    q = MNIW(before, jnp.eye(1) * 0.01, jnp.eye(2), jnp.asarray(10.0))
    moved = _forecast_dynamics.refitted(q, x, 3000 / 20)
    assert jnp.all(moved.S > q.S) and jnp.allclose(moved.M, after) and moved.nu == q.nu
    few = _forecast_dynamics.least_error_ahead(before, x, 1e-6)
    np.testing.assert_allclose(few, before, atol=1e-3)  # no stretch speaks for another one


def test_trust_is_what_left_out_blocks_confirm():
    """A slow AR(1) foretells its next frames; of white noise nothing is confirmed."""
    rng = np.random.default_rng(0)
    slow = np.zeros((20_000, 2))
    for t in range(1, len(slow)):
        slow[t] = 0.99 * slow[t - 1] + rng.normal(size=2)
    assert _forecast_dynamics.trust([slow[:9000], slow[9000:]], 10).min() > 0.95
    white = rng.normal(size=(20_000, 2))
    assert _forecast_dynamics.trust([white], 10).max() < 0.3
    assert [len(x) for x in _forecast_dynamics.blocks([white[:100], white[:40]], 10)] == [25, 25, 25, 25, 40]
    np.testing.assert_array_equal(_forecast_dynamics.trust([white[:8]], 10), np.ones(10))


def test_what_is_not_trusted_is_the_mean_of_the_frames_seen():
    foretold = _forecast_dynamics.Foresight.mean
    found = foretold(SimpleNamespace(trust=np.array([1.0, 0.5])), np.full((5, 3), 2.0), np.full((7, 2, 3), 4.0))
    np.testing.assert_allclose(found, [[4, 4, 4], [3, 3, 3]])
