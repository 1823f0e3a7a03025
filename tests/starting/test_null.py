"""Recordings beside others without states: the spectrum stays, and the verdict is right where the truth is known."""

import numpy as np
import pytest

from svae import data
from svae.starting import compared
from svae.starting.null import _fade, surrogate

SEEDS = range(5)


def without_states(seed, T=800, D=3):
    """One linear dynamics with noise, and noise on top."""
    rng = np.random.default_rng(seed)
    turn = rng.uniform(0.05, 0.4)
    A = np.diag(rng.uniform(0.9, 0.99, D))
    A[:2, :2] *= 0.97
    A[0, 1], A[1, 0] = -np.sin(turn), np.sin(turn)
    A *= 0.98 / max(0.98, float(np.abs(np.linalg.eigvals(A)).max()))
    x = np.zeros((T, D))
    for t in range(1, T):
        x[t] = A @ x[t - 1] + 0.2 * rng.standard_normal(D)
    return x + 0.05 * rng.standard_normal((T, D))


def with_states(seed):
    made = data.switching_rotations(bouts=16, bout_length=50, seed=seed)
    return made.y + 0.02 * np.random.default_rng(seed).standard_normal(made.y.shape)


@pytest.mark.parametrize("T", [60, 61])
def test_a_surrogate_has_every_spectrum_and_cross_spectrum(T):
    x, rng = np.random.default_rng(0).normal(size=(T, 3)).cumsum(0), np.random.default_rng(1)
    found, fade = surrogate(x, rng), _fade(T)[:, None]
    power = lambda z: (w := np.fft.rfft(z, axis=0))[:, :, None] * w.conj()[:, None]  # noqa: E731
    faded = (x - x.mean(0)) * fade / np.sqrt(np.mean(fade**2))
    np.testing.assert_allclose(power(found - x.mean(0))[1:], power(faded)[1:], atol=1e-9)
    assert np.abs(found - x).max() > 0.5 * x.std()


@pytest.mark.parametrize("seed", SEEDS)
def test_one_linear_dynamics_has_no_states(seed):
    found = compared([without_states(seed)], 4, dynamic=True, seed=0)
    assert not found.gain.above and found.dynamics.above


@pytest.mark.parametrize("seed", SEEDS)
def test_switching_rotations_have_states(seed):
    found = compared([with_states(seed)], 4, dynamic=True, seed=0)
    assert found.gain.above and found.gain.found > 2 * max(found.gain.without)


def test_frames_in_random_order_have_no_dynamics_and_a_few_say_nothing():
    x = np.random.default_rng(0).normal(size=(400, 2))
    found = compared([x], 1, dynamic=True, seed=0)
    assert found.gain is None and not found.dynamics.above
    few = compared([x[:1]] * 300, 3, dynamic=True, seed=0)
    assert few.gain is None and "fewer than 100 frames" in few.why


def test_what_it_costs_is_bounded():
    """Stretches of many or long recordings, and the leading of many columns."""
    rng = np.random.default_rng(0)
    found = compared([rng.normal(size=(7000, 12)) for _ in range(2)], 1, dynamic=True, seed=0)
    assert 2000 <= found.frames <= 3000
