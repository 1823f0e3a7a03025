"""baselines.json: what plain models, and simpler networks, reach on the split of a run."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from svae.baselines import Baselines, baselines
from svae.config import Config
from svae.data import Recordings, recordings
from svae.fitting import loop
from svae.model import SVAE, make, pgm_of
from svae.runs._folder import BASELINES, locked, log, write_json, writing
from svae.runs._run import Run

NETWORKS = {"LDS SVAE": "lds", "VAE": "vae"}  # simpler latent models behind the same networks


def _plain(steps: Iterator, title: str) -> Iterator:
    yield from steps


def write_baselines(run: Run, data: Any, *, networks: bool = False, progress: Callable = _plain) -> dict[str, Any]:
    """Compute them, write baselines.json, and return what it holds.

    The cheap ones never fail: a note says why there are none. With `networks` an LDS SVAE and a VAE are fitted too,
    with the configuration of the run; what an earlier call found of them is kept.

    Args:
        run: A finished run.
        data: The recordings that it was started with.
        networks: Whether to fit simpler models with networks too, which takes minutes.
        progress: Passes their steps on.

    Returns:
        What baselines.json holds.
    """
    data, model, began = recordings(data), run.model(), time.monotonic()
    with locked(run.path):
        found = _cheap(model, data)
        before = (run.baselines() or {}).get("baselines") or {}
        more = _fitted(model, data, progress) if networks else {k: v for k, v in before.items() if k in NETWORKS}
        body = {
            "held_out": run.held_out(),
            "baselines": found.held_out | more,
            "blocks": found.blocks,
            "frames": found.frames,
            "note": found.note,
            "seconds": round(time.monotonic() - began, 1),
        }
        with writing(run.path):
            write_json(run.path / BASELINES, body)
        log(run.path, f"baselines: {found.note or 'done'}")
    return body


def _cheap(model: SVAE, data: Recordings) -> Baselines:
    try:
        return baselines(model, data)
    except Exception as error:  # the fit is done and saved: whatever happens here must not take it back
        return Baselines({}, 0, note=f"they could not be computed: {error}")


def _fitted(model: SVAE, data: Recordings, progress: Callable) -> dict[str, float]:
    """The held-out bound of each simpler latent model."""
    kinds = {name: kind for name, kind in NETWORKS.items() if kind != model.config.model}
    bounds = {name: _bound(model, _simpler(model.config, kind), data, progress, name) for name, kind in kinds.items()}
    return {name: bound for name, bound in bounds.items() if math.isfinite(bound)}


def _simpler(config: Config, kind: str) -> Config:
    """The same with another latent model, without inputs where it has nothing that they drive."""
    plain = dataclasses.replace(config, model=kind, inputs=0)
    return dataclasses.replace(plain, inputs=config.inputs) if pgm_of(plain).dynamic else plain


def _bound(model: SVAE, config: Config, data: Recordings, progress: Callable, name: str) -> float:
    """The held-out bound of the model that a fit with this configuration gives."""
    held = float("nan")
    fresh = make(model.shape, config, preprocess=model.preprocess)
    for step in progress(loop.fit(fresh, data), name):
        if step.held_out == step.held_out:
            held = step.held_out if config.patience is None else max(step.held_out, float(step.state.best_bound))
    return held
