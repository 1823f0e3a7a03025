"""The application that verbs join, and what every verb's help shows."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Annotated, Any

from cyclopts import App, Parameter

from svae.cli._errors import MEANINGS
from svae.cli._examples import EXAMPLES

command: ContextVar[tuple[str, ...]] = ContextVar("command", default=("svae",))  # the command line, for provenance
Match = Annotated[list[str] | None, Parameter(name="--match")]
Json = Annotated[bool, Parameter(help="Print JSON instead of a table.")]


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
