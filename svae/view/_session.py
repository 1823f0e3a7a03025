"""One run that is being looked at: what was read of it, kept as long as it is of use."""

import functools
import threading
from typing import Any, NamedTuple

import numpy as np

from svae.config import ConfigError
from svae.data import DataError, Recordings, preprocessed, stretches
from svae.report import palette
from svae.report._palette import css
from svae.report._skeleton import find as skeleton
from svae.runs import Run, RunError, write_labels
from svae.runs._names import Labels, read_labels, roots
from svae.runs._posterior import read_posterior, read_states, states_before
from svae.runs._quality import Quality, as_counted, read_quality, suspects, warning
from svae.runs._stability import Stability, Unknown, number
from svae.runs._stability import as_counted as as_people_count
from svae.view import _bouts, _pictures, _zoom

SAMPLED = 400  # frames from which limits are found
SECONDS_AHEAD = 2.0
AHEAD = (20, 90)  # frames of a forecast, at least and at most


class Source(NamedTuple):
    """The recordings as they are shown, or why they are not."""

    why: str  # "" where there are recordings
    raw: Recordings | None
    shown: Recordings | None
    look: _pictures.Look
    arena: _pictures.Look | None  # of keypoints before they are turned to the body


def _observed(found: Quality | None, k: int, name: str) -> dict[str, Any]:
    """Share of the frames of a state with missing entries, the confidence of its tracker, and a warning."""
    if found is None or not found.frames[k]:
        return {"missing": None, "confidence": None, "warning": ""}
    trust = float(found.mean_confidence[k]) if found.rated[k] else None
    said = warning(found, k, name) if k in suspects(found) else ""
    return {"missing": float(found.share_incomplete[k]), "confidence": trust, "warning": said}


def _with(whole: Labels, changed: Labels) -> Labels:
    """Names and merges of the block that is shown; those of other blocks stay."""
    return changed._replace(blocks=whole.blocks)


class Session:
    """Nothing here is random, and all that is written is names.json."""

    def __init__(self, run: Run):
        if not (run.path / "bouts.csv").exists():
            raise RunError(f"{run.path} has no answers yet; wait for the end of its fit, or `svae fit --resume` it")
        self.run, self.config, self.names = run, run.config, run.recordings()
        self.blocks, self.block = run.blocks, run.block
        self.paths = [read_states(run.answers(name), run.block) for name in self.names]  # merges change while it looks
        self.K = self.track(0).found.probability.shape[1]
        self.whole: Session | None = None  # the session that has read the model and the recordings
        self._others: dict[str, Session] = {}
        self.labels = run.labels()
        self._lock, self._reading, self._predicting = threading.RLock(), threading.Lock(), threading.Lock()

    @functools.lru_cache(3)  # noqa: B019  one session a process
    def track(self, i: int) -> _zoom.Track:
        """The answers of recording i."""
        found = read_posterior(self.run.answers(self.names[i]))
        return _zoom.track(found if self.block is None else found.of(self.block))

    def of(self, block: str | None) -> "Session":
        """The session of one of several discrete blocks; this one where none is named."""
        if block is None or block == self.block:
            return self
        if self.whole is not None:
            return self.whole.of(block)
        if block not in self.blocks:
            raise ConfigError(f"block must be one of {', '.join(self.blocks) or 'none'}, not {block[:20]!r}")
        with self._lock:
            if block not in self._others:
                other = self._others[block] = Session(self.run.of(block))
                other.whole = self
            return self._others[block]

    @functools.cached_property
    def fps(self) -> float | None:
        """Frames per second; None where no clock is known."""
        if self.run.provenance().get("fps"):
            return float(self.run.provenance()["fps"])
        time = self.track(0).found.time
        step = float(np.median(np.diff(time))) if len(time) > 1 else 0.0
        return None if step <= 0 or np.array_equal(time, np.arange(len(time))) else 1 / step

    @property
    def horizon(self) -> int:
        """Frames that a forecast looks ahead."""
        return int(np.clip(round(SECONDS_AHEAD * (self.fps or 30.0)), *AHEAD))

    @property
    def temporal(self) -> bool:
        """Whether the model knows how a recording goes on."""
        return not self.model.pgm.independent

    # --- states -----------------------------------------------------------------------------------------------

    def change(self, edit: Any) -> None:
        """Labels after edit(labels) go into the run; what another viewer wrote meanwhile is kept."""
        with self._lock:
            whole, changed = read_labels(self.run.path), edit(self.run.labels())
            shown = self.block is None or self.block == next(iter(self.blocks))
            write_labels(self.run.path, _with(whole, changed) if shown else whole.with_block(self.block, changed))
            self.labels = changed

    def ethogram(self, i: int) -> _bouts.Ethogram:
        """Bouts of recording i as people count states now."""
        return self._ethograms(tuple(sorted(self.labels.merged.items())))[i]

    @functools.lru_cache(2)  # noqa: B019
    def _ethograms(self, merged: tuple) -> list[_bouts.Ethogram]:
        counted = roots(dict(merged), self.K)
        return [_bouts.ethogram(path, counted) for path in self.paths]

    def states(self) -> list[dict[str, Any]]:
        """Each state that counts as itself: colour, name, usage, durations, and what was merged into it."""
        found = [self.ethogram(i) for i in range(len(self.names))]
        counted = roots(self.labels.merged, self.K)
        colours = [css(c) for c in palette(self.K, states_before(self.blocks, self.block))]
        rows, observed, again = [], self._quality(), as_people_count(self._again, self.labels.merged)
        for k, (share, bouts, median) in enumerate(_bouts.statistics(found, self.K)):
            members = [int(m) for m in np.flatnonzero(counted == k) if m != k]
            about = {"state": k, "colour": colours[k], "name": self.labels.names.get(k, ""), "members": members}
            seconds = median / self.fps if self.fps else median
            about |= {"root": int(counted[k]), "usage": share, "bouts": bouts, "median": seconds}
            about |= {"again": number(again, k)}
            rows.append(about | _observed(observed, k, self.labels.names.get(k, f"state {k}")))
        return rows

    def _quality(self) -> Quality | None:
        """How well the frames of each state were observed, as people count states now."""
        return None if self._seen is None else as_counted(self._seen, self.labels.merged)

    @functools.cached_property
    def _again(self) -> Stability | Unknown:
        return self.run.found_again()

    @functools.cached_property
    def _seen(self) -> Quality | None:
        return read_quality(self.run.path, self.block)

    # --- model and recordings, read when first asked for ----------------------------------------------------------

    @property
    def model(self) -> Any:
        """The fitted model."""
        with self._lock:
            return self._model

    @functools.cached_property
    def _model(self):
        return self.run.model() if self.whole is None else self.whole.model

    @property
    def source(self) -> Source:
        """The recordings, read again from where the run took them, and checked."""
        with self._lock:
            return self._source

    @functools.cached_property
    def _source(self) -> Source:
        if self.whole is not None:
            return self.whole.source
        before = self.model.preprocess
        try:
            raw = self.run.load_data()
            frames = _pictures.some_frames(preprocessed(raw, before))
        except (RunError, DataError, OSError) as error:
            return Source(str(error), None, None, _pictures.find_look(self._decoded(), before, ""), None)
        look = _pictures.find_look(frames, before, getattr(raw.sequences[0], "kind", ""))
        if before.kind == "keypoints":
            look = self._with_skeleton(look, raw.sequences[0], frames)
        return Source("", raw, _pictures.shown(raw, before), look, self._arena(raw, look))

    def predict(self, i: int, frame: int) -> Any:
        """How recording i goes on after a frame; one at a time, as the first has to compile the program of all."""
        from svae.view._asking import context, predict

        if not self.temporal:
            raise ConfigError(f"the model ({self.config.model}) has no dynamics in time, so it cannot forecast")
        if self.source.raw is None:
            raise RunError(f"a forecast needs the recording: {self.source.why}")
        seen = context(frame)
        past = stretches(self.source.raw, [(i, seen.start, seen.stop)])
        read = past._replace(sequences=(self._read(self.source.raw.sequences[i], seen),), times=())
        with self._predicting if self.whole is None else self.whole._predicting:
            return predict(self.model, read, self.horizon, self.K, self.block)

    def _decoded(self) -> np.ndarray:
        """Frames from which limits are found where there are no recordings."""
        from svae.view._asking import decode

        mean = self.track(0).found.mean
        return decode(self.model, mean[np.unique(np.linspace(0, len(mean) - 1, SAMPLED).astype(int))])

    def _with_skeleton(self, look, sequence, frames) -> _pictures.Look:
        """The lines, names and sides of the points, as the report has them."""
        before = self.model.preprocess
        body = np.array(before.body)
        found = skeleton(self.run, sequence, before.keep, frames[:, : len(before.keep), :2], body)
        return look._replace(edges=found.edges, names=found.names, sides=found.sides, nose=found.nose)

    def _arena(self, raw, look) -> _pictures.Look | None:
        before = self.model.preprocess
        if before.kind != "keypoints":
            return None
        frames = _pictures.some_frames(raw)[:, list(before.keep)]
        return _pictures.points_look(frames, _pictures.ARENA)._replace(
            edges=look.edges, names=look.names, sides=look.sides, nose=look.nose, upwards=look.upwards
        )

    def frames(self, i: int, first: int, last: int, arena: bool) -> np.ndarray:
        """Frames [first, last) of recording i, as the page draws them."""
        source = self.source
        if source.raw is None:
            raise RunError(source.why)
        if arena and source.arena is not None:
            points = self._read(source.raw.sequences[i], slice(first, last))[:, list(self.model.preprocess.keep)]
            return _pictures.drawable(source.arena, points)
        return _pictures.drawable(source.look, self._read(source.shown.sequences[i], slice(first, last)))

    def _read(self, y: Any, frames: slice) -> np.ndarray:
        """One at a time: a video has one place from which it goes on."""
        with self._reading if self.whole is None else self.whole._reading:
            return np.asarray(y[frames])
