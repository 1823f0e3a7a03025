"""Short movies of each state inside the page: a few bouts side by side, small enough to be sent with it."""

from pathlib import Path

from svae.config import ConfigError
from svae.report._clips import grid
from svae.report._encode import FPS, require_av, write_movie
from svae.report._film import Painter
from svae.report._look import Look, shown
from svae.report._material import Material

CLIPS, RATE = 6, 30.0  # bouts in a movie; frames per second at most
QUALITY = 27  # of the encoder: smaller is better and larger
LARGEST = 1_900_000  # bytes of all movies of a page


def page_movies(
    material: Material, look: Look | None, paint: Painter | None, out: Path
) -> tuple[dict[tuple[str, int], bytes], str]:
    """The movie of each state of each block, and why there are not all of them."""
    if not material.pgm.discrete:
        return {}, ""
    if look is None:
        return {}, f"There are no movies: {material.why_no_data}."
    try:
        require_av()
    except ConfigError as error:
        return {}, f"There are no movies: {error}."
    every = max(1, round((material.fps or FPS) / RATE))
    data, found, total = shown(material), {}, 0
    states = [(part, k) for part in material.each for k in part.states]
    for part, k in states:
        path = out / f"{part.called('state')}-{k:02d}.mp4"
        write_movie(path, grid(part, look, data, k, paint, CLIPS, every), (material.fps or FPS) / every, QUALITY)
        total += path.stat().st_size
        if total > LARGEST:
            more = f"The page has movies of {len(found)} of {len(states)} states, so that it stays small enough"
            return found, f"{more} to be sent; `svae movies {material.run.path}` writes all."
        found[part.block or "", k] = path.read_bytes()
    return found, ""
