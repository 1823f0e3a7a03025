"""One command as several processes: how they find each other, and the last words when one of them is gone.

The runtime of jax ends a process with a page of text and SIGABRT when it loses the coordinator. Here that becomes one
sentence and an exit code: what the runtime says goes to a file, and SIGABRT is answered.
"""

import contextlib
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from svae.cli._errors import CODES, exit_code, tell
from svae.config import ConfigError

ABORTED, INTERRUPTED = 134, 130  # 128 + SIGABRT, SIGINT
JOIN = 300  # seconds in which all processes must come
LOST = (b"distributed service", b"coordination", b"collective", b"rendezvous")  # what the runtime then speaks of
_kept: list[Any] = []  # C calls this: it must outlive the call that set it


class Processes(NamedTuple):
    """Who takes part: as the flags say it, or to be found from the cluster."""

    coordinator: str | None
    count: int | None
    id: int | None
    found: bool


@contextlib.contextmanager
def together(who: Processes, json: bool) -> Iterator[bool]:
    """Join the other processes; gives whether this one is the first, the one that writes. One alone is."""
    flags = [who.coordinator is None, who.count is None, who.id is None]
    if all(flags) and not who.found:
        yield True
        return
    if any(flags) and not who.found:
        raise ConfigError("several processes need --coordinator, --processes and --process-id, or --distributed")
    if who.id is not None and who.count is not None and not 0 <= who.id < who.count:
        raise ConfigError(f"--process-id must be at least 0 and below --processes {who.count}, not {who.id}")
    with tempfile.TemporaryFile("a+b") as noise:
        _answer_abort(noise, who, json)
        try:
            _join(who)
            import jax

            yield jax.process_index() == 0
        except BaseException as error:
            _leave(_told(error, json), noise)


def _join(who: Processes) -> None:
    import jax

    from svae.devices import ProcessError

    jax.config.update("jax_enable_preemption_service", False)  # SIGTERM is ours
    method = None if who.found else "deactivate"
    try:
        jax.distributed.initialize(
            who.coordinator, who.count, who.id, cluster_detection_method=method, initialization_timeout=JOIN
        )
    except (RuntimeError, ValueError) as error:
        where = who.coordinator or "the coordinator that the cluster names"
        raise ProcessError(
            f"the processes did not find each other at {where} ({' '.join(str(error).split())[:200]}); check the "
            "address and that every process was started, or give --coordinator, --processes and --process-id"
        ) from error


def _answer_abort(noise: IO, who: Processes, json: bool) -> None:
    """From here on the runtime speaks to a file, Python to its streams as before; SIGABRT ends with one sentence."""
    import ctypes

    sys.stdout, sys.stderr = (_apart(stream, number, noise) for number, stream in ((1, sys.stdout), (2, sys.stderr)))

    def last_words(number):
        noise.seek(0)
        said = noise.read().lower()
        if not any(word in said for word in LOST):
            _leave(None, noise)
        tell(_gone(who), CODES["ProcessError"], json)
        _leave(CODES["ProcessError"], noise)

    _kept.append(ctypes.CFUNCTYPE(None, ctypes.c_int)(last_words))
    with contextlib.suppress(AttributeError, TypeError, OSError):  # a system without a C library to ask
        ctypes.CDLL(None).signal(int(signal.SIGABRT), _kept[-1])


def _apart(stream: IO, number: int, noise: IO) -> IO:
    """Python's own way to where descriptor `number` leads; the descriptor leads to `noise` from now on."""
    stream.flush()
    own = os.fdopen(os.dup(number), "w", buffering=1, encoding=stream.encoding, errors=stream.errors)
    os.dup2(noise.fileno(), number)
    return own


def _gone(who: Processes) -> str:
    if who.count is None or who.id is None:
        import jax

        who = who._replace(count=jax.process_count(), id=jax.process_index())
    from svae.devices import gone

    return gone(who.id, who.count)


def _told(error: BaseException, json: bool) -> int | None:
    """Say how this process ended, and give its exit code; None for an unexpected error."""
    if isinstance(error, KeyboardInterrupt):
        return tell("stopped by Ctrl-C; what was saved is intact", INTERRUPTED, json)
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        return tell("stopped by SIGTERM; what was saved is intact", error.code, json)
    code = exit_code(error) if isinstance(error, Exception) else None
    tell(str(error) if code else f"unexpected {type(error).__name__}: {error}", code or 1, json)
    return code


def _leave(code: int | None, noise: IO) -> None:
    """End now: an orderly end would wait for processes that are gone. Without a code, tell all that is known."""
    if code is None:
        if sys.exc_info()[1] is not None:
            traceback.print_exc()
        noise.seek(0)
        sys.stderr.write(noise.read().decode(errors="replace"))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if code is not None else 1 if sys.exc_info()[1] is not None else ABORTED)
