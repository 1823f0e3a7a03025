import math
import re
import time
from typing import NamedTuple

from svae import progress
from svae.progress import Plan, bar, quiet


class Step(NamedTuple):
    step: int
    total: int
    phase: str
    bound: float
    held_out: float | None
    states_in_use: float | None
    frames_per_second: float
    note: str = ""


STEPS = [
    Step(1, 3, "warm-up", -12.3456, None, None, 1e5),
    Step(2, 3, "states", math.nan, -13.5, 4.0, 123456.0, "column [2] is constant"),
    Step(3, 3, "fit", -11.0, None, 5.0, 2e5),
]


def test_steps_pass_through_unchanged_and_one_at_a_time():
    for watch in (quiet, bar):
        drawn = []
        steps = watch((drawn.append(s) or s for s in STEPS), "fit")
        assert next(steps) is STEPS[0] and drawn == STEPS[:1]
        assert list(steps) == STEPS[1:]


def drawn(capsys, monkeypatch, columns, steps, plan=None):
    """The last state of a bar on a terminal of so many columns."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    list(bar(iter(steps), "a run with a long name", plan))
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in capsys.readouterr().err.split("\n")]
    return [line.split("\r")[-1] for line in lines if line.strip()]


def test_a_wide_bar_shows_the_last_known_numbers(capsys, monkeypatch):
    *_, note, line = drawn(capsys, monkeypatch, 200, STEPS)
    assert "step 2: column [2] is constant" in note
    for text in ("a run with a …", "fitting", "3/3", "held out -13.5", "bound -11", "states 5", "200,000 frames/s"):
        assert text in line


def test_a_bar_of_80_columns_has_the_step_and_the_time_left(capsys, monkeypatch):
    long = [s._replace(step=998 + s.step, total=10_000, held_out=-1234.5) for s in STEPS]
    line = drawn(capsys, monkeypatch, 80, long, Plan(end=time.monotonic() + 3000))[-1]
    assert len(line) <= 80 and "1001/10000" in line and re.search(r"held out -1234 +50 min left *$", line)


def test_without_a_terminal_there_are_plain_lines(capsys, monkeypatch):
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    list(bar(iter(STEPS), "run 7", Plan(end=time.monotonic() + 3000)))
    told = capsys.readouterr().err
    assert "\x1b" not in told and "\r" not in told
    assert told.splitlines() == [
        "svae: run 7: compiling",
        "svae: run 7: warming up 1 of 3, bound -12.35, 50 min left",
        "svae: run 7: step 2: column [2] is constant",
        "svae: run 7: finding states 67 %, bound -12.35, held out -13.5, 4 states, 50 min left",
        "svae: run 7: fitting 3 of 3, bound -11, held out -13.5, 5 states, 50 min left",
    ]


def test_lines_come_every_few_seconds_not_at_every_step(capsys):
    list(bar(iter([STEPS[2]] * 1000), "run 7"))
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_the_time_left_follows_the_steps_and_what_comes_after(monkeypatch):
    """A clock that a test moves: 10 s for the warm-up, then 2 s a step, and labels that take 30 s."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    shown = progress._Shown("run", Plan(before=20.0, labels=30.0, fit=300.0))
    shown.take(STEPS[0])
    assert shown.left() == 350.0
    now[0] = 10.0
    assert shown.left() == 340.0
    for step in range(1, 11):
        now[0] += 2.0
        shown.take(STEPS[2]._replace(step=step, total=100, note=""))
    assert shown.left() == 90 * 2.0 + 30.0
    shown.plan = Plan(labels=30.0, end=now[0] + 60.0)
    assert shown.left() == 60.0


def test_stopping_early_closes_the_fit():
    closed = []

    def fit():
        try:
            yield from STEPS
        finally:
            closed.append(True)

    steps = bar(fit(), "fit")
    next(steps)
    steps.close()
    del steps
    assert closed == [True]
