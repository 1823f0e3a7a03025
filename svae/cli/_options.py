"""From flags, files and the data themselves to the options of a fit."""

from pathlib import Path
from typing import Any

from svae.cli._values import assignments, duration
from svae.config import Config, ConfigError

LONG = 500  # frames; longer recordings are fitted in windows unless told otherwise
WINDOW, OVERLAP = 200, 20
PATIENCE = 4  # measurements of the held-out bound, ten in a fit, without improvement before it stops early
SAMPLED = 2000  # frames that are looked at for missing entries


def limit_of(text: str) -> float:
    """--max-time in seconds."""
    limit = duration(text, "--max-time")
    if limit.in_frames:
        raise ConfigError(f"--max-time needs a time such as 90s, 30min or 2h, not {text!r}")
    return limit.value


def options_of(given: dict[str, Any], config: Path | None, settings: list[str] | None) -> dict[str, Any]:
    """Options of the configuration: those of a file, then flags, then --set."""
    return {**_from_file(config), **given, **assignments(settings or [])}


def _from_file(config: Path | None) -> dict[str, Any]:
    """The options that a TOML file sets."""
    import tomllib

    if config is None:
        return {}
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{config} could not be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{config} is not valid TOML: {error}") from None


def in_frames(options: dict[str, Any], rate: float | None) -> dict[str, Any]:
    """The target duration as the configuration keeps it."""
    text = options.get("target_duration")
    if not isinstance(text, str):
        return options
    return options | {"target_duration": duration(text, "--target-duration").frames(rate, "--target-duration")}


def suited(options: dict[str, Any], recordings: Any) -> dict[str, Any]:
    """Options that depend on the data: windows for long recordings, a mask channel where entries are missing."""
    import numpy as np

    from svae.data import sample_frames

    found, model = {"patience": PATIENCE}, options.get("model", "slds")
    if model in ("hmm", "lds", "slds") and "window" not in options and max(map(len, recordings.sequences)) > LONG:
        found |= {"window": WINDOW, "overlap": OVERLAP}
    if np.isnan(sample_frames(recordings, SAMPLED, seed=0)).any():
        found["missing"] = True
    return found | (_time_scale(options, recordings) if model in ("hmm", "slds") else {})


def _time_scale(options, recordings) -> dict[str, Any]:
    """How long a state lasts, from how long the data remember, and as many prior counts as there are states."""
    from svae._model import DEFAULT_STATES
    from svae.data import bout_frames, find_preprocess, preprocessed

    found = {"concentration": float(options.get("states") or DEFAULT_STATES)}  # a switch never seen stays possible
    if "stickiness" in options or "target_duration" in options:
        return found
    seen = preprocessed(recordings, find_preprocess(recordings, Config.make(options)))
    return found | {"target_duration": bout_frames(seen)}
