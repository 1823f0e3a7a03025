"""How well a model predicts recordings: the held-out bound, and a tighter one by importance sampling."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from svae import expfam
from svae.data import recordings
from svae.data.carried import without_labels
from svae.messages import compensated_sum
from svae.model import SVAE
from svae.queries.batches import at_least_one, by_recording, frame_cost, prepare


class Score(NamedTuple):
    """Nats per frame in the units of the data; standard errors over recordings (frames, where they are independent).

    A standard error is None where there is one recording only, the importance bound where it was not asked for.
    """

    bound: float
    standard_error: float | None
    importance_bound: float | None
    importance_standard_error: float | None
    recordings: list[float]  # bound per frame of each recording


def score(model: SVAE, data: Any, *, key: PRNGKeyArray, samples: int = 8, importance_samples: int = 0) -> Score:
    """The held-out bound E_q(θ)q(γ)q* log p(y | x, γ) - local KL of whole recordings, without the global KL.

    Args:
        model: A fitted model.
        data: Raw recordings: an array (T, *event), a list or a dict of such, or what `load` returns. NaN is missing.
        key: The random key of the draws.
        samples: The number of draws for the expected log-likelihood.
        importance_samples: The number of draws for the importance bound; 0 leaves it out.

    Returns:
        `Score`: nats per frame in the units of the data, with standard errors.

    Examples:
        >>> import jax
        >>> import numpy as np
        >>> import svae
        >>> model = svae.make((2,), model="hmm", states=3, latent_dim=2, hidden=())  # fit it first
        >>> y = [np.zeros((5, 2)), np.ones((5, 2))]
        >>> len(svae.score(model, y, key=jax.random.key(0)).recordings)
        2

    With S importance samples also E log 1/S Σ_s w_s, `w_s = p(y | x_s, γ_s) p(x_s | θ_s) / q*(x_s)`, with θ_s ~ q(θ),
    γ_s ~ q(γ), `x_s ~ q*(x)` and z summed over. E w_s = E_q(θ)q(γ) p(y | θ, γ), so by Jensen it is a lower bound on the
    log predictive density of a recording; with S = 1 and z kept in `q*(z)` it would be the held-out bound itself, so it
    is at least that in expectation, and it grows with S.
    """
    samples = at_least_one("samples", samples)
    importance_samples = at_least_one("importance_samples", importance_samples) if importance_samples else 0
    asked = prepare(model, without_labels(recordings(data)))
    program = lambda *asked: _score(samples, importance_samples, *asked)  # noqa: E731
    cost = lambda L: 2 * L * frame_cost(model) + L * importance_samples  # noqa: E731
    found = by_recording(program, model, asked.scaled, cost, key)
    independent = model.pgm.independent  # then each frame is a recording of its own
    volumes = [_volume(model, y, independent) for y in asked.raw.sequences]
    frames = [1 if independent else len(y) for y in asked.raw.sequences for _ in range(len(y) if independent else 1)]
    bounds = [terms[: len(v)] - v for (terms, _), v in zip(found, volumes, strict=True)]
    each = [float(np.sum(b, dtype=float) / len(y)) for b, y in zip(bounds, asked.raw.sequences, strict=True)]
    plain = _per_frame(np.concatenate(bounds), np.array(frames))
    if importance_samples == 0:
        return Score(*plain, None, None, each)
    weights = [terms[: len(v)] - v for (_, terms), v in zip(found, volumes, strict=True)]
    return Score(*plain, *_per_frame(np.concatenate(weights), np.array(frames)), each)


def _volume(model, y, independent):
    """sum log scale over observed entries, by frame (T,) or of the whole recording (1,)."""
    log_scale = np.log(np.asarray(model.scaling.scale, float))
    volume = np.where(np.isnan(y), 0.0, log_scale).reshape(len(y), -1).sum(1)
    return volume if independent else volume.sum(keepdims=True)


def _per_frame(terms, frames):
    """sum of terms / sum of frames, and its standard error as a ratio of means over N units."""
    N, total = len(terms), frames.sum()
    mean = float(np.sum(terms, dtype=float) / total)
    spread = float(np.sum((terms - mean * frames) ** 2, dtype=float))
    return mean, math.sqrt(N / (N - 1) * spread) / float(total) if N > 1 else None


@eqx.filter_jit
def _score(samples, importance_samples, model, y, mask, keys, beside):
    one = lambda y, mask, key, beside: _score_one(model, y, mask, key, beside, samples, importance_samples)  # noqa: E731
    return jax.vmap(one)(y, mask, keys, beside)


def _score_one(model, y, mask, key, beside, samples, importance_samples):
    """Bound and importance-weighted bound of one sequence: by step if they are independent, else summed (1,)."""
    key_plain, key_weights = jax.random.split(key)
    q = model.tightest(expfam.moments(model.q), y, mask, None, beside)
    unit = (lambda a: a) if model.pgm.independent else (lambda a: compensated_sum(a)[None])

    def log_likelihood(key):
        key_x, key_gamma = jax.random.split(key)
        x = q.sample(key=key_x)
        found, gap = model.observe.draw(key=key_gamma).log_prob(x, y), q.gap(x)
        return found if gap is None else found + gap

    def log_weight(key):
        key_x, key_gamma, key_theta = jax.random.split(key, 3)
        x, theta = q.sample(key=key_x), expfam.sample(model.pgm.with_new_group(model.q), key=key_theta)
        ratio = model.pgm.log_prob(theta, x, mask, beside.inputs, beside.group) - q.log_density(x, mask)
        return unit(jnp.where(mask, model.observe.draw(key=key_gamma).log_prob(x, y) + ratio, 0))

    likelihood = jnp.mean(jax.lax.map(log_likelihood, jax.random.split(key_plain, samples)), 0)
    bound = unit(jnp.where(mask, likelihood, 0) - q.kl)
    if importance_samples == 0:
        return bound, bound
    weights = jax.lax.map(log_weight, jax.random.split(key_weights, importance_samples))
    return bound, jax.nn.logsumexp(weights, 0) - math.log(importance_samples)
