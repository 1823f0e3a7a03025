"""The demo, small: everything it promises is in the folder."""

import json

import numpy as np

from svae.baselines import KINDS
from svae.experiments import demo
from svae.progress import quiet
from svae.runs import Run

TINY = demo.Settings(
    sequences=4,
    length=60,
    states=3,
    latent_dim=2,
    hidden=(8,),
    warmup_steps=2,
    steps=2,
    batch_size=2,
    window=20,
    overlap=4,
)


def test_run_writes_model_segmentation_figures_and_numbers(tmp_path):
    numbers = demo.run(tmp_path, seed=0, progress=quiet, settings=TINY)
    assert json.loads((tmp_path / "numbers.json").read_text()) == numbers
    assert -1 <= numbers["ari"] <= 1
    assert np.isfinite(numbers["held_out_bound_per_frame"])
    for name in ("demo", "states", "training"):
        assert (tmp_path / f"{name}.png").stat().st_size > 1000
        assert (tmp_path / f"{name}.pdf").stat().st_size > 1000
    assert len((tmp_path / "segmentation.csv").read_text().splitlines()) == 1 + 4 * 60
    run = Run(tmp_path / "run")
    assert run.model().config.model == "slds" and run.load_data().fps == 30
    assert set(numbers["held_out_of_others"]) == set(KINDS)
