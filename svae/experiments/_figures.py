"""Figures fit for a talk and numbers beside them: one style, PNG and PDF, files that are whole or absent."""

import json
import math
import os
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from svae.config import ConfigError

# Natural and standard gradients, data and model: blue and orange, told apart by every eye.
BLUE, ORANGE, GREY = "#2166ac", "#e66101", "#8a8a8a"
ARMS = ("#1b6ca8", "#e07b00", "#2a9d5c", "#c0392b", "#7d4ea8", "#00a6a6", "#8c6d31", "#d65f9c", "#5b6770", "#a3b018")
STYLE = {
    "font.size": 11,
    "axes.titlesize": 13,
    "axes.titlepad": 8,
    "axes.labelsize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 10,
    "lines.linewidth": 2.0,
    "image.cmap": "Greys",
    "pdf.fonttype": 42,  # text stays text
}


@contextmanager
def style():
    """The house style inside a `with`; the caller's own settings come back after it."""
    matplotlib = require_matplotlib()
    with matplotlib.rc_context(STYLE):
        yield


def require_matplotlib() -> Any:
    """The package, or one sentence that says how to install it."""
    try:
        import matplotlib
    except ImportError:
        raise ConfigError('figures need matplotlib, which is not installed; run  pip install "svae[figures]"') from None
    return matplotlib


def new_figure(width: float, height: float):
    """A figure of `width` x `height` inches that belongs to nobody's pyplot; make it inside `style()`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure, out: Path, name: str) -> None:
    """Write `out/name.png` (200 dpi) and `out/name.pdf`."""
    for ending, metadata in (("png", {}), ("pdf", {"CreationDate": None})):  # equal runs, equal files
        write = lambda file, e=ending, m=metadata: figure.savefig(file, format=e, dpi=200, metadata=m)  # noqa: E731
        write_atomically(out / f"{name}.{ending}", write)


def save_numbers(numbers: dict[str, Any], out: Path) -> dict[str, Any]:
    """Write `out/numbers.json` and return what it holds: plain numbers, null where one is not finite."""
    plain = _plain(numbers)
    text = json.dumps(plain, indent=2, allow_nan=False) + "\n"
    write_atomically(out / "numbers.json", lambda file: file.write(text.encode()))
    return plain


def bare(axes) -> None:
    """Axes without ticks and frame: a picture."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def _plain(value):
    if isinstance(value, dict):
        return {str(name): _plain(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "shape"):
        return _plain(np.asarray(value).tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_atomically(path: Path, write: Callable) -> None:
    """A temporary file beside `path`, renamed when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            write(file)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
