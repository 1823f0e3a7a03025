"""What people tell the page, each a check of what it sent and the change of the labels that it asks for."""

from collections.abc import Callable
from typing import Any

from svae.config import ConfigError
from svae.runs import merge, rename, unmerge
from svae.view._session import Session


def name(session: Session, told: dict[str, Any]) -> Callable:
    """Call a state by a name."""
    state, text = _state(session, told.get("state")), told.get("name")
    if not isinstance(text, str):
        raise ConfigError("a name is text")
    return lambda labels: rename(labels, state, text)


def join(session: Session, told: dict[str, Any]) -> Callable:
    """Count states as one."""
    states = told.get("states")
    if not isinstance(states, list) or not 2 <= len(states) <= session.K:
        raise ConfigError("name two states or more")
    chosen, into = [_state(session, k) for k in states], _state(session, told.get("into"))
    return lambda labels: merge(labels, chosen, into)


def part(session: Session, told: dict[str, Any]) -> Callable:
    """Count a state as itself again."""
    state = _state(session, told.get("state"))
    return lambda labels: unmerge(labels, state)


def _state(session, value) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < session.K:
        raise ConfigError(f"a state is an integer from 0 to {session.K - 1}")
    return value
