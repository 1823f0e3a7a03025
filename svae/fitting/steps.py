"""Around the program of a step: which batch it takes, what is said when it fails, and what is reported of it."""

import functools
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from svae import _reprs
from svae.data import Batch, batch, epoch_order
from svae.devices import mesh, own
from svae.fitting.prepare import FitError, Prepared
from svae.fitting.program import Taken
from svae.model import SVAE

IN_USE = 0.01  # a state is in use when it takes this share of the frames
SMALLEST_DAMPING = 1e-6  # about 20 failures in a row


class Parts(NamedTuple):
    """The bound = log_likelihood - local_kl - global_kl - weights_kl, in nats per frame."""

    log_likelihood: float
    local_kl: float
    global_kl: float
    weights_kl: float


class Step(NamedTuple):
    """One step of a fit; bounds are nats per frame in the units of the data."""

    step: int
    total: int
    phase: str  # "warm-up", "states" (q(theta) from the warm networks), "start" (measured), "fit", "end" (cut short)
    model: SVAE  # of the best restart so far; of the last step: the model that the fit returns
    bound: float  # estimated from this step's batch
    held_out: float  # of held-out recordings, without the global KL; NaN where it was not measured
    states_in_use: int
    frames_per_second: float
    note: str  # what a person should be told, else ""
    state: Any = None  # FitState: all that `fit(resume=...)` needs to go on from here; None in the warm-up
    parts: Parts | None = None  # of the bound
    restarts: tuple[float, ...] = ()  # the held-out bound of every restart, where it was measured
    labels: Any = None  # (T,) states of a held-out stretch by the best restart, where it was measured
    blocks: tuple[float, ...] = ()  # the held-out bound of successive parts of the frames, where it was measured
    share: float | None = None  # of the search for states that is done; at 1 the model has them
    starts: Any = None  # Starts: how far the starts of that search agree, once it is done
    null: Any = None  # Null: the first restart's latents beside others without states, once it is done
    scree: Any = None  # Scree: what principal components hold, before the first restart's search begins

    def __repr__(self) -> str:
        return _reprs.step_text(self)

    def _repr_html_(self) -> str:
        return _reprs.step_html(self)


def mesh_for(data: Prepared, config):
    """The devices that share a batch."""
    return mesh(min(config.batch_size, len(data.table.first)))


# --- the order of the data ----------------------------------------------------------------------------------------


def batch_at(data: Prepared, config, step: int) -> Batch:
    """The batch of a step: a function of the seed and the step alone, so that a fit can go on from any step.

    A process reads only the rows of its own devices.
    """
    epoch, number = divmod(step, batches_of_epoch(data, config))
    rows = _order(len(data.table.first), config.batch_size, config.seed, epoch)[number]
    return batch(data.train, data.table, own(rows))


def batches_of_epoch(data: Prepared, config) -> int:
    """Full batches in an epoch."""
    return max(1, len(data.table.first) // config.batch_size)


@functools.lru_cache(maxsize=2)
def _order(windows: int, batch_size: int, seed: int, epoch: int) -> np.ndarray:
    return epoch_order(windows, batch_size, seed=seed, epoch=epoch)


# --- what is told -------------------------------------------------------------------------------------------------


def report(i: int, model: SVAE, bound: Any, data: Prepared, seconds: float, piece: Batch, phase: str) -> Step:
    """Step i of a phase, counted from 0; `bound` is of one restart."""
    config, usage = model.config, np.asarray(bound.usage)
    value = float(np.asarray(bound.bound)) / data.train.frames - data.log_volume
    speed = float(piece.counted.sum()) * jax.process_count() * config.restarts / max(seconds, 1e-9)
    in_use = int(np.sum(usage > IN_USE * max(usage.sum(), 1e-9)))
    warm = config.warmup_steps * config.restarts
    done = i + 1 + (warm if phase == "fit" else 0)
    return Step(done, warm + config.steps, phase, model, value, np.nan, in_use, speed, "", parts=_parts(bound, data))


def _parts(bound: Any, data: Prepared) -> Parts:
    """Per frame, in the units of the data."""
    found = Parts(*(float(np.asarray(getattr(bound, name))) / data.train.frames for name in Parts._fields))
    return found._replace(log_likelihood=found.log_likelihood - data.log_volume)


def failure(taken: Taken, i: int, data: Prepared, config) -> str:
    """One sentence when a step was not finite: the leaf, the restart, and the batch."""
    finite = np.atleast_2d(np.asarray(taken.finite.each))
    good = np.atleast_1d(np.asarray(taken.good)) & finite[:, taken.finite.names.index("bound")]
    if good.all():
        return ""
    restart = int(np.argmin(good))
    bad = [name for name, fine in zip(taken.finite.names, finite[restart], strict=True) if not fine]
    what = f"{bad[0]} of the gradient" if bad and bad[0] != "bound" else "the bound" if bad else "the model after it"
    others = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    epoch, number = divmod(i, batches_of_epoch(data, config))
    where = f"step {i}, restart {restart}, batch {number} of epoch {epoch}"
    return f"{where}: {what}{others} was not finite; kept the last good model and halved the step."


def give_up(damping: Array, i: int, note: str) -> None:
    """Raise when no restart has had a finite step for long."""
    if not np.any(np.asarray(damping) > SMALLEST_DAMPING):
        raise FitError(f"step {i} failed again and again ({note}) lower learning_rate and natural_step.")
