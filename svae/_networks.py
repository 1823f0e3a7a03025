"""Whether networks of one's own follow their protocols, by the shapes of what they give: nothing is computed."""

from typing import Any

import equinox as eqx
import jax

from svae.config import ConfigError
from svae.nets import ObserveProtocol, RecognizeProtocol

FRAMES = 3  # on which the shapes of what networks give are tried


def check_networks(recognize: Any, observe: Any, shape: tuple[int, ...], D: int) -> None:
    """Raise unless both follow their protocols, by shapes alone: nothing is computed."""
    if not isinstance(recognize, eqx.Module) or not isinstance(recognize, RecognizeProtocol):
        raise ConfigError(f"recognize= must be an equinox module that is called with y and mask, not {recognize!r:.80}")
    if not isinstance(observe, eqx.Module) or not isinstance(observe, ObserveProtocol):
        wanted = "an equinox module with log_prob, mean, simulate, draw and kl, or a likelihood"
        raise ConfigError(f"observe= must be {wanted}, not {observe!r:.80}")
    y, x = jax.ShapeDtypeStruct((FRAMES, *shape), float), jax.ShapeDtypeStruct((FRAMES, D), float)
    mask, key = jax.ShapeDtypeStruct((FRAMES,), bool), jax.eval_shape(lambda: jax.random.key(0))
    psi = _tried("recognize(y, mask)", lambda y, mask: recognize(y, mask), y, mask)
    _require("recognize(y, mask).J", getattr(psi, "J", None), (FRAMES, D, D))
    _require("recognize(y, mask).h", getattr(psi, "h", None), (FRAMES, D))
    _require("observe.log_prob(x, y)", _tried("observe.log_prob", observe.log_prob, x, y), (FRAMES,))
    _require("observe.mean(x)", _tried("observe.mean", observe.mean, x), (FRAMES, *shape))
    drawn = lambda x, key: observe.draw(key=key).simulate(x, key=key)  # noqa: E731
    _require("observe.simulate(x, key=key)", _tried("observe.draw and simulate", drawn, x, key), (FRAMES, *shape))
    _require("observe.kl()", _tried("observe.kl", observe.kl), ())


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
