"""Networks of one's own and of installed packages: whether they follow their protocols, by shapes alone."""

from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array

from svae._entry_points import NETS, called
from svae.config import NETWORKS, ConfigError
from svae.nets import ObserveProtocol, RecognitionNetwork, RecognizeProtocol

TRIED_FRAMES = 3  # on which the shapes of what networks give are tried


def check_networks(recognize: Any, observe: Any, shape: tuple[int, ...], D: int) -> None:
    """Raise unless both follow their protocols, by shapes alone: nothing is computed."""
    if not isinstance(recognize, eqx.Module) or not isinstance(recognize, RecognizeProtocol):
        raise ConfigError(f"recognize= must be an equinox module that is called with y and mask, not {recognize!r:.80}")
    if not isinstance(observe, eqx.Module) or not isinstance(observe, ObserveProtocol):
        wanted = "an equinox module with log_prob, mean, simulate, draw and kl, or a likelihood"
        raise ConfigError(f"observe= must be {wanted}, not {observe!r:.80}")
    y, x = jax.ShapeDtypeStruct((TRIED_FRAMES, *shape), float), jax.ShapeDtypeStruct((TRIED_FRAMES, D), float)
    mask, key = jax.ShapeDtypeStruct((TRIED_FRAMES,), bool), jax.eval_shape(lambda: jax.random.key(0))
    psi = _tried("recognize(y, mask)", lambda y, mask: recognize(y, mask), y, mask)
    _require("recognize(y, mask).J", getattr(psi, "J", None), (TRIED_FRAMES, D, D))
    _require("recognize(y, mask).h", getattr(psi, "h", None), (TRIED_FRAMES, D))
    _require("observe.log_prob(x, y)", _tried("observe.log_prob", observe.log_prob, x, y), (TRIED_FRAMES,))
    _require("observe.mean(x)", _tried("observe.mean", observe.mean, x), (TRIED_FRAMES, *shape))
    drawn = lambda x, key: observe.draw(key=key).simulate(x, key=key)  # noqa: E731
    _require("observe.simulate(x, key=key)", _tried("observe.draw and simulate", drawn, x, key), (TRIED_FRAMES, *shape))
    _require("observe.kl()", _tried("observe.kl", observe.kl), ())


class Features(eqx.Module):
    """The trunk of an installed package, and how many features it gives."""

    trunk: Any
    size: int = eqx.field(static=True)

    def __call__(self, inputs: Array, mask: Array) -> Array:
        return self.trunk(inputs, mask)


def network_of(name: str) -> str | RecognitionNetwork:
    """A network of ours by its name, or what an installed package has under that name, beside a linear map."""
    if name in NETWORKS:
        return name

    def trunk(event_shape, channels, hidden, activation, *, key):
        made = called(NETS, name, event_shape, channels, hidden, key)
        seen = (
            jax.ShapeDtypeStruct((TRIED_FRAMES, *event_shape, channels), float),
            jax.ShapeDtypeStruct((TRIED_FRAMES,), bool),
        )
        found = _tried(f"the network {name!r}", lambda y, mask: made(y, mask), *seen)
        if getattr(found, "ndim", 0) != 2 or len(found) != TRIED_FRAMES:
            shape = getattr(found, "shape", None)
            raise ConfigError(f"the network {name!r} gives the shape {shape}, but must give ({TRIED_FRAMES}, features)")
        return Features(made, found.shape[1])

    return RecognitionNetwork(trunk, linear=True, correction=True)


def _tried(what: str, function: Any, *arguments: Any) -> Any:
    """What a function would give; whatever it raises becomes one sentence."""
    try:
        return eqx.filter_eval_shape(function, *arguments)
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        shapes = ", ".join(str(a.shape) for a in arguments)
        raise ConfigError(f"{what} fails for arguments of shape {shapes}: {type(error).__name__}: {first}") from error


def _require(what: str, found: Any, shape: tuple[int, ...]) -> None:
    if getattr(found, "shape", None) != shape:
        raise ConfigError(f"{what} has the shape {getattr(found, 'shape', None)}, but must have {shape}")
