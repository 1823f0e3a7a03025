"""Verbs that show what a run found: report, movies."""

from pathlib import Path

from svae.cli._app import Json, verb
from svae.cli._machine import use_compilation_cache
from svae.cli._print import report as print_report


@verb
def report(run: Path, /, *, json: Json = False):
    """Write one page, RUN/report/report.html, that shows what a run found, and its figures as PNG and PDF.

    The page holds all its images and asks no network; it can be sent to anybody.

    Args:
        run: The run folder.
    """
    from svae.experiments._figures import require_matplotlib

    require_matplotlib()
    use_compilation_cache()
    from svae.report import report as write
    from svae.runs import Run

    made = write(Run(run))
    told = {"page": str(made.page), "bytes": made.page.stat().st_size, "figures": len(made.figures)}
    print_report(told | _numbered(made.warnings, json), str(run), json)


def _numbered(warnings: list[str], json: bool):
    """A list for programs; lines of a table for people."""
    return {"warnings": warnings} if json else {f"warning {i + 1}": w for i, w in enumerate(warnings)}
