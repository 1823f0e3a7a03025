"""What an input does: the change that one unit of it, given for one frame, makes in the frames that follow."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from svae import _reprs, expfam
from svae.config import ConfigError
from svae.model import SVAE
from svae.queries.batches import at_least_one
from svae.queries.prediction import simulated


class Response(NamedTuple):
    """The change of every entry of a frame for one unit of each input, in the units of data and input."""

    inputs: tuple[str, ...]
    mean: np.ndarray  # (n, H, *event): from the frame of the impulse on
    sd: np.ndarray  # over draws of θ and γ: how sure the model is of it

    def __repr__(self) -> str:
        return _reprs.arrays_text(self)


def response(model: SVAE, *, frames: int = 20, samples: int = 100, key: PRNGKeyArray) -> Response:
    """The response of the frames to an impulse of one unit in each input.

    Each draw has θ ~ q(θ), γ ~ q(γ), states and noise of its own, and is simulated with and without the impulse.

    Args:
        model: A fitted model whose latent graph takes inputs.
        frames: The number of frames from the impulse on.
        samples: The number of draws.
        key: The random key of the draws.

    Returns:
        `Response`: the mean change, and its standard deviation over draws.

    Examples:
        >>> import jax
        >>> import svae
        >>> from svae.pgm import Dynamics, graph
        >>> model = svae.make((3,), pgm=graph(x=Dynamics(2, inputs=1)), hidden=())  # fit it first
        >>> svae.response(model, frames=5, samples=4, key=jax.random.key(0)).mean.shape
        (1, 5, 3)
    """
    frames, samples = at_least_one("frames", frames), at_least_one("samples", samples)
    n = model.pgm.inputs
    if model.driven is None:
        raise ConfigError("the latent model takes no inputs, so there is nothing that it could respond to")
    change = np.asarray(_responses(model, jax.random.split(key, samples), frames), np.float64)  # (S, n, H, *event)
    change = change * np.asarray(model.scaling.scale, np.float64)
    names = model.layout.inputs or tuple(f"input {i}" for i in range(n))
    return Response(names, change.mean(0), change.std(0))


@eqx.filter_jit
def _responses(model, keys, frames):
    """Changes (S, n, H, *event) in model units; no input acts on the first frame of a simulation."""
    n = model.pgm.inputs
    still = jnp.broadcast_to(-model.driven.mean / model.driven.scale, (frames + 1, n))
    unit = jnp.diag(1 / model.driven.scale)

    def one(key):
        key_theta, key_gamma, key_path = jax.random.split(key, 3)
        theta, gamma = expfam.sample(simulated(model), key=key_theta), model.observe.draw(key=key_gamma)

        def decoded(inputs):
            path = model.pgm.simulate(theta, frames + 1, key=key_path, inputs=inputs)
            return gamma.mean(model.pgm.latent(path))[1:]

        driven = jax.vmap(lambda impulse: decoded(still.at[1].add(impulse)))(unit)
        return driven - decoded(still)[None]

    return jax.vmap(one)(keys)
