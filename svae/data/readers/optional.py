"""Packages that only some formats need."""

from importlib import import_module
from typing import Any

from ..recordings import DataError


def need(package: str, what: str) -> Any:
    """The package, or one sentence that says how to install it."""
    try:
        return import_module(package)
    except ImportError:
        raise DataError(
            f'{what} needs the package {package}, which is not installed; run  pip install "svae[io]"  first.'
        ) from None
