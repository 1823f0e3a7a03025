"""The warm-up of a fit: PCA, a short VAE, then q(theta) from its latents. A function of the seed and the data."""

import time
from collections.abc import Iterator

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from svae import _initialize, _optimizer
from svae._elbo import value_and_grad
from svae._model import SVAE
from svae._prepare import Prepared, sizes
from svae._program import take, take_one
from svae._sharding import local, replicated
from svae._steps import Step, batch_at, failure, give_up, mesh_for, report
from svae.data import Recordings, batch, windows
from svae.data.views import sample_frames
from svae.pgm import PGMS

MOST_FRAMES = 2**13  # in one batch of warm latents
PCA_FRAMES = 4000
STATE_FRAMES = 2**15  # enough to find states on
STRETCH = 2**11  # frames, of which so many are taken, spread over longer data


def warm_up(model: SVAE, data: Prepared, key: PRNGKeyArray, restart: int) -> Iterator[Step]:
    """The steps of one restart; the model of the last one has warm networks and states."""
    config, seed = model.config, model.config.seed + restart
    model = _initialize.at_pca(model, sample_frames(data.train, PCA_FRAMES, seed))
    simple = eqx.tree_at(lambda m: (m.pgm, m.q), model, (_standard(config), ()), is_leaf=lambda n: n is None)
    state = _optimizer.init(simple, _optimizer.networks_optimizer(config))
    totals, first, mesh = sizes(data), restart * config.warmup_steps, mesh_for(data, config)
    placed = replicated((simple, state), mesh)
    for i in range(config.warmup_steps):
        started = time.monotonic()
        piece = batch_at(data, config, i)
        taken = take(take_one, placed, piece, (jax.random.fold_in(key, i),), totals, value_and_grad, mesh)
        placed, taken = (taken.model, taken.state), local(taken)
        note = failure(taken, i, data, config)
        give_up(taken.state.damping, i, note)
        told = report(first + i, model, taken.bound, data, time.monotonic() - started, piece, "warm-up")
        yield told._replace(note=note)
    simple = local(placed[0])
    model = eqx.tree_at(lambda m: (m.recognize, m.observe), model, (simple.recognize, simple.observe))
    total = config.restarts * config.warmup_steps + config.steps
    ended = Step(first + config.warmup_steps, total, "states", model, np.nan, np.nan, 0, np.nan, "")
    yield ended  # before what may take a while
    yield ended._replace(model=_initialize.at_latents(model, _latents(simple, data.train), seed=seed))


def _standard(config):
    return PGMS["vae"](config.latent_dim, 1, concentration=1.0, stickiness=0.0)


def _latents(model: SVAE, data: Recordings) -> list[np.ndarray]:
    """Posterior means of the training frames, or of stretches spread over all of them, read window by window."""
    everything = data.frames <= STATE_FRAMES
    length = min(max(map(len, data.sequences)), MOST_FRAMES if everything else STRETCH)
    table = windows(data, length, max(1, model.config.overlap))
    number = len(table.first) if everything else min(len(table.first), STATE_FRAMES // length)
    rows, size = np.linspace(0, len(table.first) - 1, number).astype(int), max(1, min(number, MOST_FRAMES // length))
    breaks = rows - np.arange(number)  # the same for windows that follow each other
    found: dict[tuple[int, int], list] = {}
    for first in range(0, number, size):
        here = rows[first : first + size]
        piece = batch(data, table, np.resize(here, size))  # one shape, one program
        x = np.asarray(_guess(model, piece.y, piece.mask))
        for row, stretch, path, counted in zip(here, breaks[first:], x, piece.counted, strict=False):
            found.setdefault((int(table.recording[row]), int(stretch)), []).append(path[counted])
    return [np.concatenate(parts) for parts in found.values()]


@eqx.filter_jit
def _guess(model, y, mask):
    return jax.vmap(lambda y, mask: model.pgm.infer((), model.recognize(y, mask), mask).x.mean)(y, mask)
