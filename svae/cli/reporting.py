"""Verbs that show what a run found: report, movies, view."""

import os
import sys
from pathlib import Path
from typing import Any

from svae.cli._app import Json, verb
from svae.cli._machine import use_compilation_cache
from svae.cli._print import print_json, print_table
from svae.cli._print import report as print_report
from svae.cli._values import whole_frames


@verb
def report(run: Path, /, *, skeleton: str | None = None, video: str | None = None, json: Json = False):
    """Write one page, RUN/report/report.html, that shows what a run found, and its figures as PNG and PDF.

    The page holds all its images and movies and needs no network; it can be sent to anybody.

    Args:
        run: The run folder.
        skeleton: Which keypoints are joined, such as nose-neck,neck-tail, or DeepLabCut's config.yaml; kept in the
            run. Unless given, the file of the keypoints or a config.yaml beside it says so, else lines are guessed.
        video: The real video of keypoints, or a folder or pattern of videos; clips of it are shown for each state.
    """
    from svae.report import report as write
    from svae.runs import Run

    use_compilation_cache()
    found = Run(run)
    _keep_skeleton(found, skeleton)
    made = write(found, video)
    told = {"page": str(made.page), "bytes": made.page.stat().st_size, "figures": len(made.figures)}
    print_report(told | _numbered(made.warnings, json), str(run), json)


def _keep_skeleton(run: Any, skeleton: str | None) -> None:
    """Write what --skeleton says into the run."""
    from svae.report._skeleton import keep

    if skeleton is not None:
        keep(run, skeleton, getattr(run.load_data().sequences[0], "points", ()))


def _numbered(warnings: list[str], json: bool):
    """A list for programs; lines of a table for people."""
    return {"warnings": warnings} if json else {f"warning {i + 1}": w for i, w in enumerate(warnings)}


@verb
def movies(
    run: Path,
    /,
    *,
    recording: str | None = None,
    length: str | None = None,
    video: str | None = None,
    json: Json = False,
):
    """Write movies of a run into RUN/movies: bouts of each state side by side, a recording with its states, forecasts.

    Args:
        run: The run folder.
        recording: The name of the recording to show with its states; the first unless given.
        length: How much of that recording to show, such as 20s or 500frames; a minute unless given.
        video: The real video of keypoints, or a folder or pattern of videos; the bouts of states are shown from it.
    """
    from svae.report import movies as write
    from svae.runs import Run

    use_compilation_cache()
    found = Run(run)
    frames = None if length is None else whole_frames(length, found.provenance().get("fps"), "--length")
    made = [
        {"file": str(path), "frames": count, "bytes": path.stat().st_size}
        for path, count in write(found, recording, frames, video)
    ]
    if json:
        print_json({"folder": str(run / "movies"), "movies": made})
    else:
        print_table(str(run / "movies"), list(made[0]), [list(row.values()) for row in made])


@verb
def view(run: Path, /, *, port: int = 0, no_browser: bool = False, json: Json = False):
    """Look at a run in the browser: recordings, states, latents and forecasts on one clock, until Ctrl-C.

    The page is served on 127.0.0.1 only, to whoever has the address that is printed. States can be named, merged and
    un-merged there; names and merges are kept in RUN/names.json.

    Args:
        run: The run folder.
        port: The port to serve on; any that is free unless given.
        no_browser: Print the address and open nothing.
    """
    import shutil

    from svae.runs import Run
    from svae.view import Viewer, show_in_browser

    viewer, opened = Viewer(Run(run), port), None
    use_compilation_cache()  # imports jax, which Ctrl-C would break: before people know of the page
    try:
        _tell_address(viewer, run, json)
        opened = None if no_browser else show_in_browser(viewer.url)
        viewer.serve()
    except KeyboardInterrupt:
        pass  # the only way out that people are told of
    finally:
        if opened is not None:
            shutil.rmtree(opened, ignore_errors=True)
    _leave()


def _leave() -> None:
    """End the process here: an orderly end would unwind threads that are inside a compiler, and that aborts."""
    sys.stdout.flush()
    os._exit(0)


def _tell_address(viewer: Any, run: Path, json: bool) -> None:
    if json:
        print_json({"url": viewer.url, "port": viewer.port, "run": str(run)})
    else:
        print(f"{run} can be seen at\n\n    {viewer.url}\n\nOnly this machine can reach it. Ctrl-C ends it.")
    sys.stdout.flush()
