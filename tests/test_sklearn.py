"""The estimators keep scikit-learn's promises, and say what the queries say."""

import copy
import subprocess
import sys
import warnings

import jax
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import svae
from svae.config import ConfigError
from svae.data import DataError
from svae.sklearn import GMM, HMM, LDS, SLDS, VAE

TINY = {"latent_dim": 2, "network": "affine", "steps": 1, "warmup_steps": 0, "batch_size": 4}
UNTRAINED = TINY | {"steps": 0}  # as the start of a fit leaves it: PCA, and states from its latents
ALL = [VAE(**TINY), GMM(**TINY, states=4), HMM(**TINY, states=4), LDS(**TINY), SLDS(**TINY, states=4)]
CHAIN = "rows of one array follow each other in time, so a row's answer depends on the rows around it"
CHAIN_FAILURES = {"check_methods_subset_invariance": CHAIN, "check_methods_sample_order_invariance": CHAIN}


def conforms(estimator):
    """Every check passes but the expected ones; a check may be skipped for what is not installed."""
    expected = CHAIN_FAILURES if estimator.ORDERED else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # data of one frame and constant columns are told of, as they should be
        found = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    return [(check["check_name"], check["exception"]) for check in found if check["status"] == "failed"]


def test_the_protocol_holds_without_a_step_of_training():
    assert conforms(VAE(**UNTRAINED)) == []


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ALL, ids=lambda e: type(e).__name__)
def test_the_protocol_holds(estimator):
    assert conforms(estimator) == []
    jax.clear_caches()  # programs of all five would take more memory maps than a process may have


def test_import_brings_no_scikit_learn():
    code = "import sys, svae.sklearn; print([m for m in sys.modules if m.split('.')[0] == 'sklearn'])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


@pytest.fixture(scope="module")
def sequences():
    rng = np.random.default_rng(0)
    return [rng.normal(size=(20, 3)).cumsum(0) for _ in range(4)]


@pytest.fixture(scope="module")
def fitted(sequences):
    return HMM(**UNTRAINED, states=2).fit(sequences)


def test_answers_are_those_of_the_queries_list_for_list(fitted, sequences):
    segmented, inferred = svae.segment(fitted.model_, sequences), svae.infer(fitted.model_, sequences)
    assert all(map(np.array_equal, fitted.predict(sequences), segmented.labels))
    assert all(map(np.array_equal, fitted.predict_proba(sequences), segmented.marginals))
    assert all(map(np.array_equal, fitted.transform(sequences), inferred.mean))
    seen = svae.reconstruct(fitted.model_, sequences).frames
    for found, wanted in zip(fitted.inverse_transform(fitted.transform(sequences)), seen, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-4)
    assert isinstance(fitted.score(sequences), float)


def test_one_array_is_answered_by_one_array(fitted, sequences):
    assert fitted.predict(sequences[0]).shape == (20,) and fitted.transform(sequences[0]).shape == (20, 2)
    frames, states = fitted.sample(7)
    assert frames.shape == (7, 3) and states.shape == (7,)


def test_a_copy_answers_the_same(fitted, sequences):
    twin = copy.deepcopy(fitted)  # by the same road as a copy to another process
    assert np.array_equal(twin.transform(sequences[0]), fitted.transform(sequences[0]))


def test_clones_are_unfitted_and_parameters_are_those_of_the_config(fitted):
    twin = clone(fitted)
    assert twin.get_params() == fitted.get_params() and not hasattr(twin, "model_")
    assert {name for e in ALL for name in e.get_params()} <= {f.name for f in svae.Config.__dataclass_fields__.values()}
    with pytest.raises(NotFittedError, match="call fit first"):
        twin.predict(np.zeros((3, 3)))


def test_mistakes_get_one_sentence(fitted, sequences):
    with pytest.raises(ValueError, match="did you mean 'states'"):
        GMM().set_params(state=3)
    with pytest.raises(ConfigError, match="network must be one of"):
        VAE(network="resnet").fit(sequences)
    with pytest.raises(DataError, match="X has 2 features, but HMM is expecting 3"):
        fitted.predict(np.zeros((5, 2)))
    with pytest.raises(DataError, match="not \\(frames, 2\\)"):
        fitted.inverse_transform(np.zeros((5, 3)))
    with pytest.raises(DataError, match="is infinite in column 1 at frame 0"):
        fitted.predict(np.array([[0.0, np.inf, 0.0]]))


def test_pipelines_and_searches_work_on_rows_and_on_sequences(sequences):
    X = np.concatenate(sequences)
    pipeline = make_pipeline(StandardScaler(), VAE(**TINY)).fit(X)
    assert pipeline.transform(X).shape == (80, 2) and np.isfinite(pipeline.score(X))
    search = GridSearchCV(VAE(**TINY), {"learning_rate": [1e-3, 1e-2]}, cv=2).fit(X)
    assert search.best_params_["learning_rate"] in (1e-3, 1e-2)
    assert np.isfinite(cross_val_score(VAE(**TINY), sequences, cv=2)).all()


def test_sklearn_is_named_where_it_was_not_asked_for():
    """Without scikit-learn an unfitted estimator still says what to do."""
    code = (
        "import sys; sys.modules['sklearn'] = None\nfrom svae.sklearn import VAE\n"
        "try:\n    VAE().transform([[1.0]])\nexcept ValueError as error:\n    print(error)"
    )
    assert "call fit first" in subprocess.check_output([sys.executable, "-c", code], text=True)
