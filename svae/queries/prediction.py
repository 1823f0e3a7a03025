"""Questions about frames that nobody has seen: how a recording goes on, and what the model dreams."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from svae import _reprs, expfam
from svae.config import ConfigError
from svae.data import DataError, Recordings, Standardize, with_inputs
from svae.model import SVAE
from svae.pgm.dynamics import tamed
from svae.queries.batches import at_least_one, by_recording, frame_cost, posterior, prepare
from svae.queries.residuals import carried, residual


class Forecast(NamedTuple):
    """S draws of the H frames that follow each recording, in the units of the data; lists by recording."""

    names: tuple[str, ...]
    samples: list[np.ndarray]  # y (S, H, *event)
    means: list[np.ndarray]  # of each draw (S, H, *event): the same without the noise of the observation
    latents: list[np.ndarray]  # x (S, H, D)
    states: list[np.ndarray]  # z (S, H); 0 for models without discrete states
    blocks: dict[str, list[np.ndarray]]  # z of each discrete block by name, the one in `states` first

    def __repr__(self) -> str:
        return _reprs.answer_text(self)


class Generated(NamedTuple):
    """S recordings of L frames drawn from the model, in the units of the data."""

    samples: np.ndarray  # y (S, L, *event)
    means: np.ndarray  # the same without observation noise
    latents: np.ndarray  # x (S, L, D)
    states: np.ndarray  # z (S, L)
    blocks: dict[str, np.ndarray]  # z of each discrete block by name, the one in `states` first

    def __repr__(self) -> str:
        return _reprs.arrays_text(self)


def forecast(model: SVAE, data: Any, *, horizon: int, samples: int, key: PRNGKeyArray, inputs: Any = None) -> Forecast:
    """Draws of the `horizon` frames after each recording; the recordings are all that it sees.

    Each draw has θ ~ q(θ), γ ~ q(γ) and the last latents ~ `q*(x_T) q*(z_T)` of its own: it integrates over all
    of them.
    What the decoder leaves of the last frame is carried on as far as such residuals last: see `residuals`. Dynamics
    that would grow without bound are held at a spectral radius of 1.

    Args:
        model: A fitted model.
        data: Raw recordings: an array (T, *event), a list or a dict of such, or what `load` returns. NaN is missing.
        horizon: The number of frames to come.
        samples: The number of draws.
        key: The random key of the draws.
        inputs: For each recording, in order or by name, the inputs (horizon, n) of the frames to come, in their own
            units; for a model with inputs they stay as they are in the last frame unless given.

    Returns:
        `Forecast`: draws, their means, latents and states, by recording.

    Examples:
        >>> import jax
        >>> import numpy as np
        >>> import svae
        >>> model = svae.make((2,), model="hmm", states=3, latent_dim=2, hidden=())  # fit it first
        >>> ahead = svae.forecast(model, np.zeros((5, 2)), horizon=3, samples=4, key=jax.random.key(0))
        >>> ahead.samples[0].shape
        (4, 3, 2)
    """
    horizon, samples = at_least_one("horizon", horizon), at_least_one("samples", samples)
    asked = prepare(model, data)
    program = lambda *asked: _forecast(horizon, samples, *asked)  # noqa: E731
    cost = lambda L: (L + samples * horizon) * frame_cost(model)  # noqa: E731
    ahead = () if (by := model.driven) is None else (_inputs_ahead(by, asked.raw, horizon, inputs),)
    try:
        found = by_recording(program, model, asked.scaled, cost, key, ahead)
    except DataError as error:
        raise DataError(f"{error} A forecast may also diverge: ask for a shorter horizon.") from None
    drawn = [_in_units(model, *row) for row in found]
    y, means, latents, states, each = map(list, zip(*drawn, strict=True))
    blocks = {name: [one[name] for one in each] for name in model.pgm.blocks}
    return Forecast(asked.raw.names, y, means, latents, states, blocks)


def _inputs_ahead(by: Standardize, raw: Recordings, horizon: int, inputs: Any) -> np.ndarray:
    """The inputs (N, H, n) of the frames to come, in the units of the model."""
    if inputs is None:
        every = [np.repeat(one.inputs[-1:], horizon, 0) for one in raw.beside]
    else:
        later = raw._replace(sequences=(np.zeros(horizon),) * len(raw.names))
        every = [one.inputs for one in with_inputs(later, inputs, names=raw.called.inputs).beside]
    return np.stack([by.apply(one) for one in every])


def generate(
    model: SVAE, length: int, *, samples: int = 1, key: PRNGKeyArray, inputs: Any = None, group: str | None = None
) -> Generated:
    """Draws of whole recordings, each with θ ~ q(θ) and γ ~ q(γ) of its own.

    Args:
        model: A fitted model.
        length: The number of frames of each.
        samples: The number of recordings.
        key: The random key of the draws.
        inputs: Those of all frames (length, n), in their own units; for a model with inputs 0 unless given.
        group: For a model with tables of each group, the name of one; each draw is of a new one unless given.

    Returns:
        `Generated`: frames, their means without noise, latents and states.

    Examples:
        >>> import jax
        >>> import svae
        >>> model = svae.make((2,), model="hmm", states=3, latent_dim=2, hidden=())  # fit it first
        >>> svae.generate(model, 6, samples=2, key=jax.random.key(0)).samples.shape
        (2, 6, 2)
    """
    length, samples = at_least_one("length", length), at_least_one("samples", samples)
    driven = inputs_of(model, length, inputs)
    keys = jax.random.split(key, samples)
    found = jax.tree.map(np.asarray, _generate(model, keys, length, driven, group_of(model, group)))
    if not all(np.isfinite(a).all() for a in found[:3]):
        raise ConfigError(f"the model's dynamics diverge within {length} frames; ask for fewer, or fit it for longer")
    return Generated(*_in_units(model, *found))


def group_of(model: SVAE, name: str | None) -> int | None:
    """The number of a group; ConfigError where the model has none of that name."""
    if name is None:
        return None
    known = model.layout.groups
    if name not in known:
        there = f"it knows {', '.join(known)}" if known else "it has the same habits for all"
        raise ConfigError(f"the model has no group {name!r}; {there}")
    return known.index(name)


def inputs_of(model: SVAE, length: int, inputs: Any) -> np.ndarray | None:
    """Inputs (length, n) in the units of the model, 0 in their own where they are not given."""
    if model.driven is None:
        return None
    shape = length, model.pgm.inputs
    given = np.zeros(shape) if inputs is None else np.asarray(inputs, np.float64).reshape(len(inputs), -1)
    if given.shape != shape:
        raise ConfigError(f"the inputs of {length} frames must have the shape {shape}, not {given.shape}")
    return model.driven.apply(given)


def _in_units(model, samples, means, latents, states, blocks):
    ordered = {name: blocks[name] for name in model.pgm.blocks}
    return model.scaling.invert(samples), model.scaling.invert(means), latents, states, ordered


@eqx.filter_jit
def _forecast(horizon, samples, model, y, mask, keys, beside, ahead=None):
    def one(y, mask, key, beside, ahead):
        q, last = posterior(model, y, mask, beside), jnp.sum(mask) - 1
        left = residual(model, y, q.mean(), last, horizon)
        draw = lambda key: _continue(model, q, left, last, key, horizon, ahead, beside.group)  # noqa: E731
        return jax.vmap(draw)(jax.random.split(key, samples))

    return jax.vmap(one)(y, mask, keys, beside, ahead)


def _continue(model, q, left, last, key, horizon, inputs, group):
    """One draw that goes on from frame `last`."""
    key_x, key_z, key_rest = jax.random.split(key, 3)
    start = q.draw_frame(last, key_x=key_x, key_z=key_z)
    drawn, mean, *rest = _draw(model, horizon, start, key_rest, inputs, group)
    mean, drawn = carried(left, mean, drawn)
    return drawn, mean, *rest


@eqx.filter_jit
def _generate(model, keys, length, inputs, group):
    return jax.vmap(lambda key: _draw(model, length, None, key, inputs, group))(keys)


def _draw(model, length, start, key, inputs, group):
    key_theta, key_gamma, key_path, key_noise = jax.random.split(key, 4)
    theta = tamed(expfam.sample(simulated(model), key=key_theta))
    path = model.pgm.simulate(theta, length, key=key_path, start=start, inputs=inputs, group=group)
    gamma = model.observe.draw(key=key_gamma)
    x = model.pgm.latent(path)
    states = model.pgm.labels(path), model.pgm.labels_by_block(path)
    return gamma.simulate(x, key=key_noise), gamma.mean(x), x, *states


def simulated(model):
    """q(θ) of draws: a target duration prices a switch, and with that price in it no draw would ever switch."""
    seen = model.q if model.config.target_duration is None else model.pgm.as_seen(model.q)
    return model.pgm.with_new_group(seen)
