"""Which frames a fit finds its states on."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import svae
from svae.data import recordings
from svae.fitting import warm_up


def latents_of(data, monkeypatch, most, stretch):
    """Latents that are the frames themselves."""
    model = svae.make((1,), model="slds", states=2, latent_dim=1)
    monkeypatch.setattr(warm_up, "STATE_FRAMES", most)
    monkeypatch.setattr(warm_up, "STRETCH", stretch)
    monkeypatch.setattr(warm_up, "_guess", eqx.filter_jit(lambda model, places, y, mask: jnp.asarray(y)))
    return [x[:, 0] for x in warm_up._latents(model, None, data)[0]]


def numbered(*lengths):
    """Recordings whose frames are 0, 1, 2 and so on."""
    frames = np.arange(sum(lengths), dtype=np.float32)[:, None]
    return recordings(np.split(frames, np.cumsum(lengths)[:-1]))


def test_all_frames_of_short_data_recording_by_recording(monkeypatch):
    found = latents_of(numbered(30, 50), monkeypatch, most=80, stretch=8)
    np.testing.assert_array_equal(np.concatenate(found), np.arange(80))
    assert [len(x) for x in found] == [30, 50]


def test_stretches_of_long_data_are_spread_and_never_joined_across_a_gap(monkeypatch):
    found = latents_of(numbered(400, 600), monkeypatch, most=200, stretch=20)
    frames = np.concatenate(found)
    assert len(frames) == len(set(frames)) == 200
    assert frames.min() == 0 and frames.max() == 999
    assert np.histogram(frames, bins=5, range=(0, 1000))[0].min() >= 20
    assert all(np.all(np.diff(x) == 1) for x in found)
    assert all((x < 400).all() or (x >= 400).all() for x in found)
