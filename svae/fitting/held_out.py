"""The bound of recordings that were held out, in windows of bounded memory.

It is taken at the mean of q(theta), as the scores of plain models are: a bound on the density of these recordings under
one model. What q(theta) does not know belongs to the bound of the training data, where it decides how much is learned.
What places say of states is where q(z) begins, and no more: any q(z) gives a bound, and this one is tighter.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from svae import expfam
from svae._compiling import briefly
from svae.bound import evidence
from svae.data import Recordings, batch, windows
from svae.data.scores import block_means
from svae.model import SVAE

NUMBERS = 2**22  # that one batch may hold: 16 MiB, and a few times as much in its program
CONTEXT = 50  # frames around a window of a recording that is too long to be seen whole


class HeldOut(NamedTuple):
    """What one model says of recordings that were held out."""

    bound: float  # E log p(y | x, gamma) - local KL at the mean of q(theta), nats per frame in model units
    labels: np.ndarray  # (T,) the likeliest state of each counted frame of the first window
    blocks: np.ndarray = np.zeros(0)  # the same bound of successive parts of the frames, for its standard error


def held_out_bound(model: SVAE, held: Recordings, *, key: PRNGKeyArray) -> HeldOut:
    """Recordings are whole where memory allows."""
    length, size = window_and_batch(model, max(map(len, held.sequences)))
    table, total, labels, each = windows(held, length, CONTEXT), 0.0, None, []
    size = min(size, len(table.first))
    for number, first in enumerate(range(0, len(table.first), size)):
        rows = np.arange(first, min(first + size, len(table.first)))
        piece = batch(held, table, np.resize(rows, size))  # one shape, one program; repeats are not counted
        counted = piece.counted & (np.arange(size) < len(rows))[:, None]
        noise = jax.random.fold_in(key, number)
        bound, path, frames = _evaluate(model, piece.y, piece.mask, counted, noise, piece.beside)
        total += float(bound)
        each.append(np.asarray(frames)[counted])
        labels = np.asarray(path)[piece.counted[0]] if labels is None else labels
    return HeldOut(total / held.frames, labels, block_means(np.concatenate(each)))


def window_and_batch(model: SVAE, longest: int) -> tuple[int, int]:
    """Frames of a window and windows of a batch that NUMBERS allow; at least 256 frames."""
    config = model.config
    numbers = 2 * int(np.prod(model.shape)) + 2 * max(config.hidden, default=1) + model.pgm.numbers_per_frame
    length = min(longest, max(256, NUMBERS // numbers - 2 * CONTEXT))
    return length, max(1, min(config.batch_size, NUMBERS // (numbers * length)))


@briefly
def _evaluate(model, y, mask, counted, key, beside):
    moments = expfam.moments_at_mean(model.q)
    found = evidence(model, moments, y, mask, counted, key, beside, SVAE.tightest)
    return found.log_likelihood - found.kl, _labels(model, moments, found, y, mask, beside), found.each


def _labels(model, moments, found, y, mask, beside):
    """The states (T,) of the first sequence, with what its places say."""
    if model.places is None:
        return found.labels
    first = lambda tree: jax.tree.map(lambda a: a[0], tree)  # noqa: E731
    return jnp.argmax(model.posterior(moments, y[0], mask[0], None, first(beside)).states, -1)
