"""Work in another thread: its items and errors as they are, and an end whenever somebody asks."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from svae.runs._attended import Left, Watch, attended, done, watching
from svae.runs._signals import Stop, stopping


def test_items_errors_and_the_end_come_through_one_at_a_time():
    made = []

    def work():
        for i in range(3):
            made.append((i, threading.current_thread()))
            yield i
        raise ValueError("as it was")

    items = attended(work(), Watch(Stop()))
    assert next(items) == 0 and len(made) == 1 and made[0][1] is not threading.current_thread()
    assert [next(items), next(items)] == [1, 2]
    with pytest.raises(ValueError, match="as it was"):
        next(items)
    assert list(attended(iter([4, 5]), Watch(Stop()))) == [4, 5] and list(attended(iter([]), Watch(Stop()))) == []


def test_work_is_closed_with_its_reader():
    closed = threading.Event()

    def work():
        try:
            yield 1
        finally:
            closed.set()

    items = attended(work(), Watch(Stop()))
    next(items)
    items.close()
    assert closed.wait(60)


@pytest.mark.parametrize(("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_a_signal_is_answered_while_work_goes_on(number, error, capfd):
    """The work sends it to itself and then waits, as a compiler would: nothing but the answer can end it."""
    free = threading.Event()

    def work():
        os.kill(os.getpid(), number)
        free.wait(60)

    with watching(None) as watch, pytest.raises(error):
        done(work, watch)
    free.set()
    assert f"svae: {'Ctrl-C' if number == signal.SIGINT else 'SIGTERM'}: saving and ending" in capfd.readouterr().err


def test_the_clock_ends_work_and_says_so(capfd):
    free = threading.Event()
    with watching(0.2) as watch, pytest.raises(Left):
        done(lambda: free.wait(60), watch)
    free.set()
    assert capfd.readouterr().err.count("the time is over") == 1


def test_an_item_that_comes_in_time_is_not_lost():
    watch = Watch(Stop(), time.monotonic())
    assert watch.is_over() and list(attended(iter("ab"), watch, 60.0)) == ["a", "b"]


def test_what_is_reserved_is_taken_from_the_time():
    watch = Watch(Stop(), time.monotonic() + 1000)
    assert not watch.is_over() and 990 < watch.left() <= 1000
    watch.reserve = 1001.0
    assert watch.is_over() and watch.ends()


def test_stops_within_each_other_are_one():
    with stopping() as outer, stopping() as inner:
        assert inner is outer
    with stopping() as other:
        assert other is not outer


def test_an_interpreter_ends_while_work_waits_or_goes_on():
    """Threads that Python kills in the middle of compiled code abort it."""
    code = (
        "import time; from svae.runs._attended import Watch, attended; from svae.runs._signals import Stop;"
        "waiting = attended(iter('ab'), Watch(Stop())); next(waiting);"
        "slow = attended((time.sleep(1.0) for _ in 'ab'), Watch(Stop(), 0.0), 0.0)\n"
        "try: next(slow)\nexcept RuntimeError: print('left')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "left\n") and "FATAL" not in done.stderr
