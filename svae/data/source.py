"""Where recordings come from: all that is needed to read them again, and what they carry beside y."""

import os
from collections.abc import Mapping
from typing import Any

from .groups import load_groups
from .inputs import load_inputs
from .labels import load_labels
from .load import load
from .recordings import Recordings

# entries of a source that are paths beside the data
READERS = {"labels": load_labels, "inputs": load_inputs, "group": load_groups}


def load_source(source: Mapping[str, Any]) -> Recordings:
    """Recordings from the arguments of `load`, "path", "fps" and "dataset", and the files that go with them.

    Args:
        source: The arguments, as a run folder keeps them.

    Returns:
        `Recordings`.
    """
    found = load(source["path"], fps=source.get("fps"), dataset=source.get("dataset"))
    for name, read in READERS.items():
        found = found if source.get(name) is None else read(found, source[name])
    return found


def absolute(source: Mapping[str, Any]) -> dict[str, Any]:
    """The same with paths that hold from any folder."""
    paths = {name: source[name] for name in ("path", *READERS) if source.get(name) is not None}
    return dict(source) | {name: _absolute(path) for name, path in paths.items()}


def _absolute(path: Any) -> Any:
    whole = lambda one: os.path.abspath(os.path.expanduser(one))  # noqa: E731
    return [whole(one) for one in path] if isinstance(path, list | tuple) else whole(path)
