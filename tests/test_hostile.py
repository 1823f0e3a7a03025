"""Hostile inputs x every model: a finite result or one clear sentence, never a silent NaN, never traced arrays.

By default every hostile data set meets every model in `fit` and `score` with shapes alike, so that each model compiles
once. The other queries, and inputs that change shapes, are the rest of the cross product: `pytest -m slow`.
"""

import math

import equinox as eqx
import jax
import numpy as np
import pytest

import svae
from svae.data import DataError
from tests.graphs import SIX

T, P = 12, 3
OPTIONS = dict(latent_dim=2, states=2, hidden=(4,), steps=3, warmup_steps=1, batch_size=2)  # noqa: C408
KEY = jax.random.key(0)


def plain():
    return np.random.default_rng(0).normal(size=(T, P)).cumsum(0)


def changed(place, value):
    y = plain()
    y[place] = value
    return y


SAME_SHAPE = {
    "plain": plain,
    "one NaN": lambda: changed((3, 1), np.nan),
    "a missing frame": lambda: changed(4, np.nan),
    "a column never seen": lambda: changed((slice(None), 2), np.nan),
    "one Inf": lambda: changed((3, 1), np.inf),
    "a constant column": lambda: changed((slice(None), 1), 7.0),
    "all constant": lambda: np.full((T, P), 3.0),
    "all zero": lambda: np.zeros((T, P)),
    "duplicate frames": lambda: np.tile(plain()[:1], (T, 1)),
    "each frame twice": lambda: np.repeat(plain()[: T // 2], 2, 0),
    "scale 1e12": lambda: plain() * 1e12,
    "scale 1e-12": lambda: plain() * 1e-12,
    "scale 1e200": lambda: plain() * 1e200,
    "scale 1e-200": lambda: plain() * 1e-200,
    "offset 1e8": lambda: plain() + 1e8,
    "one outlier": lambda: changed((5, 0), 1e10),
    "int8": lambda: (plain() * 10).astype(np.int8),
    "bool": lambda: plain() > 0,
}
OTHER_SHAPES = {
    "T = 1": (lambda: plain()[:1], {}),
    "T = 2": (lambda: plain()[:2], {}),
    "T = 1, P = 1": (lambda: plain()[:1, :1], {}),
    "K = 1": (plain, {"states": 1}),
    "D = 1": (plain, {"latent_dim": 1}),
    "K = 1, D = 1, P = 1": (lambda: plain()[:, :1], {"states": 1, "latent_dim": 1}),
    "D > P": (plain, {"latent_dim": 5}),
    "K > T": (plain, {"states": 20}),
}
REFUSED = {"one Inf", "all constant", "all zero", "scale 1e200", "scale 1e-200", "T = 1, P = 1"}
ERRORS = (DataError, svae.FitError, svae.ConfigError)


def fit(kind, y, options):
    """The fitted model; a note, not a number, must tell of any step that was not finite."""
    model = svae.make(y.shape[1:], model=kind, **(OPTIONS | options))
    for step in svae.fit(model, y):
        assert math.isfinite(step.bound) or step.note or step.frames_per_second != step.frames_per_second
        assert all(np.isfinite(np.asarray(leaf)).all() for leaf in arrays(step.model))
    assert math.isfinite(step.bound) and math.isfinite(step.held_out)
    return step.model


def arrays(model):
    return jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))


def told_in_one_sentence(error):
    text = str(error.value)
    return 10 < len(text) < 250 and "\n" not in text and "Traced" not in text


def numbers(result):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(result) if not isinstance(leaf, str)]


def survive(name, kind, y, options, queries):
    if name in REFUSED:
        with pytest.raises(ERRORS) as caught:
            fit(kind, y, options)
        assert told_in_one_sentence(caught)
        return
    model = fit(kind, y, options)
    for query in queries:
        result = query(model, y)
        assert all(np.isfinite(a).all() for a in numbers(result))


def scored(model, y):
    return svae.score(model, y, key=KEY, samples=2, importance_samples=2)


EVERY_QUERY = (
    svae.infer,
    svae.segment,
    svae.reconstruct,
    scored,
    lambda model, y: svae.impute(model, y, key=KEY, samples=2, starts=2),
    lambda model, y: svae.forecast(model, y, horizon=3, samples=2, key=KEY),
    lambda model, y: svae.generate(model, 3, samples=2, key=KEY),
)


@pytest.mark.parametrize("kind", SIX)
@pytest.mark.parametrize("name", SAME_SHAPE)
def test_hostile_data(kind, name):
    survive(name, kind, SAME_SHAPE[name](), {}, (scored,))


@pytest.mark.slow
@pytest.mark.parametrize("kind", SIX)
@pytest.mark.parametrize("name", SAME_SHAPE)
def test_hostile_data_in_every_query(kind, name):
    survive(name, kind, SAME_SHAPE[name](), {}, EVERY_QUERY)


@pytest.fixture
def forget_programs_at_once():
    """Every test of another shape compiles its own programs; a process may hold only so many memory maps."""
    yield
    jax.clear_caches()


@pytest.mark.slow
@pytest.mark.parametrize("kind", SIX)
@pytest.mark.parametrize("name", OTHER_SHAPES)
def test_hostile_shapes(kind, name, forget_programs_at_once):
    data, options = OTHER_SHAPES[name]
    survive(name, kind, data(), options, EVERY_QUERY)


@pytest.mark.parametrize("name", ["T = 1", "T = 2", "K = 1, D = 1, P = 1"])
def test_hostile_shapes_of_a_chain(name):
    data, options = OTHER_SHAPES[name]
    survive(name, "lds", data(), options, (scored,))


@pytest.mark.parametrize("name", SAME_SHAPE)
def test_hostile_questions_to_a_model_of_ordinary_data(name):
    """The data of a question may be worse than those of the fit."""
    model = svae.make((P,), model="gaussian", **OPTIONS)
    try:
        result = svae.infer(model, SAME_SHAPE[name]()), svae.reconstruct(model, SAME_SHAPE[name]())
    except ERRORS as error:
        assert len(str(error)) < 250
    else:
        assert all(np.isfinite(a).all() for a in numbers(result))
