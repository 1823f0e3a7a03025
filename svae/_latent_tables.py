"""Tables of a latent graph as values that can be compared and hashed, and as TOML; standard library only."""

import math
import re
from collections.abc import Mapping
from typing import Any

Latent = tuple[tuple[str, Any], ...]  # ((block, ((option, value), ...)), ...)


class ConfigError(ValueError):
    """An option that does not exist or a value that it cannot take, told in one sentence."""


def lines(options: Mapping[str, Any]) -> str:
    """One `name = value` line per option."""
    return "".join(_line(name, value) for name, value in options.items())


def _line(name: str, value: Any) -> str:
    return f"# {name} = none\n" if value is None else f"{name} = {_toml(value)}\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def to_toml(blocks: Mapping[str, Any]) -> str:
    """[latent] with what is no block, then [latent.z] and so on."""
    loose = lines({name: v for name, v in blocks.items() if not isinstance(v, dict)})
    head = f"\n[latent]\n{loose}" if loose else ""
    tables = ((_key(name), v) for name, v in blocks.items() if isinstance(v, dict))
    return head + "".join(f"\n[latent.{n}]\n{lines(t)}" for n, t in tables)


def _key(name: str) -> str:
    """TOML has keys of ASCII letters without quotes."""
    return name if name.isascii() else f'"{name}"'


def pairs(name: str, value: Any) -> Latent:
    """Tables, or pairs of them, as pairs; what blocks there are and what they take, the graph checks."""
    try:
        tables = dict(value)
    except (TypeError, ValueError):
        raise ConfigError(
            f'{name} must be tables such as [latent.z] with block = "markov", not {value!r:.80}'
        ) from None
    return tuple((block, _options(block, said)) for block, said in tables.items())


def _options(block: str, said: Any) -> Any:
    """The options of one table, as pairs; a value that is not a table stays as it is, such as show = "z"."""
    if not isinstance(block, str) or not re.fullmatch(r"\w+", block):
        raise ConfigError(f"{block!r} cannot name a block in [latent]: names are words of letters and digits")
    if isinstance(said, Mapping):
        said = tuple(said.items())
    if isinstance(said, tuple) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in said):
        return tuple((option, _value(block, option, value)) for option, value in said)
    return _value("latent", block, said)


def _value(block: str, option: str, value: Any) -> Any:
    """A number, a word, true or false, words, or whole numbers."""
    if isinstance(value, list | tuple) and all(isinstance(word, str) and re.fullmatch(r"\w*", word) for word in value):
        return tuple(value)
    if isinstance(value, list | tuple) and all(isinstance(n, int) for n in value):
        return tuple(value)
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, str) and re.fullmatch(r"[\w-]*", value) and re.fullmatch(r"[\w-]+", option):
        return value
    raise ConfigError(f"{option} of {block} must be a number, a word or a list of words, not {value!r:.80}")


def plain(latent: Latent) -> dict[str, Any]:
    """The tables that `pairs` were made of."""
    return {name: _table(value) for name, value in latent}


def _table(said: Any) -> Any:
    """A table of its pairs; another value as it is."""
    if not isinstance(said, tuple):
        return said
    return {option: list(value) if isinstance(value, tuple) else value for option, value in said}


def dimensions(latent: Latent) -> int:
    """The number of dimensions of all continuous blocks together; 0 where no block says its own."""
    sizes = [dict(said).get("dimensions", 0) for _, said in latent if isinstance(said, tuple)]
    return sum(n for n in sizes if isinstance(n, int) and n > 0)
