"""A run folder as a reader sees it. Nothing here writes, and only `model` needs jax."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from svae.config import Config, ConfigError
from svae.data import Recordings
from svae.data.recordings import safe_names
from svae.fitting.scree import Scree
from svae.runs import _provenance
from svae.runs._folder import (
    BASELINES,
    BOUTS,
    CONFIG,
    MODEL,
    POSTERIOR,
    PROVENANCE,
    RESTARTS,
    RunError,
    is_held,
    read_json,
    read_metrics,
    read_text,
)
from svae.runs._names import Labels, as_counted, joined, read_labels, roots
from svae.runs._null import doubts, read_null
from svae.runs._posterior import Bout, Posterior, blocks_of, read_bouts, read_posterior, read_states
from svae.runs._quality import Quality, read_quality
from svae.runs._quality import as_counted as quality_as_counted
from svae.runs._scree import read_scree
from svae.runs._stability import Stability, Unknown, stability
from svae.runs._stability import as_counted as stability_as_counted
from svae.runs._warnings import more_states, of_states, rising
from svae.starting import Null

FORMAT = 2  # 1: bouts without a frame rate were in columns called seconds
READABLE = (1, 2)


def is_run(path: str | os.PathLike) -> bool:
    """Whether a folder holds a run that was started.

    Args:
        path: A folder.

    Returns:
        A truth value.

    Examples:
        >>> import svae
        >>> svae.runs.is_run(".")
        False
    """
    return (Path(path) / PROVENANCE).is_file()


class Run:
    """The folder of a run that is going on, was stopped, or is finished."""

    def __init__(self, path: str | os.PathLike, *, like: Any = None):
        self.path = Path(path)
        self.like = like  # a model made of the same parts, where they are of one's own
        self.block: str | None = None  # of several discrete blocks the one that it speaks of; None: the one shown
        if not is_run(self.path):
            raise RunError(f"{self.path} is not a run folder: it has no {PROVENANCE}; name the folder that `fit` wrote")
        found = self.provenance().get("format")
        if found not in READABLE:
            raise RunError(f"{self.path} has format {found!r}; this version of svae reads formats up to {FORMAT}")

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    # --- several discrete blocks --------------------------------------------------------------------------------

    @property
    def blocks(self) -> dict[str, int]:
        """How many states each discrete block has, the shown one first; nothing where the answers know only one."""
        return blocks_of(self.path)

    def of(self, block: str) -> "Run":
        """The same run; its states, bouts and labels are those of a discrete block by name."""
        if block not in self.blocks:
            known = ", ".join(self.blocks) or "one discrete block at most, which needs no name"
            raise RunError(f"{self.path} has no block {block!r}; it has {known}")
        other = Run(self.path, like=self.like)
        other.block = block
        return other

    def each(self) -> list["Run"]:
        """The run by each discrete block, the shown one first; itself where there is but one, or one is chosen."""
        return [self] if self.block else [self.of(block) for block in self.blocks] or [self]

    @property
    def _other(self) -> str | None:
        """The block that it speaks of where that is not the shown one."""
        return None if self.block is None or self.block == next(iter(self.blocks)) else self.block

    # --- what it holds ------------------------------------------------------------------------------------------

    @property
    def config(self) -> Config:
        """Every option of the model and of its fit."""
        try:
            return Config.from_toml(read_text(self.path / CONFIG))
        except ConfigError as error:
            raise RunError(f"{self.path / CONFIG} cannot be used: {error}") from None

    def provenance(self) -> dict[str, Any]:
        """Command, versions, data, device, and how the run stands: its `status`."""
        found = read_json(self.path / PROVENANCE)
        if not isinstance(found.get("data"), list) or not isinstance(found.get("sessions"), list):
            raise RunError(f"{self.path / PROVENANCE} is damaged: it says nothing of the data; restore it from a copy")
        return found

    @property
    def running(self) -> bool:
        """Whether a process is writing it now."""
        return is_held(self.path)

    def metrics(self) -> list[dict[str, Any]]:
        """One dict for each step so far; it may be read while another process writes."""
        return read_metrics(self.path)

    def held_out(self) -> float | None:
        """The held-out bound, nats per frame, of the model that the fit gives: with patience the best one."""
        line = self._measured()
        return None if line is None else line["held_out"]

    def held_out_blocks(self) -> list[float] | None:
        """The same bound of successive parts of the held-out frames; None where there is none, or the run is older."""
        line = self._measured()
        return None if line is None else line.get("blocks")

    def _measured(self) -> dict[str, Any] | None:
        """What was told when the model that the fit gives was measured."""
        found = [line for line in self.metrics() if line.get("held_out") is not None]
        if not found:
            return None
        return found[-1] if self.config.patience is None else max(found, key=lambda line: line["held_out"])

    def restarts(self) -> dict[str, Any] | None:
        """How far the restarts agree; None where there was one, or the run is older."""
        return _read(self.path / RESTARTS, lambda found: _is_table(found.get("ari")) and _known(found.get("mean_ari")))

    def baselines(self) -> dict[str, Any] | None:
        """What plain models reach on the same split; None where nobody has asked."""
        return _read(
            self.path / BASELINES,
            lambda found: isinstance(values := found.get("baselines"), dict) and all(map(_known, values.values())),
        )

    def model(self) -> Any:
        """The fitted model; before the end of the fit, the best one so far."""
        from svae.store import load_model

        finished, best = self.path / MODEL, self.path / "checkpoints" / "best"
        if not finished.exists() and not best.exists():
            raise RunError(f"{self.path} has no model yet; wait for the first measurement, or resume it")
        return load_model(finished if finished.exists() else best, like=self.like)

    def recordings(self) -> tuple[str, ...]:
        """The names of the recordings that the run was started with."""
        return tuple(entry["name"] for entry in self.provenance()["data"])

    def posterior(self, name: str) -> Posterior:
        """What the model says of one of the recordings; states that people merged are one."""
        found = read_posterior(self.answers(name))
        return as_counted(found if self.block is None else found.of(self.block), self.labels().merged)

    def states(self, name: str) -> Any:
        """The most probable state of each frame (T,), merged states as one; the rest of the file is not read."""
        found, merged = read_states(self.answers(name), self.block), self.labels().merged
        K = 1 + max(int(found.max()), *merged.values(), 0)
        return roots(merged, K)[found].astype(found.dtype)

    def answers(self, name: str) -> Path:
        """The file that holds what the model says of one of the recordings, whatever people have merged."""
        names = self.recordings()
        if name not in names:
            raise RunError(f"{self.path} has no recording {name!r}; it has {', '.join(names[:5])}")
        return self.path / POSTERIOR / f"{safe_names(names)[names.index(name)]}.nc"

    def bouts(self) -> list[Bout]:
        """Stretches of one state, recording by recording; states that people merged are one."""
        return joined(read_bouts(self.path, self.block), self.labels().merged)

    def quality(self) -> Quality | None:
        """How well the frames of each state were observed, merged states as one; None for answers that are older."""
        found = read_quality(self.path, self.block)
        return None if found is None else quality_as_counted(found, self.labels().merged)

    def stability(self) -> Stability | Unknown:
        """How well each state is found again by other restarts, or by other starts; why not, where it is not known."""
        return stability_as_counted(self.found_again(), self.labels().merged)

    def found_again(self) -> Stability | Unknown:
        """The same of the states of the model, whatever people have merged."""
        if self._other is not None:
            return Unknown(f"only the states of {next(iter(self.blocks))} are looked for again")
        return stability(self.path, self.config.restarts)

    def null(self) -> Null:
        """The recordings beside others without states, or without dynamics; why not, where it is not known."""
        return read_null(self.path)

    def scree(self) -> Scree:
        """What the first principal components of the training frames hold; why not, where it is not known."""
        return read_scree(self.path)

    @property
    def names(self) -> dict[int, str]:
        """The names that people have given to states."""
        return self.labels().names

    def labels(self) -> Labels:
        """The names that people have given to states, and which states they count as one."""
        found = read_labels(self.path)
        return found if self._other is None else found.of(self._other)

    def warnings(self) -> list[str]:
        """What should make people think twice about the data and the fit, in sentences."""
        said = [str(note) for note in self.provenance().get("notes") or []]
        if not (self.path / BOUTS).exists():
            return said
        try:
            found = [said for part in self.each() for said in part._of_states()]
            found += doubts(self.null())
        except RunError as error:
            return [*said, f"{error}."]
        return [*said, *found, *rising(self.metrics())]

    def _of_states(self) -> list[str]:
        return of_states(self._shares(), self.block or "", more_states(self.config, self.block))

    def _shares(self) -> list[float]:
        """The share of the frames of each state as people count them, of those that are left."""
        from numpy import bincount, concatenate, delete

        path = concatenate([self.states(name) for name in self.recordings()])
        K = self.posterior(self.recordings()[0]).probability.shape[1]
        merged = [k for k in self.labels().merged if k < K]
        return delete(bincount(path, minlength=K) / max(1, len(path)), merged).tolist()

    def load_data(self) -> Recordings:
        """The recordings that the run was started with, read again from where they came; RunError if they changed."""
        from svae import data

        source = self.provenance().get("source")
        if not isinstance(source, dict):
            raise RunError(f"{self.path} was started with recordings in memory; give them again")
        found = data.load_source(source)
        _provenance.require_same(self.provenance()["data"], found, self.path)
        return found


def _read(file: Path, makes_sense: Callable[[dict], bool]) -> dict[str, Any] | None:
    """What a file of the folder says; None where there is no such file."""
    if not file.exists():
        return None
    found = read_json(file)
    if not makes_sense(found):
        raise RunError(f"{file} is damaged: it is not what was written; remove it")
    return found


def _known(value: Any) -> bool:
    return value is None or isinstance(value, int | float)


def _is_table(rows: Any) -> bool:
    """Whether each row has as many entries as there are rows, and all are numbers or null."""
    good = isinstance(rows, list) and all(isinstance(row, list) and len(row) == len(rows) for row in rows)
    return good and all(_known(value) for row in rows for value in row)
