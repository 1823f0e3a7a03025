"""Ways to watch a fit from the command line: each takes the steps of a `fit` and passes them on unchanged."""

import math
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

LINE_EVERY = 5.0  # seconds between two lines where there is no terminal
RECENT = 50  # steps that say how long one takes
TITLE = 14  # characters
WIDE = 110  # columns that the further numbers need
BEGINNING = "compiling"  # before the first step
WORDS = {"warm-up": "warming up", "states": "finding states", "start": BEGINNING, "fit": "fitting", "end": "ending"}
WORDS |= {"labels": "labelling", "restarts": "comparing"}


class Plan(NamedTuple):
    """Seconds that are forecast, and the end that was asked for."""

    before: float = 0.0  # until the first step of the fit
    labels: float = 0.0
    fit: float = 0.0  # all of its steps
    end: float | None = None  # of the monotonic clock


def quiet(steps: Iterable, title: str) -> Iterator:
    """Show nothing."""
    yield from steps


def bar(steps: Iterable, title: str, plan: Plan | None = None) -> Iterator:
    """A bar of 80 columns on a terminal, else a plain line every few seconds; both with step and time left."""
    console = Console(stderr=True)
    shown = _Shown(title, plan or Plan())
    return _live(steps, shown, console) if console.is_terminal else _lines(steps, shown)


def _live(steps: Iterable, shown: "_Shown", console: Console) -> Iterator:
    with Progress(*_columns(console.width >= WIDE), console=console, refresh_per_second=4) as progress:
        task = progress.add_task(_short(shown.title), total=None, **shown.fields())
        for step in steps:
            shown.take(step)
            progress.update(task, completed=shown.done, total=shown.total, **shown.fields())
            if step.note:
                progress.console.print(f"step {step.step}: {step.note}", markup=False, highlight=False)
            yield step


def _lines(steps: Iterable, shown: "_Shown") -> Iterator:
    phase, told = BEGINNING, time.monotonic()
    _print(f"{shown.title}: {BEGINNING}")
    for step in steps:
        shown.take(step)
        if step.note:
            _print(f"{shown.title}: step {step.step}: {step.note}")
        now = time.monotonic()
        if shown.phase != phase or now - told >= LINE_EVERY:
            _print(shown.line())
            phase, told = shown.phase, now
        yield step


def _print(line: str) -> None:
    print(f"svae: {line}", file=sys.stderr, flush=True)


def _columns(wide: bool) -> tuple:
    more = "bound {task.fields[bound]}", "states {task.fields[states_in_use]}", "{task.fields[speed]} frames/s"
    return (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TextColumn("{task.fields[phase]}"),
        BarColumn(bar_width=10),
        TextColumn("{task.fields[count]}"),
        TextColumn("held out {task.fields[held_out]}"),
        *(TextColumn(text) for text in (more if wide else ())),
        TextColumn("{task.fields[left]}"),
    )


def _short(title: str) -> str:
    return title if len(title) <= TITLE else f"{title[: TITLE - 1]}…"


class _Shown:
    """What is known by now; a number that a step does not have stays as it was."""

    def __init__(self, title: str, plan: Plan):
        self.title, self.plan, self.began = title, plan, time.monotonic()
        self.phase, self.done, self.total, self.count = BEGINNING, 0.0, None, ""
        self.numbers = {"bound": "–", "held_out": "–", "states_in_use": "–", "speed": "–"}
        self.taken: deque[tuple[float, float]] = deque(maxlen=RECENT)  # when the last steps of a phase were taken

    def take(self, step: Any) -> None:
        phase = WORDS.get(step.phase, step.phase)
        share = getattr(step, "share", None)
        if step.phase == "states" and share == 1.0:
            phase = BEGINNING
        if phase != self.phase:
            self.taken.clear()
        self.phase = phase
        self.done, self.total = (share, 1.0) if share is not None else (step.step, step.total)
        self.taken.append((time.monotonic(), self.done))
        percent = step.phase in ("states", "labels")
        counted = f"{100 * self.done / max(self.total, 1e-9):.0f} %" if percent else f"{step.step}/{step.total}"
        self.count = "" if phase == BEGINNING else counted
        self.numbers |= _numbers(step)

    def left(self) -> float | None:
        """Seconds until all is done, about; None while nobody knows."""
        now, plan = time.monotonic(), self.plan
        found = self._by_steps()
        if found is None and self.phase == WORDS["labels"]:
            found = plan.labels or None
        elif found is None and plan.fit:
            found = max(plan.before - (now - self.began), 0.0) + plan.fit + plan.labels
        if plan.end is None:
            return found
        return max(0.0, plan.end - now) if found is None else max(0.0, min(found, plan.end - now))

    def _by_steps(self) -> float | None:
        after = {WORDS["fit"]: self.plan.labels, WORDS["labels"]: 0.0}.get(self.phase)
        if after is None or len(self.taken) < 3:
            return None
        (first, before), (last, done) = self.taken[0], self.taken[-1]
        return None if done <= before else (self.total - done) * (last - first) / (done - before) + after

    def fields(self) -> dict[str, str]:
        """For the bar."""
        left = self.left()
        return self.numbers | {"phase": self.phase, "count": self.count, "left": _span(left, "left")}

    def line(self) -> str:
        """All of it as a sentence."""
        counted = f" {self.count.replace('/', ' of ')}" if self.count else ""
        known = {"bound": "bound {}", "held_out": "held out {}", "states_in_use": "{} states"}
        numbers = [text.format(self.numbers[name]) for name, text in known.items() if self.numbers[name] != "–"]
        left = _span(self.left(), "left")
        return ", ".join([f"{self.title}: {self.phase}{counted}", *numbers, *([left] if left else [])])


def _span(seconds: float | None, word: str) -> str:
    """Seconds in words of one unit."""
    if seconds is None or not math.isfinite(seconds):
        return ""
    if seconds < 100:
        return f"{seconds:.0f} s {word}"
    return f"{seconds / 60:.0f} min {word}" if seconds < 6000 else f"{seconds / 3600:.1f} h {word}"


def _numbers(step: Any) -> dict[str, str]:
    """The numbers that this step has; a held-out bound is not measured at every step, so the last one stays."""
    found = {
        "bound": _text(step.bound, ".4g"),
        "held_out": _text(step.held_out, ".4g"),
        "states_in_use": None if step.phase == "warm-up" else _text(step.states_in_use or None, ".0f"),
        "speed": _text(step.frames_per_second, ",.0f"),
    }
    return {name: text for name, text in found.items() if text is not None}


def _text(value: float | int | None, form: str) -> str | None:
    """The number as text; None where it is None or not a number."""
    return None if value is None or value != value else format(float(value), form)
