"""Verbs that show what a run found: report, movies."""

from pathlib import Path

from svae.cli._app import Json, verb
from svae.cli._machine import use_compilation_cache
from svae.cli._print import print_json, print_table
from svae.cli._print import report as print_report
from svae.cli._values import whole_frames


@verb
def report(run: Path, /, *, json: Json = False):
    """Write one page, RUN/report/report.html, that shows what a run found, and its figures as PNG and PDF.

    The page holds all its images and asks no network; it can be sent to anybody.

    Args:
        run: The run folder.
    """
    from svae.report import report as write
    from svae.runs import Run

    use_compilation_cache()
    made = write(Run(run))
    told = {"page": str(made.page), "bytes": made.page.stat().st_size, "figures": len(made.figures)}
    print_report(told | _numbered(made.warnings, json), str(run), json)


def _numbered(warnings: list[str], json: bool):
    """A list for programs; lines of a table for people."""
    return {"warnings": warnings} if json else {f"warning {i + 1}": w for i, w in enumerate(warnings)}


@verb
def movies(run: Path, /, *, recording: str | None = None, length: str | None = None, json: Json = False):
    """Write movies of a run into RUN/movies: bouts of each state side by side, a recording with its states, forecasts.

    Args:
        run: The run folder.
        recording: The name of the recording to show with its states; the first unless given.
        length: How much of that recording to show, such as 20s or 500frames; a minute unless given.
    """
    from svae.report import movies as write
    from svae.runs import Run

    use_compilation_cache()
    found = Run(run)
    frames = None if length is None else whole_frames(length, found.provenance().get("fps"), "--length")
    made = [
        {"file": str(path), "frames": count, "bytes": path.stat().st_size}
        for path, count in write(found, recording, frames)
    ]
    if json:
        print_json({"folder": str(run / "movies"), "movies": made})
    else:
        print_table(str(run / "movies"), list(made[0]), [list(row.values()) for row in made])
