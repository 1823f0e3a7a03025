"""A fit survives what goes wrong on the way, says what it was, and can be repeated bit by bit."""

import dataclasses
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import svae
from svae import store
from svae.data import recordings
from svae.fitting import duration, held_out, initialize, loop, program
from svae.fitting.prepare import prepare

OPTIONS = dict(latent_dim=2, states=2, hidden=(4,), steps=12, warmup_steps=2, batch_size=2, held_out=0.2)  # noqa: C408
DATA = [np.random.default_rng(i).normal(size=(8, 3)).cumsum(0) for i in range(5)]


def model_of(kind, **options):
    return svae.make((3,), model=kind, **(OPTIONS | options))


def poisoned_lds(model, y, mask, *, num_data, key, counted=None):
    """Algorithm 1, but about one step in four a NaN falls into one leaf of the natural gradient."""
    bound, gradient = svae.value_and_grad(model, y, mask, num_data=num_data, key=key, counted=counted)
    struck = jax.random.uniform(jax.random.fold_in(key, 7)) < 0.25
    uxT = lambda g: g.q.x.dynamics.uxT  # noqa: E731
    return bound, eqx.tree_at(uxT, gradient, uxT(gradient).at[0, 0].add(jnp.where(struck, jnp.nan, 0.0)))


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
        assert "q.x.dynamics.uxT of the gradient" in struck[i].note
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


def measured(bounds):
    return [held_out.HeldOut(float(bound), np.zeros(0, int)) for bound in bounds]


@pytest.fixture(scope="module")
def restarts():
    return list(svae.fit(model_of("gmm", restarts=2, steps=10), DATA))


def test_the_restart_with_the_better_held_out_bound_is_kept(restarts, monkeypatch):
    """Restarts run as one program; what `_held_out` says of each decides."""
    assert all_finite(restarts[-1].model) and np.isfinite(restarts[-1].held_out)
    assert restarts[-1].model.q.x.normal.m.shape == (2, 2)  # one model, not a stack of them
    last = {}
    for better in (0, 1):
        told = np.where(np.arange(2) == better, -1.0, -2.0)
        monkeypatch.setattr(loop, "_held_out", lambda *_, told=told: measured(told))
        last[better] = list(svae.fit(model_of("gmm", restarts=2, steps=10), DATA))[-1]
    assert last[0].held_out == last[1].held_out == -1.0
    assert not same(last[0].model, last[1].model)
    assert sum(same(step.model, restarts[-1].model) for step in last.values()) == 1


def test_a_warm_start_is_finite_and_has_found_states(restarts):
    warm = [step for step in restarts if step.phase != "fit"]
    phases = ["warm-up"] * OPTIONS["warmup_steps"] + ["states"] * 2  # said before states are found, and after
    assert [step.phase for step in warm] == [*2 * phases, "start"]
    assert all(all_finite(step.model) for step in warm)
    counts = np.asarray(warm[-1].model.q.z.weights.counts)
    frames = sum(map(len, DATA)) - 8  # one recording is held out
    assert counts.sum() == pytest.approx(frames + 1.0, rel=1e-4) and counts.min() > 1


class Squashed(eqx.Module):
    """A part of a model with a leaf that is no array."""

    scale: jax.Array
    squash: object


def test_a_model_is_its_arrays_and_a_rest_that_is_compared_by_value():
    """Two fits of such models share one program."""
    one, other = (Squashed(jnp.full(2, value), jnp.tanh) for value in (1.0, 2.0))
    arrays, rest = program._arrays_and_rest(one)
    assert rest == program._arrays_and_rest(other)[1] and hash(rest) == hash(program._arrays_and_rest(other)[1])
    assert rest != program._arrays_and_rest(Squashed(jnp.ones(2), jnp.sin))[1]
    assert eqx.tree_equal(program._whole(arrays, rest), one)
    model = model_of("lds")
    assert program._arrays_and_rest(model) == (model, None)


def test_what_a_step_gives_does_not_depend_on_who_waits_for_it(struck):
    """The next step runs while one is told: a fit that is left in the middle has told the same."""
    steps = svae.fit(model_of("lds"), DATA, key=jax.random.key(3), estimator=poisoned_lds)
    left = [next(steps) for _ in range(7)]
    steps.close()
    assert [step.bound for step in left[3:]] == [step.bound for step in struck[3:7]]
    assert same(left[-1].state, struck[6].state)


# ---- going on


def through_arrays(state):
    """The state as it comes back from a file: named arrays in the skeleton of a fresh one."""
    fresh = model_of("lds")
    skeleton = eqx.filter_eval_shape(lambda: loop.start(program.stack([fresh])))
    return store.filled(skeleton, store.arrays_of(state))


def test_a_resumed_fit_goes_on_bit_by_bit(struck):
    """Also in the middle of an epoch, after a failure and with a damped step."""
    training = [step for step in struck if step.phase == "fit"]
    for at in (0, 3, 10):
        state = through_arrays(training[at].state)
        rest = list(svae.fit(model_of("lds"), DATA, key=jax.random.key(3), estimator=poisoned_lds, resume=state))
        assert [step.step for step in rest] == [step.step for step in training[at + 1 :]]
        for again, before in zip(rest, training[at + 1 :], strict=True):
            np.testing.assert_array_equal([again.bound, again.held_out], [before.bound, before.held_out])
            assert again.note == before.note and same(again.state, before.state)
    assert list(svae.fit(model_of("lds"), DATA, resume=training[-1].state)) == []


def test_patience_stops_early_and_gives_back_the_best_model(monkeypatch):
    """The held-out bound is told here: it rises to the third measurement and never again."""
    told = iter([-6.0, -5.0, -4.0, -3.0, -3.5, np.nan, -3.0, -1.0])
    monkeypatch.setattr(loop, "_held_out", lambda *_: measured([next(told)]))
    steps = [s for s in svae.fit(model_of("lds", patience=3), DATA) if s.phase == "fit"]
    assert len(steps) == 6 and "stopped early" in steps[-1].note and "since step 3" in steps[-1].note
    assert same(steps[-1].model, steps[2].model) and not same(steps[-1].model, steps[4].model)
    assert same(steps[-1].model, loop.final_model(steps[-1].state)) and loop.finished(steps[-1].state)
    assert [s.held_out for s in steps][:4] == [-5.0, -4.0, -3.0, -3.5] and not any(s.note for s in steps[:-1])


def test_a_very_small_gain_is_kept_and_leaves_patience_as_it_is(monkeypatch):
    """What hardly rises ends a fit no earlier and no later; measurements without any gain do."""
    told = iter([-6.0, -5.0, -4.99, -5.2, -4.98, -4.975, -5.0, -1.0])
    monkeypatch.setattr(loop, "_held_out", lambda *_: measured([next(told)]))
    steps = [s for s in svae.fit(model_of("lds", patience=2), DATA) if s.phase == "fit"]
    assert [int(s.state.waited) for s in steps] == [0, 0, 1, 1, 1, 2]
    assert int(steps[-1].state.best_done) == 5 and "since step 5" in steps[-1].note


def test_all_measurements_of_a_fit_are_at_the_same_draws(monkeypatch):
    keys = []
    told = lambda model, held, *, key: keys.append(jax.random.key_data(key).tolist()) or measured([0.0])[0]  # noqa: E731
    monkeypatch.setattr(loop, "held_out_bound", told)
    list(svae.fit(model_of("lds"), DATA))
    assert len(keys) == OPTIONS["steps"] + 1 and all(key == keys[0] for key in keys)


def test_a_fit_whose_batch_holds_all_frames_is_measured_more_often():
    """Every 25 steps in place of 100, unless a tenth of the steps is less."""
    y = np.random.default_rng(0).normal(size=(400, 3))
    for window, batch_size, steps, often in (
        (40, 10, 1000, 25),
        (40, 3, 1000, 100),
        (40, 7, 1000, 100),
        (40, 3, 500, 50),
        (40, 10, 50, 5),
    ):
        model = model_of("lds", window=window, overlap=2, batch_size=batch_size, steps=steps)
        _, data, _ = prepare(model, y)
        assert loop.between_measurements(model.config, data) == often


def test_without_patience_the_last_model_is_given(struck):
    assert len([s for s in struck if s.phase == "fit"]) == OPTIONS["steps"]
    assert same(struck[-1].model, program.pick(struck[-1].state.models, 0))


def test_held_out_in_windows_is_nearly_that_of_whole_recordings(struck, monkeypatch):
    """A recording too long for the memory is seen through windows with context."""
    model = struck[-1].model
    held = recordings([np.random.default_rng(9).normal(size=(600, 3)).astype(np.float32)])
    found = held_out.held_out_bound(model, held, key=jax.random.key(0))
    whole = found.bound
    assert len(found.blocks) == 10 and found.blocks.mean() == pytest.approx(whole, abs=1e-4)
    monkeypatch.setattr(held_out, "NUMBERS", 1)
    assert held_out.window_and_batch(model, 600) == (256, 1)
    assert held_out.held_out_bound(model, held, key=jax.random.key(0)).bound == pytest.approx(whole, abs=0.15)


# ---- target duration


def sticky(step):
    """Prior counts on staying in a state, beyond those on any other."""
    counts = np.asarray(step.state.models.pgm.prior.z.transitions.counts[0])
    return counts[0, 0] - counts[0, -1]


def test_the_stickiness_stays_while_a_model_is_fitted():
    options = {"target_duration": 6.0, "states": 2, "network": "affine", "steps": 6}
    counts = [sticky(s) for s in svae.fit(model_of("hmm", **options), DATA) if s.phase == "fit"]
    assert counts == counts[:1] * 6


def test_a_move_that_loses_a_state_is_taken_back():
    """Bouts of 4 frames, and a target that only one state for everything could reach."""
    z = np.tile(np.repeat([0, 1], 4), 8)
    y = 2.0 * z[:, None] - 1 + 0.3 * np.random.default_rng(0).normal(size=(64, 3))
    model, prepared, _ = prepare(model_of("hmm", target_duration=60.0, network="affine"), [y] * 5)
    q = model.pgm.initialize([y[:, :2]] * 5, [np.eye(2)[z]] * 5)
    models = program.stack([dataclasses.replace(model, q=q)])
    assert duration.paths(models, prepared).shared[0] > 1.9
    assert duration.paths(duration.settled(models, prepared, 60.0), prepared).shared[0] > 1.7


def test_bouts_are_brought_near_the_target_before_the_first_step():
    """Frames jump between two places every 4 frames, and too high a price of a switch hides the jumps."""
    y = np.tile(np.repeat([-1.0, 1.0], 4), 8)[:, None] + 0.6 * np.random.default_rng(0).normal(size=(64, 3))
    options = {"target_duration": 4.0, "network": "affine"}
    model, prepared, _ = prepare(model_of("hmm", **options), [y] * 5)
    models = program.stack([initialize.at_latents(model, [y[:, :2]] * 5, None, seed=0)])
    wrong = duration.with_factor(models, jnp.array([1e6]))
    right = duration.settled(wrong, prepared, 4.0)
    away = [abs(np.log(duration.paths(m, prepared).bout_frames / 4.0)) for m in (wrong, right)]
    assert away[0] > 1.0 and away[1] < duration.CLOSE


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_a_factor_on_the_sticky_counts_moves_prior_and_q_alike(factor):
    models = program.stack([model_of("hmm", stickiness=8.0)] * 2)
    moved = duration.with_factor(models, jnp.array([factor, 1.0]))
    before, after = (np.asarray(m.pgm.prior.z.transitions.counts) for m in (models, moved))
    np.testing.assert_allclose(after[0] - before[0], 8.0 * (factor - 1) * np.eye(2), rtol=1e-6)
    np.testing.assert_array_equal(after[1], before[1])
    q_before, q_after = (np.asarray(m.q.z.transitions.counts) for m in (models, moved))
    np.testing.assert_allclose(q_after - q_before, after - before, rtol=1e-6)
