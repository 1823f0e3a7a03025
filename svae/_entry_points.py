"""What installed packages of other people add, by entry points; standard library only.

A group has a name for each thing: `svae.pgms` (latent graphs), `svae.nets` (trunks of recognition networks) and
`svae.readers` (formats of files, by their extension). Nothing of a package is imported before its name is asked for.
"""

import functools
import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from svae._latent_tables import ConfigError

PGMS, NETS, READERS = "svae.pgms", "svae.nets", "svae.readers"


def installed(group: str) -> dict[str, EntryPoint]:
    """The entry points of installed packages by name."""
    return {entry.name: entry for entry in _entries(tuple(sys.path)) if entry.group == group}


@functools.cache
def _entries(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Read once for each search path: there may be hundreds of packages."""
    return tuple(entry for group in (PGMS, NETS, READERS) for entry in entry_points(group=group))


def loaded(group: str, name: str) -> Any:
    """The function behind a name, imported now; ConfigError in one sentence where its package is broken."""
    try:
        found = installed(group)[name].load()
    except Exception as error:  # whatever a package of others raises
        raise broken(group, name, error) from error
    if not callable(found):
        raise ConfigError(f"{_who(group, name)} is not a function; mend or remove that package")
    return found


def called(group: str, name: str, *arguments: Any) -> Any:
    """What that function gives."""
    function = loaded(group, name)
    try:
        return function(*arguments)
    except Exception as error:
        raise broken(group, name, error) from error


def broken(group: str, name: str, error: Exception) -> ConfigError:
    """One sentence about what a package of others raised."""
    first = str(error).strip().partition("\n")[0]
    return ConfigError(f"{_who(group, name)} fails: {type(error).__name__}: {first}; mend or remove that package")


def _who(group: str, name: str) -> str:
    entry = installed(group)[name]
    package = getattr(entry.dist, "name", None) or entry.value
    return f"{name!r} of the package {package} ({group})"
