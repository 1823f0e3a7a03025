"""Every option of a model and of its fit, with its default; standard library only."""

import dataclasses
import difflib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from svae import _latent_tables
from svae._entry_points import NETS, installed
from svae._latent_tables import ConfigError, Latent
from svae.named import MODELS, names

OWN = "own"  # a graph of one's own, which `make` is given
NETWORKS = ("affine", "mlp", "residual", "conv", "temporal", "recurrent")
PRECISIONS = ("diagonal", "full")
LIKELIHOODS = ("gaussian", "bernoulli", "poisson", "student_t")
VARIANCES = ("fixed", "learned", "network")
WEIGHTS = ("point", "gaussian")
PREPROCESSING = ("auto", "none", "keypoints", "distances", "frames", "depth")


@dataclass(frozen=True)
class Config:
    """Every option of a model and of its fit, with its default; checked on construction, hashable.

    Attributes:
        preprocess: What raw frames go through first: found from their shape (`auto`), or named.
        size: Pixels of the longer side that images are resized to; None = 32 for images above 64.
        model: The latent graphical model, by a name that `svae models` lists; `own` for one in `latent`.
        states: An upper bound on the number of states K; None = the model's own default, 10.
        latent_dim: The number D of continuous latent dimensions; a graph in `latent` says it itself.
        stickiness: Extra prior counts on staying in a state.
        target_duration: Mean frames of a bout; where the data allow it; it sets the stickiness. None = not asked for.
        concentration: Total of the Dirichlet's prior counts, shared out over the states; small values use few states.
        inputs: How many known columns drive the dynamics at every frame; those of the data unless given.
        network: The kind of both networks; `temporal` and `recurrent` see neighbouring frames when they recognise.
        hidden: Widths of the hidden layers; `()` leaves the linear map alone.
        precision: What the recognition network says of its certainty: one number for each dimension, or a matrix.
        likelihood: The distribution of the data given the latent; `own` where `make` is given an observation.
        variance: The noise of a continuous likelihood: fixed, one learned number for each column, or a network's.
        missing: Tell the recognition network which entries were observed.
        weights: A point estimate of the observation network, or the paper's q(γ).
        samples: Draws of the latents for each estimate of the bound.
        batch_size: Recordings, or windows of them, in one step.
        window: Frames that count in one window; None = whole recordings where memory allows.
        overlap: Further frames on each side of a window, for inference only.
        steps: Steps of the fit after the warm-up.
        linear: The share of the steps in which networks that have a linear map are that map and nothing else.
        patience: Held-out measurements without a gain before the fit stops; 0.02 nats begin anew; None = never.
        natural_step: The step size ρ of the natural gradient, 0 < ρ <= 1.
        learning_rate: The step size of the networks' optimiser.
        warmup_steps: Steps of a plain VAE before the latent model is fitted.
        restarts: Fits from different starts in one program; the best by held-out bound is kept.
        held_out: The share of the data that is held out to measure the fit.
        split_seed: The seed of which recordings are held out, whatever the seed of the fit.
        seed: The seed of everything random.
        latent: A latent graph of your own, a table for each block, as `[latent.z]` in TOML.

    Examples:
        >>> from svae.config import Config
        >>> config = Config(model="hmm", states=4)
        >>> print(config.to_toml().splitlines()[2])
        model = "hmm"
    """

    # the data
    preprocess: str = "auto"  # what raw frames go through: found from their shape, or named
    size: int | None = None  # pixels of the longer side of resized images; None = 32 for those above 64
    # the latent graphical model
    model: str = "slds"
    states: int | None = None  # an upper bound on K; None = the latent model's own default
    latent_dim: int = 8
    stickiness: float = 0.0  # extra prior counts on staying in a state
    target_duration: float | None = None  # mean frames of a bout, where the data allow it; sets the stickiness
    concentration: float = 1.0  # total of the Dirichlet's prior counts, shared out over the states
    inputs: int = 0  # columns that drive the dynamics
    # the networks
    network: str = "residual"
    hidden: tuple[int, ...] = (64, 64)
    precision: str = "diagonal"
    likelihood: str = "gaussian"
    variance: str = "learned"
    missing: bool = False  # tell the recognition network which entries were observed
    weights: str = "point"  # "gaussian" = the paper's q(γ)
    # the fit
    samples: int = 1
    batch_size: int = 32
    window: int | None = None  # frames that count in one window; None = whole recordings where memory allows
    overlap: int = 10  # further frames on each side of a window, for inference only
    steps: int = 1000
    linear: float = 0.0  # share of the steps before networks may bend
    patience: int | None = None  # held-out measurements without improvement before an early stop; None = never stop
    natural_step: float = 0.1  # ρ
    learning_rate: float = 1e-3
    warmup_steps: int = 100
    restarts: int = 1
    held_out: float = 0.1
    split_seed: int = 0  # of which recordings are held out, whatever the seed of the fit
    seed: int = 0
    latent: Latent = ()  # the tables of a graph of one's own, as pairs, so that a configuration is hashable

    def __post_init__(self):
        for name, check in CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))
        if self.latent:
            self._agree()

    def _agree(self):
        """What the blocks of a graph of one's own say is not said again."""
        if self.model != OWN:
            raise ConfigError(f'the tables of [latent] need model = "{OWN}", not {self.model!r}; leave model out')
        for name in ("states", "stickiness", "concentration", "inputs"):
            if getattr(self, name) != getattr(type(self), name):
                raise ConfigError(f"{name} is said by the blocks in [latent]; leave it out")
        object.__setattr__(self, "latent_dim", _latent_tables.dimensions(self.latent) or self.latent_dim)

    @classmethod
    def make(cls, options: Mapping[str, object]) -> "Config":
        """A Config from a mapping of options; an unknown name raises ConfigError with the nearest known one."""
        for name in options:
            if name not in CHECKS:
                raise ConfigError(f"there is no option {name!r}{_did_you_mean(name, CHECKS)}")
        known: dict[str, Any] = {name: CHECKS[name](name, value) for name, value in options.items()}
        if known.get("latent"):
            known = {"model": OWN} | known
        config = cls(**known)
        if known.get("latent_dim", config.latent_dim) != config.latent_dim:
            raise ConfigError(f"latent_dim is said by the blocks in [latent], {config.latent_dim} in all; leave it out")
        return config

    @classmethod
    def from_toml(cls, text: str) -> "Config":
        """Read the text that `to_toml` writes; options left out take their defaults."""
        try:
            options = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"the configuration is not valid TOML: {error}") from None
        return cls.make(with_split_seed(options))

    def to_dict(self) -> dict[str, object]:
        """All options as plain values that JSON and TOML know (None included)."""
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return plain | {"hidden": list(self.hidden), "latent": self.tables()}

    def tables(self) -> dict[str, Any]:
        """The blocks of a graph of one's own, each with its options."""
        return _latent_tables.plain(self.latent)

    def to_toml(self) -> str:
        """One `name = value` line per option, then a table per block; None, which TOML has not, is a comment."""
        found = self.to_dict()
        found.pop("latent")
        return _latent_tables.lines(found) + _latent_tables.to_toml(self.tables())


def with_split_seed(options: Mapping[str, object]) -> dict[str, object]:
    """Options from before the split had a seed of its own, when `seed` was both, and before those that came later."""
    return {"split_seed": options.get("seed", 0), "latent": {}, "inputs": 0, "linear": 0.0} | dict(options)


def _did_you_mean(word, known):
    near = difflib.get_close_matches(str(word), known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; the options are {', '.join(known)}"


def _one_of(allowed):
    def check(name, value):
        if not isinstance(value, str):
            raise ConfigError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
        if value not in allowed:
            near = difflib.get_close_matches(value, allowed, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"{name} must be one of {', '.join(allowed)}, not {value!r}{hint}")
        return value

    return check


def _model(name: str, value: Any) -> str:
    """A name of ours, or of an installed package; those are looked for only where it is none of ours."""
    known = (*MODELS, OWN)
    return value if value in known else _one_of((*names(), OWN))(name, value)


def _network(name: str, value: Any) -> str:
    """A network of ours, or of an installed package; those are looked for only where it is none of ours."""
    return value if value in NETWORKS else _one_of((*NETWORKS, *installed(NETS)))(name, value)


def _integer(least):
    def check(name, value):
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise ConfigError(f"{name} must be an integer of at least {least}, not {value!r}")
        return int(value)

    return check


def _seed(name, value):
    if _integer(0)(name, value) >= 2**32:
        raise ConfigError(f"{name} must be below 2**32, not {value!r}")
    return int(value)


def _optional(check):
    return lambda name, value: None if value is None else check(name, value)


def _number(inside, words):
    def check(name, value):
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or not inside(value):
            raise ConfigError(f"{name} must be a number {words}, not {value!r}")
        return float(value)

    return check


def _boolean(name, value):
    if not isinstance(value, bool):
        raise ConfigError(f"{name} must be true or false, not {value!r}")
    return value


def _widths(name, value):
    if not isinstance(value, tuple | list):
        raise ConfigError(f"{name} must be a list of layer widths such as [64, 64], not {value!r}")
    return tuple(_integer(1)(f"each width in {name}", width) for width in value)


_positive = _number(lambda v: v > 0, "above 0")

CHECKS = {
    "preprocess": _one_of(PREPROCESSING),
    "size": _optional(_integer(1)),
    "model": _model,
    "states": _optional(_integer(1)),
    "latent_dim": _integer(1),
    "stickiness": _number(lambda v: v >= 0, "of at least 0"),
    "target_duration": _optional(_number(lambda v: v > 1, "above 1")),
    "concentration": _positive,
    "inputs": _integer(0),
    "network": _network,
    "hidden": _widths,
    "precision": _one_of(PRECISIONS),
    "likelihood": _one_of((*LIKELIHOODS, OWN)),
    "variance": _one_of(VARIANCES),
    "missing": _boolean,
    "weights": _one_of(WEIGHTS),
    "samples": _integer(1),
    "batch_size": _integer(1),
    "window": _optional(_integer(1)),
    "overlap": _integer(0),
    "steps": _integer(0),
    "linear": _number(lambda v: 0 <= v <= 1, "between 0 and 1"),
    "patience": _optional(_integer(1)),
    "natural_step": _number(lambda v: 0 < v <= 1, "above 0 and at most 1"),
    "learning_rate": _positive,
    "warmup_steps": _integer(0),
    "restarts": _integer(1),
    "held_out": _number(lambda v: 0 <= v < 1, "of at least 0 and below 1"),
    "split_seed": _seed,
    "seed": _seed,
    "latent": _latent_tables.pairs,
}
