"""Work in a thread of its own, while this one answers signals and the clock.

Python hears a signal in its main thread, between two of its own instructions: a compiler, a long product or a slow disk
would keep it waiting for minutes. So work runs beside it, one item at a time, and whoever is asked to end and does not
get the next item soon leaves the work behind. Nothing that is left behind writes: only this thread does.
"""

import contextlib
import contextvars
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from svae.runs._signals import Stop, say, stopping

GRACE = 3.0  # seconds that work gets for its next item after somebody asked, or when its time is over
POLL, IDLE = 0.1, 1.0  # seconds between two looks at the clock, and at whether the interpreter ends
THREAD = "svae work"
Item = TypeVar("Item")


class Left(RuntimeError):
    """Work that was left behind, in the middle of an item."""


class Watch:
    """What may end work: a signal, or the clock."""

    def __init__(self, stop: Stop, end: float | None = None):
        self.stop = stop
        self.end = end  # of the monotonic clock
        self.reserve = 0.0  # seconds before the end that are needed for something else
        self.over = False  # what all processes of a run have agreed
        self.agreed: int | None = None  # the signal that one of them got
        self._said = False

    def left(self) -> float | None:
        """Seconds until the end, the reserve kept; None where there is no end."""
        return None if self.end is None else self.end - self.reserve - time.monotonic()

    def is_over(self) -> bool:
        """Whether the time is over; the first time it is, a sentence says so."""
        left = self.left()
        over = left is not None and left <= 0
        if over and not self._said:
            self._said = True
            say("the time is over; saving and ending")
        return over

    def ends(self) -> bool:
        """Whether somebody asked, or the time is over."""
        return self.stop.asked is not None or self.is_over()


@contextlib.contextmanager
def watching(limit: float | None) -> Iterator[Watch]:
    """Signals and a limit in seconds from now, for all that happens inside.

    Args:
        limit: Seconds; None for no limit.
    """
    end = None if limit is None else time.monotonic() + limit
    with stopping() as stop:
        yield Watch(stop, end)


class _Outcome(NamedTuple):
    item: Any
    error: BaseException | None


def attended(work: Iterator[Item], watch: Watch, grace: float = GRACE) -> Iterator[Item]:
    """The items of `work`, computed in another thread; Left when one is not there `grace` seconds after the end."""
    asked, given = queue.SimpleQueue(), queue.SimpleQueue()
    run = contextvars.copy_context().run
    thread = threading.Thread(target=run, args=(_work, work, asked, given, _precision()), name=THREAD)
    thread.start()
    try:
        while True:
            asked.put(True)
            found = _next(given, watch, grace)
            if isinstance(found.error, StopIteration):
                return
            if found.error is not None:
                raise found.error
            yield found.item
    finally:
        asked.put(False)
        thread.join(POLL)


def done(work: Callable[[], Item], watch: Watch, grace: float = 0.0) -> Item:
    """What `work()` gives; Left, or what the signal raises, when it is to end before that.

    Args:
        work: A function without arguments.
        watch: What `watching` gives.
        grace: Seconds that it may still take when it is to end.

    Returns:
        Its result.
    """
    try:
        with contextlib.closing(attended((call() for call in (work,)), watch, grace)) as items:
            found = next(items)
    except Left:
        watch.stop.leave()
        raise
    watch.stop.leave()
    return found


def left_behind() -> bool:
    """Whether some work is still going on that nobody waits for."""
    return any(thread.name == THREAD for thread in threading.enumerate())


def _work(work: Iterator, asked: queue.SimpleQueue, given: queue.SimpleQueue, precision: Any) -> None:
    with precision:
        while _is_asked(asked):
            try:
                given.put(_Outcome(next(work), None))
            except BaseException as error:
                given.put(_Outcome(None, error))
        if hasattr(work, "close"):
            work.close()


def _is_asked(asked: queue.SimpleQueue) -> bool:
    """Wait until the next item is asked for; not when nobody will any more, because the interpreter ends."""
    while threading.main_thread().is_alive():
        with contextlib.suppress(queue.Empty):
            return asked.get(timeout=IDLE)
    return False


def _precision() -> contextlib.AbstractContextManager:
    """The precision of this thread for another one: jax keeps it by thread. Nothing where jax is not in use yet."""
    import sys

    if "jax" not in sys.modules:
        return contextlib.nullcontext()
    import jax

    return jax.enable_x64(bool(jax.config.jax_enable_x64))


def _next(given: queue.SimpleQueue, watch: Watch, grace: float) -> _Outcome:
    since = None
    while True:
        with contextlib.suppress(queue.Empty):
            return given.get(timeout=POLL)
        if since is None and watch.ends():
            since = time.monotonic()
        if since is not None and time.monotonic() - since >= grace:
            raise Left("the work did not end in time and was left behind")
