"""The warm-up of a fit: PCA, a short VAE, then q(theta) from its latents. A function of the seed and the data."""

import dataclasses
import time
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from svae._compiling import briefly
from svae._one_thread import in_one_thread, one_thread
from svae.bound import value_and_grad
from svae.data import Beside, Recordings, batch, windows
from svae.data.beside import counted_of, joined
from svae.data.views import sample_frames
from svae.devices import agreed, local, replicated
from svae.fitting import initialize, updates
from svae.fitting.duration import settled
from svae.fitting.prepare import Prepared, sizes
from svae.fitting.program import pick, stack, take, take_one
from svae.fitting.scree import Scree
from svae.fitting.steps import Step, batch_at, failure, give_up, mesh_for, report
from svae.model import SVAE
from svae.nets import Places
from svae.pgm import Normal, graph
from svae.starting import Null, compared, unknown

MOST_FRAMES = 2**13  # in one batch of warm latents
PCA_FRAMES = 4000
STATE_FRAMES = 2**15  # enough to find states on
HURRIED = "the search for states was cut short, to keep time for the fit and its answers"
OVERRULED = "no states that explain these data last {:,.0f} frames in the mean: they are found without that target"
LEAST_SHARE = 1e-3  # of a search that has begun and is not done
STRETCH = 2**11  # frames, of which so many are taken, spread over longer data


class Warm(NamedTuple):
    """How far the warm-up of a restart had come: its networks are warm, and perhaps its states found."""

    model: SVAE
    has_states: bool


def warm_up(
    model: SVAE,
    data: Prepared,
    key: PRNGKeyArray,
    restart: int,
    before: Warm | None,
    how: updates.How,
    hurries: Callable[[], bool],
) -> Iterator[Step]:
    """The steps of one restart, those that it has `before` left out; the model of the last has networks and states."""
    scree = None
    if before is None:
        model, scree = yield from _networks(model, data, key, restart, how)
    elif before.has_states:
        yield _of_states(before.model, restart, 1.0)
        return
    else:
        model = before.model
    first = _of_states(model, restart, 0.0)  # before what may take a while
    yield first if restart else first._replace(scree=scree)
    found = _latents(_with_standard(model), model.places, data.train)
    answers: list[bool] = []

    def asked():
        answers.append(hurries())
        return answers[-1]

    search = initialize.search_latents(model, *found, seed=model.config.seed + restart, hurries=asked)
    for step in _searched(model, data, in_one_thread(search), restart):
        done = step.share == 1.0
        null = _null(model, found.latents, asked) if done and restart == 0 else None
        note = HURRIED if done and any(answers) else ""
        yield step._replace(note=" ".join(filter(None, [note, step.note])), null=null)


def _null(model: SVAE, latents: list[np.ndarray], hurries: Callable[[], bool]) -> Null:
    """Whether the latents have states and dynamics at all."""
    pgm = model.pgm
    states = pgm.states if pgm.chained else 1
    if states == 1 and not pgm.dynamic:
        return unknown("in this model no frame depends on the one before")
    if hurries():
        return unknown("the time was short")
    with one_thread():
        return compared(latents, states, dynamic=pgm.dynamic, seed=model.config.seed)


def _searched(
    model: SVAE, data: Prepared, search: Generator[float, None, initialize.Searched], restart: int
) -> Iterator[Step]:
    """A step for each share of the search, and the last one with the model that was found, its bouts settled."""
    while True:
        try:
            share = next(search)
        except StopIteration as ended:
            found, starts = ended.value
            asked = model.config.target_duration
            followed = asked if starts is None else starts.duration
            note = OVERRULED.format(asked) if asked is not None and followed is None else ""
            found = pick(settled(agreed(stack([found])), data, followed), 0)
            yield _of_states(found, restart, 1.0)._replace(starts=starts, note=note)
            return
        yield _of_states(model, restart, min(max(share, LEAST_SHARE), 1 - LEAST_SHARE))


def _of_states(model: SVAE, restart: int, share: float) -> Step:
    config = model.config
    done, total = (restart + 1) * config.warmup_steps, config.restarts * config.warmup_steps + config.steps
    return Step(done, total, "states", model, np.nan, np.nan, 0, np.nan, "", share=share)


def _networks(
    model: SVAE, data: Prepared, key: PRNGKeyArray, restart: int, how: updates.How
) -> Generator[Step, None, tuple[SVAE, Scree]]:
    """The steps of a short VAE from PCA; gives the model with its networks, and what the components hold."""
    config, seed = model.config, model.config.seed + restart
    found = initialize.pca_for(model, sample_frames(data.train, PCA_FRAMES, seed))
    model, scree = initialize.at_pca(model, found), initialize.scree(model, found)
    said = initialize.dimensions_note(found, config.latent_dim)
    simple = _with_standard(model)
    how = how._replace(estimator=value_and_grad)
    state = updates.init(simple, how.of(config))
    totals, first, mesh = sizes(data), restart * config.warmup_steps, mesh_for(data, config)
    placed = replicated((simple, state), mesh)
    for i in range(config.warmup_steps):
        started = time.monotonic()
        piece = batch_at(data, config, i)
        taken = take(take_one, placed, piece, (jax.random.fold_in(key, i),), totals, how, mesh)
        placed, taken = (taken.model, taken.state), local(taken)
        note = failure(taken, i, data, config)
        give_up(taken.state.damping, i, note)
        told = report(first + i, model, taken.bound, data, time.monotonic() - started, piece, "warm-up")
        yield told._replace(note=note or (said if first + i == 0 else ""))
    simple = local(placed[0])
    return eqx.tree_at(lambda m: (m.recognize, m.observe), model, (simple.recognize, simple.observe)), scree


def _with_standard(model: SVAE) -> SVAE:
    """The model with latents ~ N(0, I) in place of its own."""
    pgm = graph(x=Normal(model.config.latent_dim, learned=False))
    return dataclasses.replace(model, pgm=pgm, q=pgm.prior, places=None)


class Found(NamedTuple):
    """What a search for states is given, for each stretch of frames."""

    latents: list[np.ndarray]
    places: list[np.ndarray] | None
    beside: Beside  # a list of each


def _latents(model: SVAE, places: Places | None, data: Recordings) -> Found:
    """Posterior means and places of the training frames, or of stretches spread over all of them, window by window."""
    everything = data.frames <= STATE_FRAMES
    length = min(max(map(len, data.sequences)), MOST_FRAMES if everything else STRETCH)
    table = windows(data, length, max(1, model.config.overlap))
    number = len(table.first) if everything else min(len(table.first), STATE_FRAMES // length)
    rows, size = np.linspace(0, len(table.first) - 1, number).astype(int), max(1, min(number, MOST_FRAMES // length))
    breaks = rows - np.arange(number)  # the same for windows that follow each other
    found: dict[tuple[int, int], list] = {}
    beside: dict[tuple[int, int], list] = {}
    for first in range(0, number, size):
        here = rows[first : first + size]
        piece = batch(data, table, np.resize(here, size))  # one shape, one program
        x = np.asarray(_guess(model, places, piece.y, piece.mask))
        for n, (row, stretch, counted) in enumerate(zip(here, breaks[first:], piece.counted, strict=False)):
            own = int(table.recording[row]), int(stretch)
            found.setdefault(own, []).append(x[n][counted])
            beside.setdefault(own, []).append(counted_of(piece.beside, n, counted))
    both, D = [np.concatenate(parts) for parts in found.values()], model.config.latent_dim
    whole = [joined(parts) for parts in beside.values()]
    listed = Beside(*(None if kind[0] is None else list(kind) for kind in zip(*whole, strict=True)))
    return Found([x[:, :D] for x in both], None if places is None else [x[:, D:] for x in both], listed)


@briefly
def _guess(model, places, y, mask):
    """Posterior means (B, T, D), and places beside them."""
    x = jax.vmap(lambda y, mask: model.pgm.infer(model.q, model.recognize(y, mask), mask).mean())(y, mask)
    return x if places is None else jnp.concatenate([x, jax.vmap(places.place)(y)], -1)
