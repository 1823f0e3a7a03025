"""Exit codes: which error ends a command with which number, and how it is told."""

import sys

USAGE = 2
CODES = {
    "ConfigError": USAGE,
    "GraphError": USAGE,
    "DataError": 3,
    "StoreError": 4,
    "RunError": 4,
    "FitError": 5,
    "ProcessError": 6,
}
MEANINGS = {  # for --help and the docs
    0: "done",
    1: "an unexpected error; its traceback is shown",
    2: "a mistake in the command or its configuration",
    3: "data that cannot be read or used",
    4: "a run folder or a model that cannot be read or written, or is in use",
    5: "the fit failed",
    6: "another process of the run has ended, or they cannot work together",
    130: "stopped by Ctrl-C, after saving",
    143: "stopped by SIGTERM, after saving",
}


def exit_code(error: Exception) -> int | None:
    """The code of one of our own errors, None for others; by name, so that no room is imported for it."""
    ours = (c.__name__ for c in type(error).__mro__ if c.__module__.startswith("svae"))
    return next((CODES[name] for name in ours if name in CODES), None)


def tell(sentence: str, code: int, json: bool) -> int:
    """Say what happened on stderr, with --json on stdout too; returns the code."""
    print(f"svae: {sentence}", file=sys.stderr)
    if json:
        from svae.cli._print import print_json

        print_json({"error": sentence, "exit_code": code})
    return code


def tell_warning(message, category, filename, lineno, file=None, line=None) -> None:
    """A warning as one line, without the place in our source that it came from."""
    print(f"svae: {category.__name__}: {' '.join(str(message).split())}", file=sys.stderr)
