"""The paper's experiments on mice in small: the files are whole, and a figure shows the bouts that it should."""

import json

import numpy as np
import pytest

from svae import Step
from svae.config import ConfigError
from svae.data import DataError
from svae.experiments import _predictions, mouse, syllables
from svae.experiments._figures import style
from svae.experiments._videos import network, recorded
from svae.progress import quiet

TINY = mouse.Settings(
    sequences=4, length=24, latent_dim=2, steps=1, window=8, overlap=1, context=12, horizon=11, places=3, grid=3
)


def unchanged(model, data):
    """The steps of a fit that leaves its model as it is: `fit` has tests of its own, and takes long to compile."""
    yield Step(1, 1, "fit", model, 0.0, np.nan, 1, 1.0, "")


def test_mouse_writes_figures_numbers_and_a_model(tmp_path, monkeypatch):
    monkeypatch.setattr(mouse, "fit", unchanged)
    monkeypatch.setattr(_predictions, "DRAWS", 4)
    monkeypatch.setattr(mouse, "FUTURES", 4)  # the same program: one less to compile
    found = mouse.run(tmp_path, seed=0, progress=quiet, settings=TINY)
    for name in ("manifold", "predictions", "horizons"):
        assert (tmp_path / f"{name}.png").stat().st_size > 5000 and (tmp_path / f"{name}.pdf").stat().st_size > 5000
    assert json.loads((tmp_path / "numbers.json").read_text()) == found
    assert list(found["rmse"]) == ["svae", "repeat", "pca(2)+var(1)"] and found["training_frames"] == 3 * 24
    assert {len(by_horizon) for by_horizon in found["rmse_by_horizon"].values()} == {TINY.horizon}
    assert (tmp_path / "model" / "manifest.json").exists()


def test_syllables_shows_true_actions_as_its_states(tmp_path):
    video = recorded(None, sequences=4, length=90, seed=0)
    with style():
        syllables.draw(tmp_path, video, video.raw, list(video.labels))
    used = np.unique(video.labels)
    assert len(list((tmp_path / "states").glob("*.png"))) == len(used)
    assert (tmp_path / "syllables.png").stat().st_size > 20_000
    commonest = int(np.argmax(np.bincount(video.labels.reshape(-1))))
    told = syllables.title(commonest, video, list(video.labels), syllables._bouts.bouts(list(video.labels)))
    assert told.startswith(f"state {commonest}: ") and told.endswith(f"mostly {video.names[commonest]}")


def test_the_square_is_there_exactly_while_the_state_is():
    y = np.zeros((60, 10, 10))
    scale = syllables._strips.Scale(0.0, 1.0, slice(None), slice(None))
    row = syllables._row(y, syllables._bouts.Stretch(0, 0, 20, 32), 4, scale)
    frames = np.nan_to_num(row[:, : 9 * 11 - 1])
    assert [bool(frames[:, 11 * i : 11 * i + 10].any()) for i in range(9)] == [False] * 3 + [True] * 3 + [False] * 3


def test_long_bouts_are_shown_with_longer_strides():
    assert syllables.stride(10.0) == syllables.EVERY and syllables.stride(120.0) == 10


def test_networks_and_settings_are_those_of_the_paper():
    assert network("mlp") == {"network": "residual", "hidden": (200, 200)} and network("conv")["network"] == "conv"
    assert mouse.SETTINGS.latent_dim == syllables.SETTINGS.latent_dim == 10 and syllables.SETTINGS.states == 30


def test_only_video_is_taken(tmp_path):
    np.save(tmp_path / "walk.npy", np.zeros((50, 4), np.float32))
    with pytest.raises(DataError, match="about video"):
        recorded(str(tmp_path / "walk.npy"), sequences=1, length=1, seed=0)


def test_data_are_refused_where_they_would_be_ignored(tmp_path):
    from svae.cli.experiments import paper

    with pytest.raises(ConfigError, match="dots makes its own data"):
        paper("dots", data="walk.npy", out=tmp_path)


@pytest.mark.slow
def test_syllables_fits_a_run_folder(tmp_path):
    tiny = syllables.Settings(3, 60, states=4, latent_dim=2, warmup_steps=2, steps=2, batch_size=2, window=20)
    found = syllables.run(tmp_path, seed=0, progress=quiet, settings=tiny)
    assert json.loads((tmp_path / "numbers.json").read_text()) == found and -1 <= found["ari"] <= 1
    run = syllables.runs.Run(tmp_path / "run")
    assert run.provenance()["status"] == "finished" and len(run.load_data().sequences) == 3


@pytest.mark.slow
def test_mouse_foretells_better_than_the_last_frame(tmp_path):
    """As it is by default; under ten minutes on 2 cores."""
    found = mouse.run(tmp_path, seed=0, progress=quiet)
    one = {name: values["1 frame"] for name, values in found["rmse"].items()}
    assert min(one, key=one.get) == "svae"
    assert found["rmse"]["svae"]["30 frames"] < found["rmse"]["repeat"]["30 frames"]
