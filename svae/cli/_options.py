"""From flags, files and the data themselves to the options of a fit."""

from pathlib import Path
from typing import Any

from svae.cli._values import assignments, duration
from svae.config import ConfigError


def limit_of(text: str) -> float:
    """--max-time in seconds."""
    limit = duration(text, "--max-time")
    if limit.in_frames:
        raise ConfigError(f"--max-time needs a time such as 90s, 30min or 2h, not {text!r}")
    return limit.value


def options_of(
    given: dict[str, Any], config: Path | None, settings: list[str] | None, graph: Path | None = None
) -> dict[str, Any]:
    """Options of the configuration: those of a file, then flags, then --set; and the tables of a graph."""
    found = {**_from_file(config), **given, **assignments(settings or [])}
    return found if graph is None else found | _graph_of(graph, found)


def _graph_of(file: Path, beside: dict[str, Any]) -> dict[str, Any]:
    """The tables of a graph in a TOML file."""
    for name in ("model", "latent", "states", "latent_dim"):
        if name in beside:
            raise ConfigError(f"{name} is said by the graph in {file}; leave it out")
    found = _from_file(file)
    if not isinstance(found.get("latent"), dict) or not found["latent"]:
        raise ConfigError(
            f'{file} holds no graph: it needs a table for each block, such as [latent.z] block = "markov"'
        )
    others = [name for name in found if name != "latent"]
    if others:
        raise ConfigError(f"{file} holds {others[0]} beside the tables of [latent]; give other options with --config")
    return {"latent": found["latent"]}


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
