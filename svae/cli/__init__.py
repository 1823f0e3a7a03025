"""The command line; numpy, jax and the rest are imported only when a command needs them."""

import contextlib
import inspect
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator

from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError

from svae.cli import (
    asking,
    benching,
    checking,
    comparing,
    experiments,
    exporting,
    fitting,
    judging,
    looking,
    predicting,
    reporting,
    sweeping,
)
from svae.cli._app import app, command
from svae.cli._errors import USAGE, exit_code, tell, tell_warning
from svae.cli._machine import quiet_compiler

__all__ = ["app", "asking", "benching", "checking", "comparing", "experiments", "exporting", "fitting", "looking"]
__all__ += ["judging", "main", "predicting", "reporting", "sweeping"]
INTERRUPTED, TERMINATED = 130, 143  # 128 + SIGINT, SIGTERM


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    command.set(("svae", *arguments))
    if not {"--coordinator", "--distributed"} & set(arguments):
        quiet_compiler()
    with warnings.catch_warnings():
        warnings.showwarning = tell_warning
        with _terminated():
            code = _run(arguments, "--json" in arguments)
    _leave_work_behind(code)
    return code


@contextlib.contextmanager
def _terminated() -> Iterator[None]:
    """SIGTERM ends a command as Ctrl-C does, with a sentence; a verb that has something to save answers it itself."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _exit(number: int, frame: object) -> None:
    raise SystemExit(TERMINATED)


def _leave_work_behind(code: int) -> None:
    """End now if work was left in the middle of something: an orderly end would wait for it."""
    if "svae.runs._attended" in sys.modules and sys.modules["svae.runs._attended"].left_behind():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _missing(error: MissingArgumentError) -> str:
    """What a verb cannot do without, or an option that was given without its value."""
    verb = " ".join(("svae", *(error.command_chain or ())))
    if error.keyword or error.argument.tokens:
        return f"{error} See {verb} --help."
    return f"{verb.removeprefix('svae ')} needs {error.argument.name}; see {verb} --help."


def _too_many(error: UnusedCliTokensError) -> str:
    """Words that have no place; beside DATA they are the files of a pattern that the shell has taken apart."""
    chain = error.command_chain or ()
    if chain and (function := app[chain[0]].default_command) is not None:
        parameters = inspect.signature(function).parameters.values()
        names = [p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_ONLY]
        if names and "data" not in names:
            extra, takes = ", ".join(map(repr, error.unused_tokens)), " and ".join(name.upper() for name in names)
            return f"svae {chain[0]} takes {takes} alone; {extra} has no place. See svae {chain[0]} --help."
    return f'{error} Quote a pattern: "day1/*.csv". See svae --help.'


def _run(arguments, json):
    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value") or 0
        sys.stdout.flush()
        return code
    except UnusedCliTokensError as error:
        return tell(_too_many(error), USAGE, json)
    except MissingArgumentError as error:
        return tell(_missing(error), USAGE, json)
    except CycloptsError as error:
        return tell(f"{error} See svae --help.", USAGE, json)
    except KeyboardInterrupt:
        return tell("stopped by Ctrl-C; what was saved is intact", INTERRUPTED, json)
    except SystemExit as error:
        if error.code == TERMINATED:
            return tell("stopped by SIGTERM; what was saved is intact", TERMINATED, json)
        return error.code if error.code not in (None, 1) else 0  # with 1 rich leaves when `head` has seen enough
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to flush at exit
        return 0
    except Exception as error:
        code = exit_code(error)
        if code is None:
            tell(f"unexpected {type(error).__name__}: {error}", 1, json)
            raise
        return tell(str(error), code, json)
