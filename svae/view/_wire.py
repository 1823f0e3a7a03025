"""What goes to the page: JSON for what is small, and arrays as they lie in memory for what is not."""

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from svae.config import ConfigError

KINDS = {"u1": "Uint8", "i2": "Int16", "i4": "Int32", "f4": "Float32", "f8": "Float64"}  # numpy's name -> JavaScript's
ALIGNED = 8  # bytes: typed arrays begin at multiples of their item


def packed(about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Length of a head (4 bytes, little end first), the head (JSON), then the arrays one after the other, aligned."""
    entries, parts, place = {}, [], 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
        entries[name] = {"kind": KINDS[array.dtype.str[1:]], "shape": list(array.shape), "at": place}
        data += bytes(-len(data) % ALIGNED)
        parts.append(data)
        place += len(data)
    head = json.dumps(dict(about) | {"arrays": entries}, allow_nan=False).encode()
    head += b" " * (-(4 + len(head)) % ALIGNED)
    return struct.pack("<I", len(head)) + head + b"".join(parts)


def whole(values: Mapping[str, str], name: str, low: int, high: int) -> int:
    """An integer of a query from low to high."""
    text = values.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 12 and low <= int(text) <= high):
        raise ConfigError(f"{name} must be an integer from {low} to {high}, not {text[:20]!r}")
    return int(text)


def numbers(values: Mapping[str, str], name: str, count: int) -> np.ndarray:
    """`count` finite numbers of a query, separated by commas."""
    try:
        found = np.array([float(x) for x in values.get(name, "").split(",")])
    except ValueError:
        found = np.zeros(0)
    if len(found) != count or not np.isfinite(found).all():
        raise ConfigError(f"{name} must be {count} finite numbers, separated by commas")
    return found
