"""What the page can ask, each question one function of a session and the words of a query."""

from typing import Any

import numpy as np

from svae.config import ConfigError
from svae.view import _bouts, _pictures, _zoom
from svae.view._session import Session
from svae.view._wire import numbers, packed, whole

BINS, FRAMES_AT_ONCE, SCATTER = 6000, 256, 3000  # at most in one answer


def run(session: Session, asked: dict[str, str]) -> dict[str, Any]:
    """All that holds for the whole run."""
    return {
        "name": session.run.path.resolve().name,
        "model": session.config.model,
        "latents": int(session.track(0).found.mean.shape[1]),
        "states": session.states(),
        "discrete": session.K > 1,
        "block": session.block or next(iter(session.blocks), None),
        "blocks": [_row(session.of(name), name) for name in session.blocks],
        "temporal": session.temporal,
        "fps": session.fps,
        "horizon": session.horizon,
        "recordings": [{"name": n, "frames": len(p)} for n, p in zip(session.names, session.paths, strict=True)],
    }


def _row(session: Session, name: str) -> dict[str, Any]:
    """What a block is drawn with where another one is looked at: colours and titles of its states."""
    rows = session.states()
    roots = [rows[row["root"]] for row in rows]
    titles = [root["name"] or f"state {root['state']}" for root in roots]
    return {"name": name, "colours": [root["colour"] for root in roots], "titles": titles}


def recording(session: Session, asked: dict[str, str]) -> dict[str, Any]:
    """What the tracks of one recording need to be drawn."""
    track = session.track(_recording(session, asked))
    low, high, error = _zoom.limits(track)
    shown = {"lanes": track.lanes.tolist(), "low": low.tolist(), "high": high.tolist(), "error": error}
    return shown | {"spread": np.argsort(-track.found.mean.var(0), kind="stable").tolist()}


def source(session: Session, asked: dict[str, str]) -> dict[str, Any]:
    """How frames are drawn, and why the recordings are not there, if they are not."""
    found = session.source
    arena = None if found.arena is None else found.arena.to_dict()
    return {"why": found.why, "look": found.look.to_dict(), "arena": arena}


def window(session: Session, asked: dict[str, str]) -> bytes:
    """The tracks of a stretch, in bins; its bouts one by one where they are few enough."""
    i, first, last = _stretch(session, asked)
    track, path = session.track(i), session.ethogram(i)
    edges, found = _zoom.window(track, first, last, whole(asked, "bins", 1, BINS))
    a, b = path.at(first), path.at(last - 1) + 1
    time = track.found.time
    arrays = {
        "edges": edges.astype(np.int32),
        "time": time[np.minimum(edges, len(time) - 1)],
        "low": found.low.astype(np.float32),
        "high": found.high.astype(np.float32),
        "sd": found.sd.astype(np.float32),
        "probability": np.round(255 * found.probability).astype(np.uint8),
        "error": found.error.astype(np.float32),
        "least": found.least.astype(np.float32),
        "state": _bouts.majority(path, edges, session.K).astype(np.int16),
    }
    for name in session.blocks:
        if name != (session.block or next(iter(session.blocks))):
            other = session.of(name)
            arrays[f"state_{name}"] = _bouts.majority(other.ethogram(i), edges, other.K).astype(np.int16)
    if b - a <= _zoom.BOUTS:
        arrays["start"] = np.maximum(path.start[a:b], first).astype(np.int32)
        arrays["bout"] = path.state[a:b].astype(np.int16)
    return packed({"first": first, "last": last}, arrays)


def bout(session: Session, asked: dict[str, str]) -> dict[str, Any] | None:
    """The bout at a frame, or the nearest one after or before it; with a state, the nearest of that state."""
    i = _recording(session, asked)
    path, frame = session.ethogram(i), whole(asked, "frame", 0, len(session.paths[i]) - 1)
    step = {"here": 0, "next": 1, "previous": -1}.get(asked.get("go", "here"))
    if step is None:
        raise ConfigError("go must be here, next or previous")
    if "state" in asked:
        found = _bouts.following(path, frame, whole(asked, "state", 0, session.K - 1), step or 1)
    else:
        found = path.at(frame) + step
    if found is None or not 0 <= found < len(path.start):
        return None
    first, last = path.span(found)
    return {"first": first, "last": last, "state": int(path.state[found])}


def frames(session: Session, asked: dict[str, str]) -> bytes:
    """Pictures of a stretch of the recording."""
    return packed({}, {"frames": session.frames(*_few(session, asked), asked.get("space") == "arena")})


# --- what the model is asked --------------------------------------------------------------------------------------


def decoded(session: Session, asked: dict[str, str]) -> bytes:
    """The same stretch decoded from the means of its latents, which come along."""
    from svae.view import _asking

    i, first, last = _few(session, asked)
    latents = session.track(i).found.mean[first:last]
    found = _pictures.drawable(session.source.look, _asking.decode(session.model, latents))
    return packed({}, {"frames": found, "latents": latents.astype(np.float32)})


def decode(session: Session, asked: dict[str, str]) -> bytes:
    """The picture of one latent point."""
    from svae.view import _asking

    point = numbers(asked, "x", session.track(0).found.mean.shape[1])
    found = _asking.decode(session.model, point[None])
    return packed({}, {"frames": _pictures.drawable(session.source.look, found)})


def plane(session: Session, asked: dict[str, str]) -> bytes:
    """Latents of frames spread evenly over a recording, all dimensions, and their states."""
    i = _recording(session, asked)
    mean = session.track(i).found.mean
    rows = np.unique(np.linspace(0, len(mean) - 1, SCATTER).astype(int))
    arrays = {"latents": mean[rows].astype(np.float32), "state": session.paths[i][rows].astype(np.int16)}
    return packed({}, arrays)


def forecast(session: Session, asked: dict[str, str]) -> bytes:
    """How the recording goes on after a frame, from nothing but what came before."""
    i = _recording(session, asked)
    frame = whole(asked, "frame", 0, len(session.paths[i]) - 1)
    found, look, lanes = session.predict(i, frame), session.source.look, session.track(i).lanes
    arrays = {name: getattr(found, name)[:, lanes].astype(np.float32) for name in ("mean", "low", "high")}
    arrays["states"] = np.round(255 * found.states).astype(np.uint8)
    names = ("frames", "one", *(("least", "most") if look.kind == "traces" else ()))
    arrays |= {name: _pictures.drawable(look, getattr(found, name)) for name in names}
    return packed({"first": frame + 1, "horizon": session.horizon}, arrays)


def _recording(session, asked) -> int:
    return whole(asked, "recording", 0, len(session.names) - 1)


def _stretch(session, asked) -> tuple[int, int, int]:
    """Recording, first frame, and the first after it."""
    i = _recording(session, asked)
    first = whole(asked, "first", 0, len(session.paths[i]) - 1)
    return i, first, whole(asked, "last", first + 1, len(session.paths[i]))


def _few(session, asked) -> tuple[int, int, int]:
    i, first, last = _stretch(session, asked)
    if last - first > FRAMES_AT_ONCE:
        raise ConfigError(f"ask for at most {FRAMES_AT_ONCE} frames at once")
    return i, first, last
