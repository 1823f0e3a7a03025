"""Graphs from tables, as a TOML file has them, and the tables of a graph; every name in `svae.named` is such tables."""

import dataclasses
import difflib
import math
from collections.abc import Mapping
from numbers import Integral
from typing import Any

from svae.named import Sizes, find
from svae.pgm._block import AbstractBlock, GraphError, names, parents
from svae.pgm._check import RESERVED, ordered
from svae.pgm._graph import Graph
from svae.pgm._making import graph
from svae.pgm._mean_field import implicit, step_by_step
from svae.pgm.choice import Choice
from svae.pgm.dynamics import Dynamics
from svae.pgm.markov import Markov
from svae.pgm.normal import Normal
from svae.pgm.semi_markov import SemiMarkov

BLOCKS: dict[str, type[AbstractBlock]] = {
    "choice": Choice,
    "markov": Markov,
    "semi-markov": SemiMarkov,
    "normal": Normal,
    "dynamics": Dynamics,
}
MOST_NUMBERS = 2**28  # in one table of parameters
SHOW = "show"  # beside the tables: the block that stands for all where there is room for one


def named(name: str, sizes: Sizes) -> Graph:
    """The graph of a name.

    Args:
        name: One of those that `svae models` lists.
        sizes: Numbers of states and dimensions, and prior counts.

    Returns:
        `Graph`.
    """
    found = find(name).tables(sizes)
    if not isinstance(found, Graph | Mapping):
        raise GraphError(f"{name} must give a graph or the tables of one, not {found!r:.80}")
    return found if isinstance(found, Graph) else from_tables(found)


def from_tables(tables: Mapping[str, Any]) -> Graph:
    """The graph of {name: {"block": "markov", "states": 20, "given": ["mood"]}}; GraphError says what is wrong.

    Args:
        tables: A table for each block, as in a TOML file.

    Returns:
        `Graph`.

    Examples:
        >>> from svae.pgm import from_tables
        >>> tables = {"z": {"block": "markov", "states": 3}, "x": {"block": "normal", "dimensions": 2, "given": ["z"]}}
        >>> from_tables(tables).discrete
        {'z': 3}
    """
    blocks = {name: block_of(name, table) for name, table in tables.items() if name != SHOW}
    show = tables.get(SHOW)
    ordered(blocks, show)
    for name, block in blocks.items():
        above = [parent for parent in (*parents(block), *names(block.after)) if not blocks[parent].continuous]
        _check_size(name, block, [blocks[parent].size for parent in above])
    return graph(show=show, **blocks)


def _check_size(name: str, block: AbstractBlock, above: list[int]) -> None:
    numbers = math.prod(above) * block.size * max(block.size, getattr(block, "longest", 1))
    if numbers > MOST_NUMBERS:
        raise GraphError(
            f"{name} would have a table of about {numbers:.0e} numbers; give smaller blocks or fewer parents"
        )


def block_of(name: str, table: Any) -> AbstractBlock:
    """The block that one table describes."""
    if name in RESERVED:
        raise GraphError(f"no block can be called {name!r}, which is an option of the graph; give it another name")
    if not isinstance(table, Mapping) or "block" not in table:
        example = f'[latent.{name}] with block = "markov" and states = 20'
        raise GraphError(f"{name} must be a table that says its block, such as {example}, not {table!r}")
    kind = _kind(name, table["block"])
    fields = {size_of(kind) if f.name == "size" else f.name: f for f in dataclasses.fields(kind)}
    for option in table:
        if option != "block" and option not in fields:
            hint = _nearest(option, fields)
            raise GraphError(f"{name} is a {table['block']} block, which has no option {option!r}{hint}")
    missing = [o for o, f in fields.items() if f.default is dataclasses.MISSING and o not in table]
    if missing:
        raise GraphError(f"{name} is a {table['block']} block, which needs {' and '.join(missing)}")
    given = {fields[o].name: _plain(name, o, v, fields[o]) for o, v in table.items() if o != "block"}
    try:
        return kind(**given)
    except GraphError as error:
        raise GraphError(f"{name}: {error}") from None


def _kind(name: str, said: Any) -> type[AbstractBlock]:
    kind = BLOCKS.get(said) if isinstance(said, str) else None
    if kind is None:
        raise GraphError(f"{name} has the block {said!r}, which there is not{_nearest(said, BLOCKS)}")
    return kind


def _nearest(word: Any, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(str(word), known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(known)}"


def _plain(name: str, option: str, value: Any, field: dataclasses.Field) -> Any:
    """A value of the type of the option's default: TOML's lists are tuples here, and whole numbers may be counts."""
    said, value = value, tuple(value) if isinstance(value, list) else value
    default = field.default
    if isinstance(default, bool) and not isinstance(value, bool):
        raise GraphError(f"{option} of {name} must be true or false, not {value!r}")
    if isinstance(default, str) and not isinstance(value, str):
        raise GraphError(f"{option} of {name} must be one word, not {value!r}")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if (field.type is int or type(default) is int) and not (number and isinstance(value, int)):
        raise GraphError(f"{option} of {name} must be a whole number, not {value!r}")
    words = value if isinstance(value, tuple) else (value,)
    if field.type == tuple[int, ...]:
        if not isinstance(value, tuple) or not all(isinstance(n, int) for n in value):
            raise GraphError(f"{option} of {name} must be a list of layer widths such as [32], not {said!r}")
        return value
    if isinstance(default, tuple) and not all(isinstance(word, str) for word in words):
        raise GraphError(f"{option} of {name} must be the name of a block, or a list of names, not {value!r}")
    if isinstance(default, float) and not (number and 0 <= value < math.inf):
        raise GraphError(f"{option} of {name} must be a number of at least 0, not {value!r}")
    return float(value) if isinstance(default, float) else value


def size_of(kind: type[AbstractBlock]) -> str:
    """What the size of a block is called."""
    return "dimensions" if kind.continuous else "states"


def to_tables(pgm: Graph) -> dict[str, Any] | None:
    """The tables from which `from_tables` makes this graph again; None where a block is of one's own.

    Args:
        pgm: A graph.

    Returns:
        A table for each block.
    """
    kinds = {kind: name for name, kind in BLOCKS.items()}
    if pgm.solve not in (implicit, step_by_step) or any(type(node.block) not in kinds for node in pgm.nodes):
        return None
    tables: dict[str, Any] = {node.name: _table(node.block, kinds) for node in pgm.nodes}
    again = from_tables(tables)
    return tables if again.shown == pgm.shown else {SHOW: pgm.shown} | tables


def _table(block: AbstractBlock, kinds: Mapping[type, str]) -> dict[str, Any]:
    """What is not a default of the block."""
    kind = type(block)
    every = {f.name: (f, getattr(block, f.name)) for f in dataclasses.fields(kind)}
    said = {name: _builtin(value) for name, (field, value) in every.items() if value != field.default}
    return {"block": kinds[kind]} | {size_of(kind) if name == "size" else name: v for name, v in said.items()}


def _builtin(value: Any) -> Any:
    """Numpy's whole numbers as Python's."""
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else value
