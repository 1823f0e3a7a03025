"""A fit survives what goes wrong on the way, says what it was, and can be repeated bit by bit."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import svae
from svae import _fit

OPTIONS = dict(latent_dim=2, states=2, hidden=(4,), steps=12, warmup_steps=2, batch_size=2, held_out=0.2)  # noqa: C408
DATA = [np.random.default_rng(i).normal(size=(8, 3)).cumsum(0) for i in range(5)]


def model_of(kind, **options):
    return svae.make((3,), model=kind, **(OPTIONS | options))


def poisoned_lds(model, y, mask, *, num_data, key, counted=None):
    """Algorithm 1, but about one step in four a NaN falls into one leaf of the natural gradient."""
    bound, gradient = svae.value_and_grad(model, y, mask, num_data=num_data, key=key, counted=counted)
    struck = jax.random.uniform(jax.random.fold_in(key, 7)) < 0.25
    uxT = gradient.q.dynamics.uxT.at[0, 0].add(jnp.where(struck, jnp.nan, 0.0))
    return bound, gradient._replace(q=gradient.q._replace(dynamics=gradient.q.dynamics._replace(uxT=uxT)))


def always_nan(model, y, mask, *, num_data, key, counted=None):
    bound, gradient = svae.value_and_grad(model, y, mask, num_data=num_data, key=key, counted=counted)
    return bound, jax.tree.map(lambda leaf: leaf * jnp.nan, gradient)


def arrays(model):
    return jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))


def all_finite(model):
    return all(np.isfinite(np.asarray(leaf)).all() for leaf in arrays(model))


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(arrays(a), arrays(b), strict=True))


@pytest.fixture(scope="module")
def struck():
    return list(svae.fit(model_of("lds"), DATA, key=jax.random.key(3), estimator=poisoned_lds))


def test_a_nan_in_the_gradient_rolls_back_and_names_its_leaf_and_batch(struck):
    failed = [i for i, step in enumerate(struck) if step.note]
    training = [step for step in struck if step.phase == "fit"]
    assert 0 < len(failed) < len(training)
    for i in failed:
        assert "q.dynamics.uxT of the gradient" in struck[i].note
        assert f"step {struck[i].step - 1 - OPTIONS['warmup_steps']}, restart 0, batch " in struck[i].note
        assert same(struck[i].model, struck[i - 1].model)


def test_it_goes_on_after_a_nan(struck):
    assert all(all_finite(step.model) for step in struck)
    training = [step for step in struck if step.phase == "fit"]
    moved = [not same(a.model, b.model) for a, b in itertools.pairwise(training)]
    assert [not step.note for step in training[1:]] == moved
    assert np.isfinite(training[-1].held_out) and np.isfinite([step.bound for step in training]).all()


def test_endless_failure_ends_in_one_sentence():
    with pytest.raises(svae.FitError, match=r"failed again and again .* lower learning_rate"):
        list(svae.fit(model_of("lds", steps=30), DATA, estimator=always_nan))


def test_same_seed_same_bounds_bit_by_bit():
    runs = [[step.bound for step in svae.fit(model_of("lds"), DATA)] for _ in range(2)]
    np.testing.assert_array_equal(*runs)


@pytest.fixture(scope="module")
def restarts():
    return list(svae.fit(model_of("gmm", restarts=2, steps=10), DATA))


def test_the_restart_with_the_better_held_out_bound_is_kept(restarts, monkeypatch):
    """Restarts run as one program; what `_held_out` says of each decides."""
    assert all_finite(restarts[-1].model) and np.isfinite(restarts[-1].held_out)
    assert restarts[-1].model.q.x.m.shape == (2, 2)  # one model, not a stack of them
    last = {}
    for better in (0, 1):
        told = np.where(np.arange(2) == better, -1.0, -2.0)
        monkeypatch.setattr(_fit, "_held_out", lambda *_, told=told: told)
        last[better] = list(svae.fit(model_of("gmm", restarts=2, steps=10), DATA))[-1]
    assert last[0].held_out == last[1].held_out == -1.0
    assert not same(last[0].model, last[1].model)
    assert sum(same(step.model, restarts[-1].model) for step in last.values()) == 1


def test_a_warm_start_is_finite_and_has_found_states(restarts):
    warm = [step for step in restarts if step.phase == "warm-up"]
    assert len(warm) == 2 * (OPTIONS["warmup_steps"] + 1)
    assert all(all_finite(step.model) for step in warm)
    counts = np.asarray(warm[-1].model.q.weights.counts)
    frames = sum(map(len, DATA)) - 8  # one recording is held out
    assert counts.sum() == pytest.approx(frames + 1.0, rel=1e-4) and counts.min() > 1
