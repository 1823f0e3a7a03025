"""Everything that a page or a movie shows of a run, read once."""

import dataclasses
import functools
from typing import Any, NamedTuple, Union

import numpy as np

from svae.config import Config
from svae.data import DataError, Recordings, preprocessed
from svae.report._bouts import Stretch, stretches, usage
from svae.report._palette import palette
from svae.runs import Posterior, Run, RunError
from svae.runs._posterior import states_before
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
    block: str | None = None  # whose states these are, where there are several discrete blocks
    before: int = 0  # states of the blocks before it, which have colours of their own
    blocks: tuple[Union["Material", None], ...] = ()  # the same by each discrete block, where there are several

    @property
    def pgm(self) -> Any:
        """The latent graph, which answers for itself; what it says of states it says of this block."""
        return self.model.pgm if self.block is None else dataclasses.replace(self.model.pgm, shown=self.block)

    @property
    def each(self) -> tuple["Material", ...]:
        """The same by each discrete block, the shown one first; itself where there is one."""
        return self.blocks or (self,)

    @property
    def of(self) -> str:
        """What names it in a sentence, such as " of z"; nothing where there is one discrete block."""
        return f" of {self.block}" if self.block else ""

    def called(self, name: str) -> str:
        """A name of a figure or a file: those of further blocks have theirs in it."""
        return f"{name}-{self.block}" if self.before else name

    @property
    def target(self) -> float | None:
        """Mean frames of a bout that were asked for; they are asked of the block that is shown."""
        return None if self.before else self.config.target_duration

    @property
    def colours(self) -> np.ndarray:
        """The colours of the states (K, 3)."""
        return palette(len(self.usage), self.before)

    @property
    def states(self) -> list[int]:
        """The states with a share of the frames worth showing, the commonest first."""
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
        """The unit of every duration: seconds where the frame rate is known."""
        return "s" if self.fps else "frames"

    @property
    def clock(self) -> str:
        """The same in full, for an axis."""
        return "seconds" if self.fps else "frames"

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
    (names, merged, _), fps = run.labels(), _rate(run, posteriors)
    known, again = run.quality() or _quality(raw, posteriors, model), run.stability()
    whole = Material(run, config, model, posteriors, found, share, names, merged, fps, raw, seen, why, known, again)
    parts = run.each() if run.block is None else []
    return whole._replace(blocks=tuple(_of_block(whole, part) for part in parts)) if len(parts) > 1 else whole


def _of_block(whole: Material, run: Run) -> Material:
    """The same with the states of one block."""
    posteriors = {name: run.posterior(name) for name in run.recordings()}
    names, merged, _ = run.labels()
    return whole._replace(
        run=run,
        posteriors=posteriors,
        stretches=[s for i, p in enumerate(posteriors.values()) for s in stretches(i, p.state)],
        usage=usage(list(posteriors.values())),
        names=names,
        merged=merged,
        quality=run.quality(),
        stability=run.stability(),
        block=run.block,
        before=states_before(run.blocks, run.block),
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
