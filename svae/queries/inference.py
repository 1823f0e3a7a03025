"""Questions about the recordings that are given: latents, states, reconstructions, and what is missing."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from svae import _reprs, expfam
from svae.data import Beside
from svae.data.beside import NOTHING
from svae.model import SVAE
from svae.pgm import Posterior, keys_of
from svae.queries.batches import at_least_one, by_recording, frame_cost, posterior, prepare, states_of

SURE = 30.0  # nats by which a start prefers its states


class Inference(NamedTuple):
    """q*(x, z) of every recording, each a list of arrays in their order."""

    names: tuple[str, ...]
    mean: list[np.ndarray]  # E x_t (T, D)
    sd: list[np.ndarray]  # of x_t (T, D)
    states: list[np.ndarray]  # E z_t (T, K); K = 1 for models without discrete states
    kl: list[np.ndarray]  # local KL of each step (T,)
    blocks: dict[str, list[np.ndarray]]  # E z_t of each discrete block by name, the one in `states` first

    def __repr__(self) -> str:
        return _reprs.answer_text(self)


class Segmentation(NamedTuple):
    """Discrete states of every recording."""

    names: tuple[str, ...]
    labels: list[np.ndarray]  # the most probable path (T,), by Viterbi
    marginals: list[np.ndarray]  # q(z_t = k) (T, K)
    blocks: dict[str, "Segmentation"] = {}  # noqa: RUF012  the same of each discrete block by name, this one first

    def __repr__(self) -> str:
        return _reprs.answer_text(self)


class Reconstruction(NamedTuple):
    """Frames as the model sees them, in the units of the data."""

    names: tuple[str, ...]
    frames: list[np.ndarray]  # E[y_t | x_t = E x_t] (T, *event)

    def __repr__(self) -> str:
        return _reprs.answer_text(self)


class Imputation(NamedTuple):
    """Recordings without gaps, in the units of the data."""

    names: tuple[str, ...]
    frames: list[np.ndarray]  # (T, *event): what was observed, and the predictive mean of what was not
    sd: list[np.ndarray]  # predictive sd of what was filled in, noise included; 0 where observed

    def __repr__(self) -> str:
        return _reprs.answer_text(self)


NO_KEY = 0  # programs share one signature; those that draw nothing get keys of this seed and leave them


def infer(model: SVAE, data: Any) -> Inference:
    """Posterior of the latents of each recording.

    Args:
        model: A fitted model.
        data: Raw recordings: an array (T, *event), a list or a dict of such, or what `load` returns. NaN is missing.

    Returns:
        `Inference`: means, standard deviations and state probabilities, frame by frame.

    Examples:
        >>> import numpy as np
        >>> import svae
        >>> model = svae.make((2,), model="hmm", states=3, latent_dim=2, hidden=())  # fit it first
        >>> found = svae.infer(model, np.zeros((5, 2)))
        >>> found.mean[0].shape, found.states[0].shape
        ((5, 2), (5, 3))
    """
    asked = prepare(model, data)
    found = _answers(_infer, model, asked)
    mean, sd, states, kl, each = map(list, zip(*found, strict=True))
    blocks = {name: [one[name] for one in each] for name in model.pgm.blocks}
    return Inference(asked.raw.names, mean, sd, states, kl, blocks)


def segment(model: SVAE, data: Any) -> Segmentation:
    """The most probable state of every frame, and the probability of each state.

    Of several discrete blocks it is the one that the graph shows; `blocks` has each of them by name.

    Args:
        model: A fitted model.
        data: Raw recordings: an array (T, *event), a list or a dict of such, or what `load` returns. NaN is missing.

    Returns:
        `Segmentation`: the most probable path by Viterbi, and the marginal probabilities.

    Examples:
        >>> import numpy as np
        >>> import svae
        >>> model = svae.make((2,), model="hmm", states=3, latent_dim=2, hidden=())  # fit it first
        >>> svae.segment(model, {"mouse": np.zeros((5, 2))}).labels[0].shape
        (5,)
    """
    asked = prepare(model, data)
    found, names = _answers(_segment, model, asked), asked.raw.names

    def of(rows, blocks):
        labels, marginals = map(list, zip(*rows, strict=True))
        return Segmentation(names, labels, marginals, blocks)

    return of([one[0] for one in found], {name: of([one[1][name] for one in found], {}) for name in model.pgm.blocks})


def reconstruct(model: SVAE, data: Any) -> Reconstruction:
    """Every frame decoded from the posterior mean of its latent, at the mean of q(γ).

    Args:
        model: A fitted model.
        data: Raw recordings: an array (T, *event), a list or a dict of such, or what `load` returns. NaN is missing.

    Returns:
        `Reconstruction`: frames in the units of the data.

    Examples:
        >>> import numpy as np
        >>> import svae
        >>> model = svae.make((2,), model="hmm", states=3, latent_dim=2, hidden=())  # fit it first
        >>> svae.reconstruct(model, np.zeros((5, 2))).frames[0].shape
        (5, 2)
    """
    asked = prepare(model, data)
    frames = [model.scaling.invert(y) for (y,) in _answers(_reconstruct, model, asked)]
    return Reconstruction(asked.raw.names, frames)


def impute(model: SVAE, data: Any, *, key: PRNGKeyArray, samples: int = 32, starts: int = 8) -> Imputation:
    """Recordings with NaN entries and missing frames filled by the predictive mean, from draws of q*(x) and q(γ).

    Mean field leaves a stretch without frames in the states it was started with. So it starts there from 0 and from
    `starts` paths drawn from the chain of states given all other frames; the highest surrogate bound wins.

    Args:
        model: A fitted model.
        data: Raw recordings: an array (T, *event), a list or a dict of such, or what `load` returns. NaN is missing.
        key: The random key of the draws.
        samples: The number of draws.
        starts: The number of further starts where whole frames are missing.

    Returns:
        `Imputation`: frames without gaps, and the standard deviation of what was filled in.

    Examples:
        >>> import jax
        >>> import numpy as np
        >>> import svae
        >>> model = svae.make((2,), model="hmm", states=3, latent_dim=2, hidden=())  # fit it first
        >>> y = np.zeros((5, 2))
        >>> y[2] = np.nan
        >>> filled = svae.impute(model, y, key=jax.random.key(0), samples=4)
        >>> bool(np.isnan(filled.frames[0]).any())
        False
    """
    samples, starts = at_least_one("samples", samples), at_least_one("starts", starts)
    asked = prepare(model, data)
    gaps = any(np.isnan(y).reshape(len(y), -1).all(1).any() for y in asked.raw.sequences)
    starts = starts if gaps and states_of(model) > 1 else 0
    program = lambda *asked: _impute(samples, starts, *asked)  # noqa: E731
    cost = lambda L: L * frame_cost(model) * (2 + starts)  # noqa: E731
    found = by_recording(program, model, asked.scaled, cost, key)
    pairs = [_filled(model, y, *draws) for y, draws in zip(asked.raw.sequences, found, strict=True)]
    return Imputation(asked.raw.names, *(list(field) for field in zip(*pairs, strict=True)))


def _filled(model, y, mean, sd):
    missing = np.isnan(y)
    frames = np.where(missing, model.scaling.invert(mean[: len(y)]), y)
    return frames, np.where(missing, sd[: len(y)] * np.asarray(model.scaling.scale, float), 0.0)


def _answers(program, model, asked) -> list:
    """Answers frame by frame, cut to the length of each recording."""
    cost = lambda L: L * frame_cost(model)  # noqa: E731
    found = by_recording(program, model, asked.scaled, cost, jax.random.key(NO_KEY))
    pairs = zip(map(len, asked.raw.sequences), found, strict=True)
    return [jax.tree.map(lambda a, T=T: a[:T], answer) for T, answer in pairs]


# --- programs: one batch (B, L) in model units --------------------------------------------------------------------


@eqx.filter_jit
def _infer(model, y, mask, keys, beside):
    q = jax.vmap(posterior, (None, 0, 0, 0))(model, y, mask, beside)
    return q.mean(), q.sd(), _probabilities(q), q.kl, {name: _normalized(f.states) for name, f in q.discrete.items()}


@eqx.filter_jit
def _segment(model, y, mask, keys, beside):
    q = jax.vmap(posterior, (None, 0, 0, 0))(model, y, mask, beside)
    paths = jax.vmap(lambda q: {name: factor.viterbi() for name, factor in q.discrete.items()})(q)
    blocks = {name: (paths[name], _normalized(factor.states)) for name, factor in q.discrete.items()}
    return (jax.vmap(Posterior.viterbi)(q), _probabilities(q)), blocks


def _probabilities(q):
    """q(z_t = k) (B, T, K), none above 1 by rounding."""
    return _normalized(q.states)


def _normalized(states):
    return states / jnp.sum(states, -1, keepdims=True)


@eqx.filter_jit
def _reconstruct(model, y, mask, keys, beside):
    q = jax.vmap(posterior, (None, 0, 0, 0))(model, y, mask, beside)
    return (jax.vmap(model.observe.mean)(q.mean()),)


@eqx.filter_jit
def _impute(samples, starts, model, y, mask, keys, beside):
    one = lambda y, mask, key, beside: _impute_one(model, y, mask, key, beside, samples, starts)  # noqa: E731
    return jax.vmap(one)(y, mask, keys, beside)


def _impute_one(model, y, mask, key, beside, samples, starts):
    key_starts, key_draws = jax.random.split(key)
    q = best_of_starts(model, y, mask, key_starts, starts, beside)

    def add(total, key):
        key_x, key_gamma, key_noise = jax.random.split(key, 3)
        x, gamma = q.sample(key=key_x), model.observe.draw(key=key_gamma)
        drawn = gamma.simulate(x, key=key_noise)
        return jax.tree.map(jnp.add, total, (gamma.mean(x), drawn, drawn**2)), None

    zeros = 3 * (jnp.zeros_like(y),)
    sums, _ = jax.lax.scan(add, zeros, jax.random.split(key_draws, samples))
    mean, drawn, square = (total / samples for total in sums)
    return mean, jnp.sqrt(jnp.maximum(square - drawn**2, 0))


def best_of_starts(
    model: SVAE,
    y: Float[Array, "T ..."],
    mask: Bool[Array, " T"],
    key: PRNGKeyArray,
    starts: int,
    beside: Beside = NOTHING,
) -> Posterior:
    """q*(x, z) of one sequence by mean field from `starts` + 1 starts."""
    moments = expfam.moments(model.q)
    q = model.posterior(moments, y, mask, None, beside)
    if starts == 0:
        return q
    unseen = jnp.all(jnp.isnan(y).reshape(len(y), -1), -1)[:, None]

    def drawn(factor, key):
        given_others = factor.with_node(jnp.where(unseen, 0, factor.node))
        path = jax.nn.one_hot(given_others.sample(key=key), factor.node.shape[1], dtype=factor.node.dtype)
        return jnp.where(unseen, SURE * (path - 1), factor.node)

    def again(key):
        keys = keys_of(key, len(q.discrete))
        start = {name: drawn(factor, k) for (name, factor), k in zip(q.discrete.items(), keys, strict=True)}
        return model.posterior(moments, y, mask, start, beside)

    others = jax.vmap(again)(jax.random.split(key, starts))
    found = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), q, others)
    best = jnp.argmax(jnp.sum(found.log_normalizer, -1))
    return jax.tree.map(lambda a: a[best], found)
