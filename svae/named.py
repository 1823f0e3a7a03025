"""The latent graphs that have a name, one entry each: a sentence, and the graph as the tables of a TOML file.

A name is short for such tables with the sizes of a configuration. Installed packages add names of their own through the
entry points of the group `svae.pgms`: functions of `Sizes` that return tables or a graph; the first line of their
docstring is the sentence. Standard library only: the command line and the configuration read it.
"""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from svae._entry_points import PGMS, called, installed, loaded

DEFAULT_STATES = 10
LONGEST_OVER_TARGET = 4  # a geometric distribution has 2 % of its bouts beyond four times its mean
LONGEST_BOUT = 100  # frames of the longest bout where no target duration is known

Tables = dict[str, dict[str, Any]]  # of each block: its kind, its sizes, its parents


class Sizes(NamedTuple):
    """What a configuration says of a latent graph."""

    states: int
    latent_dim: int
    concentration: float = 1.0
    stickiness: float = 0.0
    target_duration: float | None = None  # frames
    inputs: int = 0  # columns that drive the latent

    @property
    def longest(self) -> int:
        """Frames of the longest bout that a table of durations has."""
        target = self.target_duration
        return LONGEST_BOUT if target is None else max(2, math.ceil(LONGEST_OVER_TARGET * target))

    def choice(self) -> dict[str, Any]:
        """The states, each frame on its own."""
        return {"block": "choice", "states": self.states, "concentration": self.concentration}

    def chain(self, *given: str) -> dict[str, Any]:
        """The states as a hidden chain."""
        counts = {"concentration": self.concentration, "stickiness": self.stickiness}
        return {"block": "markov", "states": self.states, "given": given} | counts

    def bouts(self) -> dict[str, Any]:
        """The states as bouts that have durations."""
        counts = {"longest": self.longest, "concentration": self.concentration}
        return {"block": "semi-markov", "states": self.states} | counts

    def normal(self, *given: str) -> dict[str, Any]:
        """The latent, each frame on its own."""
        return {"block": "normal", "dimensions": self.latent_dim, "given": given}

    def dynamics(self, *given: str) -> dict[str, Any]:
        """The latent, which follows itself."""
        driven = {"inputs": self.inputs} if self.inputs else {}
        return {"block": "dynamics", "dimensions": self.latent_dim, "given": given} | driven


class Named(NamedTuple):
    """A graph that has a name."""

    words: str  # one sentence
    tables: Callable[[Sizes], Any]


BEND = (32,)  # widths of the hidden layers of the network in `nlds`
MOODS, SLOW = 3, 100.0  # states of the upper chain of `hierarchical`, and its prior counts on staying in one

MODELS: dict[str, Named] = {
    "vae": Named(
        "Each frame on its own, its latent around 0: a variational autoencoder.",
        lambda s: {"x": s.normal() | {"learned": False}},
    ),
    "gaussian": Named(
        "Each frame on its own, with a learned mean and covariance of the latent.", lambda s: {"x": s.normal()}
    ),
    "gmm": Named(
        "Each frame on its own in one of some clusters: a mixture of Gaussians.",
        lambda s: {"z": s.choice(), "x": s.normal("z")},
    ),
    "hmm": Named(
        "States that follow each other, each with a place: a hidden Markov model.",
        lambda s: {"z": s.chain(), "x": s.normal("z")},
    ),
    "lds": Named("A latent that moves smoothly: a linear dynamical system.", lambda s: {"x": s.dynamics()}),
    "nlds": Named(
        "As lds, and a small network bends the movement, as of a limit cycle: a nonlinear dynamical system.",
        lambda s: {"x": s.dynamics() | {"hidden": BEND}},
    ),
    "slds": Named(
        "States that follow each other, each with movements of its own: a switching linear dynamical system.",
        lambda s: {"z": s.chain(), "x": s.dynamics("z")},
    ),
    "arhmm": Named(
        "States with movements of their own, of the frame itself or its projection, without networks: an AR-HMM.",
        lambda s: {"z": s.chain(), "x": s.dynamics("z") | {"observed": True}},
    ),
    "hsmm": Named(
        "As hmm, and each state has its own distribution of how long a bout lasts.",
        lambda s: {"z": s.bouts(), "x": s.normal("z")},
    ),
    "slds-durations": Named(
        "As slds, and each state has its own distribution of how long a bout lasts.",
        lambda s: {"z": s.bouts(), "x": s.dynamics("z")},
    ),
    "rslds": Named(
        "As slds, and where the latent was says when one state follows another: recurrent.",
        lambda s: {"z": s.chain() | {"after": ("x",)}, "x": s.dynamics("z")},
    ),
    "factorial": Named(
        "Two chains of states at once, such as of body and of face, whose effects on the movement add.",
        lambda s: {
            "z": s.chain(),
            "w": s.chain() | {"states": max(2, s.states // 2)},
            "x": s.dynamics() | {"add": ("z", "w")},
        },
    ),
    "hierarchical": Named(
        f"As slds, with {MOODS} slow moods above the states, which decide what follows what.",
        lambda s: {
            "mood": s.chain() | {"states": MOODS, "stickiness": SLOW},
            "z": s.chain("mood"),
            "x": s.dynamics("z"),
        },
    ),
}


def names() -> tuple[str, ...]:
    """The names of all graphs: ours, then those of installed packages."""
    return (*MODELS, *(name for name in installed(PGMS) if name not in MODELS))


def find(name: str) -> Named:
    """The graph of a name; that of an installed package is imported now, and a broken one is a ConfigError."""
    if name in MODELS:
        return MODELS[name]
    function = loaded(PGMS, name)
    words = (function.__doc__ or "").strip().partition("\n")[0]
    words = words or f"A graph of {function.__module__}, which has no docstring to say what it is."
    return Named(words, functools.partial(called, PGMS, name))


def tables_of(name: str, options: Mapping[str, Any]) -> Any:
    """The tables of a name with these sizes, or the graph where a package gives one."""
    known = {field: options[field] for field in Sizes._fields if options.get(field) is not None}
    return find(name).tables(Sizes(**{"states": DEFAULT_STATES} | known))
