"""Everything that a page or a movie shows of a run, read once."""

import functools
from typing import Any, NamedTuple

import numpy as np

from svae.config import Config
from svae.data import DataError, Recordings, preprocessed
from svae.report._bouts import Stretch, stretches, usage
from svae.runs import Posterior, Run, RunError
from svae.runs._quality import Quality, added, quality
from svae.runs._stability import Stability, Unknown

SHARE = 0.01  # of all frames that a state in use has at least


class Material(NamedTuple):
    """A run with its answers, its model, and its recordings where they can still be read."""

    run: Run
    config: Config
    model: Any
    posteriors: dict[str, Posterior]
    stretches: list[Stretch]  # bouts in frames, recording by recording
    usage: np.ndarray  # (K,) share of all frames
    names: dict[int, str]
    merged: dict[int, int]  # states that people count as another one; posteriors, bouts and usage do so too
    fps: float | None
    raw: Recordings | None  # as they lie in their files
    seen: Recordings | None  # as the model sees them, in the units of the data
    why_no_data: str  # "" where there are data
    quality: Quality | None  # how well the frames of each state were observed; None where nobody knows
    stability: Stability | Unknown  # how well each state is found again

    @property
    def pgm(self) -> Any:
        """The latent graph, which answers for itself: its discrete blocks, whether frames see each other."""
        return self.model.pgm

    @property
    def states(self) -> list[int]:
        """Those with a share of the frames worth showing, the commonest first."""
        return [int(k) for k in np.argsort(-self.usage, kind="stable") if self.usage[k] >= SHARE]

    @property
    def most(self) -> int:
        """States that could be in use: all but those that count as another one."""
        return len(self.usage) - len(self.merged)

    def members(self, state: int) -> list[int]:
        """The states that people count as this one."""
        return sorted(k for k, root in self.merged.items() if root == state)

    @property
    def unit(self) -> str:
        """Of every duration: seconds where a clock is known."""
        return "s" if self.fps else "frames"

    def duration(self, frames: Any) -> Any:
        """Frames in that unit."""
        return frames / self.fps if self.fps else frames


def gather(run: Run) -> Material:
    """RunError where the run has no answers yet."""
    if not (run.path / "bouts.csv").exists():
        raise RunError(f"{run.path} has no answers yet; wait for the end of its fit, or go on with `svae fit --resume`")
    posteriors = {name: run.posterior(name) for name in run.recordings()}
    config, model = run.config, run.model()
    raw, why = _data(run)
    seen = None if raw is None else preprocessed(raw, model.preprocess)
    found = [s for i, p in enumerate(posteriors.values()) for s in stretches(i, p.state)]
    share = usage(list(posteriors.values()))
    labels, fps = run.labels(), _rate(run, posteriors)
    known = run.quality() or _quality(raw, posteriors, model)
    return Material(
        run, config, model, posteriors, found, share, *labels[:2], fps, raw, seen, why, known, run.stability()
    )


def _quality(raw, posteriors, model) -> Quality | None:
    """The same from the recordings, for answers that are older than states.csv."""
    if raw is None:
        return None
    one = lambda y, p: quality(y, p.state, p.probability.shape[1], model.preprocess.keep)  # noqa: E731
    return functools.reduce(added, map(one, raw.sequences, posteriors.values()))


def _data(run) -> tuple[Recordings | None, str]:
    """The recordings, or why they cannot be had."""
    try:
        return run.load_data(), ""
    except (RunError, DataError, OSError) as error:
        return None, str(error)


def _rate(run, posteriors) -> float | None:
    """Frames per second: as given, else from the clock of the first recording; None where there is neither."""
    if run.provenance().get("fps"):
        return float(run.provenance()["fps"])
    time = next(iter(posteriors.values())).time
    step = float(np.median(np.diff(time))) if len(time) > 1 else 1.0
    return None if step <= 0 or np.array_equal(time, np.arange(len(time))) else 1 / step
