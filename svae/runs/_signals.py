"""Ctrl-C and SIGTERM ask a run to stop after the step it is in; asked twice, it stops at once."""

import contextlib
import signal
import threading
from collections.abc import Iterator

TERMINATED = 143  # exit code: 128 + SIGTERM


class Stop:
    """Remembers that somebody asked."""

    asked: int | None = None

    def ask(self, number: int, frame: object) -> None:
        """The signal handler."""
        if self.asked is not None:
            self.leave()
        self.asked = number

    def leave(self) -> None:
        """Raise what the signal would have raised; nothing if nobody asked."""
        if self.asked == signal.SIGINT:
            raise KeyboardInterrupt
        if self.asked is not None:
            raise SystemExit(TERMINATED)


@contextlib.contextmanager
def stopping() -> Iterator[Stop]:
    """Signals are remembered inside; Python delivers them to the main thread only."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, stop.ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
