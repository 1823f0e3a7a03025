"""The models inside aeon and sktime, by their own checks; skipped where the packages are not installed."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from svae.data import scores

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("default")]  # warnings of the packages are their own
ROOT = Path(__file__).parents[2]
SMALL = {"latent_dim": 2, "network": "affine", "steps": 5, "warmup_steps": 2}


def switching(frames=400):
    """Three columns (frames, 3) around two levels, and which (frames,)."""
    truth = np.arange(frames) // 50 % 2
    return 4.0 * truth[:, None] + np.random.default_rng(0).normal(size=(frames, 3)), truth


@pytest.fixture
def segmenter():
    pytest.importorskip("aeon", reason="needs  pip install 'svae[adapters]'")
    from svae.adapters import Segmenter
    from svae.sklearn import HMM

    return Segmenter(HMM(states=2, **SMALL))


def test_aeon_gets_the_states_in_either_form(segmenter):
    y, truth = switching()
    found = segmenter.fit_predict(y, axis=0)
    assert scores.adjusted_rand_index(truth, found) > 0.95
    np.testing.assert_array_equal(found, segmenter.predict(y.T, axis=1))
    again = segmenter.clone().set_params(estimator__states=3)
    assert again.estimator.states == 3 and segmenter.estimator.states == 2 and not again.is_fitted


def test_aeon_gives_the_states_that_are_known(segmenter):
    y, truth = switching()
    known = np.where(np.arange(len(y)) < 100, 1 - truth, -1)  # the other way round
    assert (segmenter.fit(y, known, axis=0).predict(y, axis=0) == 1 - truth).mean() > 0.95


@pytest.fixture
def forecaster():
    pytest.importorskip("sktime", reason="needs  pip install 'svae[adapters]'")
    from svae.adapters import Forecaster
    from svae.sklearn import LDS

    return Forecaster(LDS(latent_dim=2, network="affine", steps=60, warmup_steps=20), samples=100)


def waves(frames=300):
    import pandas

    t = np.arange(frames) * 0.2
    noise = 0.05 * np.random.default_rng(0).normal(size=(frames, 2))
    return pandas.DataFrame(np.stack([np.sin(t), np.cos(t)], 1) + noise, columns=["a", "b"])


def test_sktime_gets_means_quantiles_and_updates(forecaster):
    y = waves()
    found = forecaster.fit(y[:250]).predict(fh=[1, 5, 10])
    assert list(found.index) == [250, 254, 259] and list(found.columns) == ["a", "b"]
    middle = forecaster.predict_quantiles(fh=[1, 5, 10], alpha=[0.1, 0.5, 0.9])
    assert (middle["a"][0.1] < middle["a"][0.5]).all() and (middle["a"][0.5] < middle["a"][0.9]).all()
    model = forecaster.estimator_.model_
    later = forecaster.update(y[250:290], update_params=False).predict(fh=[1])
    assert forecaster.estimator_.model_ is model and list(later.index) == [290]
    seen = np.abs(later.iloc[0] - y.iloc[290]).max()
    assert seen < np.abs(later.iloc[0] - y.iloc[249]).max()  # it has seen what came since


def test_sktime_forecasts_several_columns_or_one_with_gaps(forecaster):
    y = waves()["a"]
    y.iloc[20:23] = np.nan
    assert forecaster.fit(y).predict(fh=[1, 2]).shape == (2,)


CHECKS = {"Forecaster": "sktime.utils.estimator_checks", "Segmenter": "aeon.testing.estimator_checking"}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
def test_the_checks_of_the_package_pass(name):
    """In an interpreter of their own: they look at signatures, which the hook of this session changes."""
    pytest.importorskip(CHECKS[name], reason="needs  pip install 'svae[adapters]'")
    code = f"from {CHECKS[name]} import *; from svae.adapters import *; check_estimator({name}, raise_exceptions=True)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_package_that_is_missing_is_named(monkeypatch):
    import svae.adapters

    monkeypatch.setitem(sys.modules, "sktime", None)
    monkeypatch.setitem(sys.modules, "sktime.forecasting.base", None)
    monkeypatch.delitem(sys.modules, "svae.adapters.forecaster", raising=False)
    with pytest.raises(ImportError, match=r"needs the package .*svae\[adapters\]"):
        _ = svae.adapters.Forecaster
