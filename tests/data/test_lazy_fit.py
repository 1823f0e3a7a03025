"""Views and preprocessing all the way through fit, queries and store."""

import dataclasses

import equinox as eqx
import jax
import numpy as np
import pytest

import svae
from svae import data
from svae.config import Config
from svae.data import views

OPTIONS = dict(model="vae", latent_dim=2, hidden=(4,), steps=2, warmup_steps=1, batch_size=3, window=20, overlap=2)  # noqa: C408


def points(T=90, seed=0):
    rng = np.random.default_rng(seed)
    body = np.array([[4.0, 0], [1, 1], [1, -1], [-4, 0.5]])
    heading = np.cumsum(rng.normal(size=T) * 0.2)
    turned = np.stack([np.cos(heading), -np.sin(heading), np.sin(heading), np.cos(heading)], 1).reshape(T, 2, 2)
    y = np.einsum("tij,pj->tpi", turned, body) + np.cumsum(rng.normal(size=(T, 1, 2)), 0)
    return y + 0.1 * rng.normal(size=y.shape)


def last(model, given):
    *_, step = svae.fit(model, given)
    return step


def arrays(model):
    return jax.tree.leaves(eqx.filter(model, eqx.is_array))


@pytest.fixture
def never_settled(monkeypatch):
    monkeypatch.setattr(views, "KEPT_BYTES", -1)


def test_a_fit_to_a_file_is_the_fit_to_its_array_bit_for_bit(tmp_path, never_settled):
    y = points().reshape(90, 8)
    np.save(tmp_path / "a.npy", y)
    lazily = svae.load(tmp_path / "a.npy")
    assert isinstance(data.settled(lazily).sequences[0], data.View)
    model = svae.make((8,), **OPTIONS)
    a, b = last(model, lazily), last(model, {"a": y})
    assert a.bound == b.bound and a.held_out == b.held_out
    assert all(np.array_equal(x, z) for x, z in zip(arrays(a.model), arrays(b.model), strict=True))
    one, other = svae.infer(a.model, lazily), svae.infer(b.model, {"a": y})
    assert all(np.array_equal(x, z) for x, z in zip(one.mean, other.mean, strict=True))


def test_preprocessing_is_part_of_the_model(tmp_path):
    y = points()
    records = svae.load({"a": y})
    p = data.find_preprocess(records, Config())
    assert p.kind == "keypoints"
    model = last(svae.make(p.shape((4, 2)), preprocess=p, **OPTIONS), records).model
    svae.save(model, tmp_path / "m")
    loaded = svae.load_model(tmp_path / "m")
    assert loaded.preprocess == p
    plain = dataclasses.replace(model, preprocess=data.Preprocess())
    by_hand = svae.infer(plain, {"a": p.apply(y)}).mean[0]
    elsewhere = y @ np.array([[0.0, 1], [-1, 0]]) + 500.0
    for given in (y, records, elsewhere):
        np.testing.assert_allclose(svae.infer(loaded, given).mean[0], by_hand, atol=2e-3)
    assert svae.reconstruct(loaded, y).frames[0].shape == (90, 4, 2)
    with pytest.raises(svae.DataError, match="The model is for 4 points, the data have 3"):
        svae.infer(loaded, y[:, :3])


def test_long_recordings_are_cut_into_windows_of_bounded_memory(monkeypatch):
    from svae.fitting import prepare

    monkeypatch.setattr(prepare, "NUMBERS", 64 * 200)
    monkeypatch.setattr(prepare, "WINDOWED", 64 * 200)
    y = points(900).reshape(900, 8)
    free = {name: value for name, value in OPTIONS.items() if name not in ("window", "overlap")} | {"model": "lds"}
    _, prepared, _ = prepare.prepare(svae.make((8,), **free), y)
    assert 100 <= prepared.table.length <= 100 + 20 and len(prepared.table.first) == 9
    _, short, _ = prepare.prepare(svae.make((8,), **free), y[:40])
    assert short.table.length == 36
