import math
from typing import NamedTuple

from svae.progress import bar, quiet


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


def test_the_bar_shows_the_last_known_numbers(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    list(bar(iter(STEPS), "run 7"))
    line = capsys.readouterr().err
    for text in (
        "run 7, fit",
        "3/3",
        "bound -11",
        "held out -13.5",
        "states 5",
        "200,000 frames/s",
        "step 2: column [2] is constant",
    ):
        assert text in line


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
