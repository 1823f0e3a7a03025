"""Ways to watch a fit from the command line: each takes the steps of a `fit` and passes them on unchanged."""

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn


def quiet(steps: Iterable, title: str) -> Iterator:
    """Show nothing."""
    yield from steps


def bar(steps: Iterable, title: str) -> Iterator:
    """A progress bar: phase, bound, held-out bound, states in use, frames per second, time left; notes go above it."""
    shown = {"bound": "–", "held_out": "–", "states_in_use": "–", "frames_per_second": "–"}
    with Progress(*_columns(), console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=None, **shown)
        for step in steps:
            shown |= _numbers(step)
            about = f"{title}, {step.phase}"
            progress.update(task, description=about, completed=step.step, total=step.total, **shown)
            if step.note:
                progress.console.print(f"step {step.step}: {step.note}", markup=False, highlight=False)
            yield step


def _columns():
    return (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("bound {task.fields[bound]}"),
        TextColumn("held out {task.fields[held_out]}"),
        TextColumn("states {task.fields[states_in_use]}"),
        TextColumn("{task.fields[frames_per_second]} frames/s"),
        TimeRemainingColumn(),
    )


def _numbers(step):
    """The numbers that this step has; a held-out bound is not measured at every step, so the last one stays."""
    found = {
        "bound": _text(step.bound, ".4g"),
        "held_out": _text(step.held_out, ".4g"),
        "states_in_use": _text(step.states_in_use, ".0f"),
        "frames_per_second": _text(step.frames_per_second, ",.0f"),
    }
    return {name: text for name, text in found.items() if text is not None}


def _text(value, form):
    """The number as text; None where it is None or not a number."""
    return None if value is None or value != value else format(float(value), form)
