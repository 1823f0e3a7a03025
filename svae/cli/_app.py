"""The application that verbs join, and what every verb's help shows."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import App, Parameter

from svae.cli._errors import MEANINGS
from svae.cli._examples import EXAMPLES

command: ContextVar[tuple[str, ...]] = ContextVar("command", default=("svae",))  # the command line, for provenance
MATCH = "MODEL=DATA where a point or column has another name in the data, such as nose=snout; may be repeated."
INPUTS = "The inputs of every frame, as for `svae fit`, where the model takes any."
GROUP = "The group of each recording, as for `svae fit`, where the model has habits for each."
Json = Annotated[bool, Parameter(help="Print JSON instead of a table.")]


@dataclass(frozen=True)
class Given:
    """New recordings as a fitted model is given them: how they are read, and what goes beside them."""

    fps: Annotated[float | None, Parameter(help="Frames per second; as in the run unless the data say it.")] = None
    dataset: Annotated[str | None, Parameter(help="Which array of a container; as in the run unless given.")] = None
    match: Annotated[list[str] | None, Parameter(name="--match", help=MATCH)] = None
    inputs: Annotated[str | None, Parameter(help=INPUTS)] = None
    group: Annotated[str | None, Parameter(help=GROUP)] = None


AsGiven = Annotated[Given, Parameter(name="*")]  # each field a flag of its own
AS_IN_THE_RUN = Given()


def _version():
    import svae

    return svae.__version__


app = App(
    name="svae",
    help="Structured variational autoencoders: recordings in; states, latents and forecasts out.",
    help_epilogue="Exit codes: " + "; ".join(f"{code} {words}" for code, words in MEANINGS.items()) + ".",
    version=_version,
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(negative=()),
)


def verb(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function as a command of its name; its help ends with its example."""
    example = EXAMPLES[function.__name__]
    app.command(function, name=function.__name__, help_epilogue=f"Example:  {example}")
    return function
