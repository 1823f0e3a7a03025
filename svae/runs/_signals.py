"""Ctrl-C and SIGTERM ask a run to stop after the step it is in; asked twice, it stops at once."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator

TERMINATED = 143  # exit code: 128 + SIGTERM
NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


class Stop:
    """Remembers that somebody asked."""

    asked: int | None = None

    def ask(self, number: int, frame: object) -> None:
        """The signal handler: answers with a sentence."""
        if self.asked is not None:
            self.leave()
        self.asked = number
        say(f"{NAMES.get(number, 'a signal')}: saving and ending; once more ends at once")

    def leave(self) -> None:
        """Raise what the signal would have raised; nothing if nobody asked."""
        leave(self.asked)


def leave(asked: int | None) -> None:
    """Raise what a signal would have raised; nothing for None."""
    if asked == signal.SIGINT:
        raise KeyboardInterrupt
    if asked is not None:
        raise SystemExit(TERMINATED)


@contextlib.contextmanager
def stopping() -> Iterator[Stop]:
    """Signals are remembered inside, by one Stop however deep; Python delivers them to the main thread only."""
    stop = _current() or Stop()
    if threading.current_thread() is not threading.main_thread():
        yield Stop()
        return
    before = {number: signal.signal(number, stop.ask) for number in NAMES}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _current() -> Stop | None:
    """The Stop that answers signals now."""
    owner = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return owner if isinstance(owner, Stop) else None


def say(sentence: str) -> None:
    """A line on stderr, in place of a progress bar's. Unbuffered: a signal may come in the middle of another line."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # a session without a stderr of its own
        clear = "\r\x1b[2K" if sys.stderr.isatty() else ""
        os.write(sys.stderr.fileno(), f"{clear}svae: {sentence}\n".encode())
