"""Where a fit begins: PCA, and the noise that it leaves to a chain of states."""

import numpy as np
import pytest

from svae.fitting.initialize import LEAST_NOISE, _least_noise, dimensions_note, pca


def made(P, D, *, noise, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(2000, D)) @ rng.normal(size=(D, P)) + noise * rng.normal(size=(2000, P))


def test_pca_takes_what_varies_and_tells_what_is_left():
    y = made(12, 3, noise=0.2)
    found = pca(y, 3)
    x = (y - found.b) @ np.linalg.pinv(found.W).T
    np.testing.assert_allclose(x.std(0), 1, rtol=1e-6)
    np.testing.assert_allclose(found.sd, (y - found.b - x @ found.W.T).std(0), rtol=1e-6)
    assert found.spread == pytest.approx(np.sqrt(y.var(0).mean()))


def test_the_least_noise_has_the_units_of_the_data():
    y = np.c_[made(12, 3, noise=0.05), np.zeros(2000)]  # a column that never varies counts for nothing
    alone, small = _least_noise(pca(y, 3)), _least_noise(pca(0.2 * y, 3))
    assert small == pytest.approx(0.2 * alone)
    assert LEAST_NOISE[0] <= alone / pca(y, 3).spread <= LEAST_NOISE[1]


@pytest.mark.parametrize("D", [4, 8])
def test_where_nothing_is_left_the_noise_is_the_smaller_share(D):
    found = pca(made(4, 4, noise=0.1), D)
    assert _least_noise(found) == pytest.approx(LEAST_NOISE[0] * found.spread)


def test_frames_that_never_vary_have_some_noise():
    assert _least_noise(pca(np.ones((50, 3)), 2)) > 0


def test_the_dimensions_that_hold_most_of_the_variance_are_counted():
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(5000, 4)) * np.sqrt([80.0, 12.0, 5.0, 3.0])
    found = pca(frames, 1)
    np.testing.assert_allclose(found.shares, [0.80, 0.92, 0.97, 1.0], atol=0.01)
    assert dimensions_note(found, 1).endswith("of the variance of the frames, 2 would hold 90 %.")
    assert dimensions_note(pca(frames, 3), 3) == dimensions_note(pca(frames, 8), 8) == ""
    assert dimensions_note(pca(np.zeros((9, 2)), 1), 1) == ""
