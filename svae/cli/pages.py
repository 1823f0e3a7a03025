"""docs/cli/*.md from the signatures, docstrings and examples that --help shows, and from the options of a fit.

python -m svae.cli.pages docs/cli
"""

import inspect
import re
import sys
import typing
from pathlib import Path
from typing import Any, NamedTuple

from cyclopts import Parameter

from svae.cli import app
from svae.cli._errors import MEANINGS
from svae.cli._examples import EXAMPLES
from svae.config import LIKELIHOODS, NETWORKS, PRECISIONS, PREPROCESSING, VARIANCES, WEIGHTS, Config
from svae.named import MODELS

CHOICES = {
    "preprocess": PREPROCESSING,
    "model": tuple(MODELS),
    "network": NETWORKS,
    "precision": PRECISIONS,
    "likelihood": LIKELIHOODS,
    "variance": VARIANCES,
    "weights": WEIGHTS,
}
OPTIONS = """\
# Options

Every option of a model and of its fit. In Python they are the arguments of `svae.Config` and `svae.make`, in the shell
`--set name=value` and a few flags of [`svae fit`](fit.md), in scikit-learn the parameters of the estimators; a run
folder keeps all of them in `config.toml`. A mistyped name is answered with the nearest one. `svae fit` chooses some by
the data where they are not given; what it chose is in `config.toml`.
"""
ARGUMENT = re.compile(r"^ {4}(\w+): (.*)$")
INTRODUCTION = """\
Recordings in; states, latents and forecasts out. `svae VERB --help` shows what these pages show, and a mistyped verb,
option or value is answered with the nearest one.

A time is a number and a unit: `400ms`, `0.4s`, `2min`, `1h`, or `12frames`. Every verb takes `--json`: then stdout
holds one JSON value, and an error is `{"error": ..., "exit_code": ...}` there beside its sentence on stderr. Programs
that jax has compiled are kept in the user's cache folder, so that a second run starts at once;
`JAX_COMPILATION_CACHE_DIR` moves it.
"""


class Argument(NamedTuple):
    """One argument of a verb, as people type it."""

    name: str
    positional: bool
    default: str
    words: str


def pages() -> dict[str, str]:
    """Text of every page by its file name."""
    found = {f"{name}.md": _page(name, app[name].default_command) for name in EXAMPLES}
    return found | {"index.md": _index(), "options.md": _options()}


def _page(name, function):
    summary, rest, words = _read(inspect.getdoc(function))
    arguments = [_argument(p, words) for p in _parameters(function)]
    usage = " ".join(["svae", name, *(a.name for a in arguments if a.positional), "[options]"])
    body = [f"# svae {name}", summary, *([rest] if rest else []), f"```text\n{usage}\n```", _table(arguments)]
    return "\n\n".join([*body, "For example:", f"```sh\n{EXAMPLES[name]}\n```", "[All verbs](index.md)"]) + "\n"


def _parameters(function) -> list[inspect.Parameter]:
    """The arguments of a function; of one that holds several flags, those."""
    found = []
    for parameter in inspect.signature(function).parameters.values():
        held = _told(parameter.annotation).get("name") == "*"
        found += _parameters(typing.get_args(parameter.annotation)[0]) if held else [parameter]
    return found


def _read(text: str) -> tuple[str, str, dict[str, str]]:
    """Summary, further sentences, and what is said of each argument."""
    before, _, after = text.partition("\n\nArgs:\n")
    summary, _, rest = before.partition("\n\n")
    found = (ARGUMENT.match(line) for line in after.replace("\n        ", " ").splitlines())
    return summary, rest, {match[1]: match[2] for match in found if match}


def _argument(parameter: inspect.Parameter, words: dict[str, str]) -> Argument:
    positional = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
    told = _told(parameter.annotation)
    name = parameter.name.upper() if positional else told.get("name") or f"--{parameter.name.replace('_', '-')}"
    return Argument(name, positional, _default(parameter.default), words.get(parameter.name) or told["help"])


def _told(annotation) -> dict[str, Any]:
    """Name and help of an annotated parameter."""
    extra = [a for a in typing.get_args(annotation) if isinstance(a, Parameter)]
    return {"name": (extra[0].name or [None])[0], "help": extra[0].help or ""} if extra else {"help": ""}


def _default(value):
    if value is inspect.Parameter.empty:
        return "required"
    return "" if value is None or value is False else f"`{value}`"


def _table(arguments):
    rows = [f"| `{a.name}` | {a.default} | {a.words} |" for a in arguments]
    return "\n".join(["| argument | default | meaning |", "|---|---|---|", *rows])


def _options():
    words = dict(re.findall(r"^ {4}(\w+): (.*)$", inspect.getdoc(Config) or "", re.MULTILINE))
    rows = [
        f"| `{name}` | `{_plain(value)}` | {_choices(name)}{words[name]} |"
        for name, value in Config().to_dict().items()
    ]
    return (
        "\n".join([OPTIONS, "| option | default | meaning |", "|---|---|---|", *rows, "", "[All verbs](index.md)"])
        + "\n"
    )


def _plain(value):
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _choices(name):
    return ", ".join(f"`{choice}`" for choice in CHOICES[name]) + ". " if name in CHOICES else ""


def _index():
    verbs = [
        f"| [`svae {name}`]({name}.md) | {_read(inspect.getdoc(app[name].default_command))[0]} |" for name in EXAMPLES
    ]
    codes = [f"| {code} | {words} |" for code, words in MEANINGS.items()]
    verbs_table = "\n".join(["| verb | what it does |", "|---|---|", *verbs])
    codes_table = "\n".join(["| code | meaning |", "|---|---|", *codes])
    return (
        "\n\n".join(
            [
                "# The command line",
                INTRODUCTION.strip(),
                verbs_table,
                "## Exit codes",
                codes_table,
                "[Every option of a fit](options.md)",
            ]
        )
        + "\n"
    )


def write(folder: Path) -> None:
    """Write every page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
