"""Values as people write them: 400ms, 12frames, 2h, states=20."""

import math
import re
import tomllib
from collections.abc import Sequence
from typing import Any, NamedTuple

from svae.config import ConfigError

SECONDS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0}
FRAME_WORDS = ("frame", "frames")
NUMBER_AND_UNIT = re.compile(r"\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*([a-z]+)\s*", re.IGNORECASE)


class Duration(NamedTuple):
    """A stretch of time, in seconds or in frames."""

    value: float
    in_frames: bool

    def frames(self, rate: float | None, option: str) -> float:
        """In frames; seconds need the frame rate of the data."""
        if self.in_frames:
            return self.value
        if rate is None:
            raise ConfigError(f"{option} is in seconds but the data have no frame rate; give --fps, or say 12frames")
        return self.value * rate

    def seconds(self, rate: float | None) -> float:
        """In the unit of the data's clock: seconds, or frames where no rate is known."""
        return self.value / (rate or 1.0) if self.in_frames else self.value


def duration(text: str, option: str) -> Duration:
    """400ms, 0.4s, 2min, 1h or 12frames."""
    found = NUMBER_AND_UNIT.fullmatch(text)
    unit = found[2].lower() if found else ""
    if unit not in SECONDS and unit not in FRAME_WORDS:
        raise ConfigError(f"{option} needs a number and a unit such as 400ms, 0.4s, 2min or 12frames, not {text!r}")
    value = float(found[1])
    if not math.isfinite(value):
        raise ConfigError(f"{option} is too large: {text!r}")
    return Duration(value, True) if unit in FRAME_WORDS else Duration(value * SECONDS[unit], False)


def whole_frames(text: str, rate: float | None, option: str) -> int:
    """A duration as a number of frames, at least 1."""
    frames = round(duration(text, option).frames(rate, option))
    if not 1 <= frames <= 10**9:
        raise ConfigError(f"{option} {text} is {frames} frames; it must be at least 1")
    return frames


def assignments(settings: Sequence[str]) -> dict[str, Any]:
    """{"states": 20, "network": "conv"} from ["states=20", "network=conv"]; values are TOML, or else text."""
    return dict(map(_assignment, settings))


def _assignment(text):
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"--set needs name=value such as hidden=[64,64], not {text!r}")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name.strip(), value.strip()
