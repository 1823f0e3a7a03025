"""Tables for people, JSON for programs."""

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any


def say(sentences: Iterable[str]) -> None:
    """What the user should know beside the answer, one line each, on stderr."""
    for sentence in sentences:
        print(f"svae: {sentence}", file=sys.stderr)


def report(numbers: dict[str, Any], title: str, json: bool) -> None:
    """Named values: as JSON, or as a table of two columns."""
    if json:
        print_json(numbers)
    else:
        print_table(title, ("name", "value"), list(_flat(numbers)))


def report_rows(about: dict[str, Any], rows: list[dict[str, Any]], json: bool) -> None:
    """One row a recording, and what holds for all of them."""
    if json:
        print_json(about | {"recordings": rows})
    else:
        title = "  ".join(f"{name} {_text(value)}" for name, value in about.items())
        print_table(title, list(rows[0]), [list(row.values()) for row in rows])


def print_json(value: Any) -> None:
    """Plain values on stdout; a number that is not finite is null."""
    import json

    print(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """Values that JSON knows."""
    if isinstance(value, dict):
        return {str(name): plain(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table with lines on a terminal; bare columns, never cut, where the output goes to a file or a program."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    console = Console(width=None if terminal else 240, highlight=False)
    table = Table(*columns, title=title, title_justify="left", box=box.ROUNDED if terminal else None)
    for row in rows:
        table.add_row(*(Text(_text(value)) for value in row))
    console.print(table)


def _text(value):
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _flat(numbers: dict, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted name, value) of every single value; lists are for JSON, not for the screen."""
    for name, value in numbers.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        elif not isinstance(value, list | tuple):
            yield f"{prefix}{name}", value
