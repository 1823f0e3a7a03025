"""`movies`: a grid for each state, a recording with its states, and real, reconstructed and predicted frames."""

from collections.abc import Iterator
from pathlib import Path

from svae.data import DataError, safe_names
from svae.experiments._figures import require_matplotlib
from svae.report._beside import beside
from svae.report._bodies import bodies
from svae.report._clips import grid
from svae.report._encode import FPS, require_av, write_movie
from svae.report._film import painter
from svae.report._look import find_look, shown
from svae.report._material import Material, gather
from svae.report._scroll import scroll
from svae.report._video import filmed
from svae.runs import Run, RunError

SHOWN = 60.0  # seconds of the recording, unless told otherwise


def movies(
    run: Run, recording: str | None = None, frames: int | None = None, video: str | None = None
) -> Iterator[tuple[Path, int]]:
    """Write RUN/movies/*.mp4, yielding each file and its frames.

    `recording` is the name of the one to show with its states, `frames` how much of it; `video` is the path of the
    real video of keypoints, from which the bouts of the states are shown then.
    """
    require_matplotlib()
    require_av()
    material = gather(run)
    if material.raw is None:
        raise RunError(f"movies need the recordings again: {material.why_no_data}")
    i = _number(material, recording)
    look, data, out = find_look(material), shown(material), run.path / "movies"
    body = bodies(material)
    paint = None if body is None else painter(body, filmed(material, video))
    for part in material.each if material.pgm.discrete else ():
        for k in part.states:
            path = out / f"{part.called('state')}-{k:02d}.mp4"
            yield path, write_movie(path, grid(part, look, data, k, paint), material.fps)
    name = safe_names([material.raw.names[i]])[0]
    frames = round(SHOWN * (material.fps or FPS)) if frames is None else frames
    path = out / f"recording-{name}.mp4"
    yield path, write_movie(path, scroll(material, look, data, i, frames), material.fps)
    path = out / f"prediction-{name}.mp4"
    if len(material.raw.sequences[i]) >= 8:
        yield path, write_movie(path, beside(material, look, i), material.fps)


def _number(material: Material, recording: str | None) -> int:
    names = material.raw.names
    if recording is not None and recording not in names:
        raise DataError(f"there is no recording {recording!r}; the run has {', '.join(names[:5])}")
    return 0 if recording is None else names.index(recording)
