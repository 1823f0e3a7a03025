"""`compare`: from the bouts of a run and a table of groups to tables, figures and words."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from svae._sealed import write_atomically
from svae.compare import _figure, _words
from svae.compare._groups import FILE, Study, read_study
from svae.compare._measures import Measure, measures
from svae.compare._statistics import is_exact, relabellings, smallest_p
from svae.compare._tables import Row, as_csv, per_animal, record, table
from svae.data import DataError, safe_names
from svae.runs import Bout, Run, RunError, is_run
from svae.runs._folder import BOUTS
from svae.runs._names import Labels, joined, read_labels
from svae.runs._posterior import blocks_of, read_all_bouts, read_bouts, states_before


class Comparison(NamedTuple):
    """What was found, ready to be written."""

    out: Path  # where `write` puts it
    study: Study
    measures: list[Measure]
    rows: dict[str, list[Row]]  # of usage, duration, transitions
    names: dict[int, str]  # of all states
    warnings: list[str]
    methods: str
    block: str = ""  # of several discrete blocks the one that was compared
    before: int = 0  # states of the blocks before it, which have colours of their own

    @property
    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """The rows under the names of their columns."""
        return {m.name: [record(row, m, self.study, self.names) for row in self.rows[m.name]] for m in self.measures}


def compare(
    folder: Path, by: str, groups: Path | None = None, reference: str | None = None, block: str | None = None
) -> Comparison:
    """Compare groups of animals and write FOLDER/compare/BY; `groups` is the table, FOLDER/groups.csv unless given.

    Of several discrete blocks one is compared, the one that is shown unless named; it has a folder of its own in BY.

    The other groups are compared with the `reference`, the first group that the table names unless given.

    The folder is a run, or what `svae apply` wrote of other recordings.
    """
    done = examine(folder, by, groups, reference, block)
    write(done)
    return done


def examine(
    folder: Path, by: str, groups: Path | None = None, reference: str | None = None, block: str | None = None
) -> Comparison:
    """The same without writing anything."""
    labels, bouts = labels_of(folder, block), bouts_of(folder, block)
    block, of = bouts[0].block if bouts else "", f" of {bouts[0].block}" if bouts and bouts[0].block else ""
    study = read_study(groups or folder / FILE, by, recordings_of(bouts), reference)
    bouts = joined((bout for bout in bouts if bout.recording in study.recordings), labels.merged)
    if len({bout.state for bout in bouts}) < 2:
        raise DataError(f"all that {folder} says of these recordings is one state{of}; there is nothing to compare")
    found = measures(bouts, study.recordings, len(study.animals))
    rows = {measure.name: table(measure, study) for measure in found}
    names = {k: labels.names.get(k, f"state {k}") for k in {bout.state for bout in bouts}}
    text = _words.methods(study, rows, _about(folder, found, bouts) | {"block": block})
    out = folder / "compare" / safe_names([by])[0] / block
    before = states_before(blocks_of(folder), block)
    return Comparison(out, study, found, rows, names, _words.warnings(study, rows), text, block, before)


def blocks_in(folder: Path) -> list[str | None]:
    """The discrete blocks that the bouts of a folder speak of, the shown one first; None alone where they name none."""
    _require_bouts(folder)
    return list(dict.fromkeys(bout.block or None for bout in read_all_bouts(folder))) or [None]


def labels_of(folder: Path, block: str | None) -> Labels:
    """What people say of the states of a block."""
    found = read_labels(folder)
    return found if block in (None, blocks_in(folder)[0]) else found.of(block)


def bouts_of(folder: Path, block: str | None = None) -> list[Bout]:
    """The bouts of a folder of answers."""
    _require_bouts(folder)
    if block not in (known := blocks_in(folder)) and block is not None:
        raise DataError(f"{folder} has no bouts of {block!r}; it has {', '.join(map(str, known))}")
    return read_bouts(folder, block)


def _require_bouts(folder: Path) -> None:
    if (folder / BOUTS).exists():
        return
    if is_run(folder):
        raise RunError(f"{folder} has no answers yet; wait for the end of its fit, or go on with `svae fit --resume`")
    raise RunError(f"{folder} has no {BOUTS}; name a folder that `svae fit` or `svae apply` wrote")


def recordings_of(bouts: list[Bout]) -> tuple[str, ...]:
    """Their names, each once."""
    return tuple(dict.fromkeys(bout.recording for bout in bouts))


def _about(folder, found, bouts):
    """What the methods say of the fit and the recordings."""
    seconds = sum(bout.stop - bout.start for bout in bouts)
    clock = next(m.unit for m in found if m.logarithmic) == "s"
    run = Run(folder) if is_run(folder) else None
    version = str((run.provenance().get("versions") or {}).get("svae")) if run else ""
    known = version if version[:1].isdigit() else ""  # a source tree has none
    return {"model": run and run.config.model, "version": known, "hours": seconds / 3600 if clock else None}


def write(done: Comparison) -> None:
    """Tables, figures, summary.json and methods.txt."""
    try:
        done.out.mkdir(parents=True, exist_ok=True)
        for name, rows in done.tables.items():
            write_atomically(done.out / f"{name}.csv", as_csv(rows))
        write_atomically(done.out / "animals.csv", as_csv(per_animal(done.measures, done.study, done.names)))
        write_atomically(done.out / "methods.txt", done.methods.encode())
        write_atomically(done.out / "summary.json", (json.dumps(summary(done), indent=1) + "\n").encode())
        for measure in done.measures:
            _figure.save(measure, done.rows[measure.name], done.study, done.names, done.out, done.before)
    except OSError as error:
        raise RunError(f"{done.out} could not be written: {error.strerror or error}") from None


def summary(done: Comparison) -> dict[str, Any]:
    """The comparison in a few values, as summary.json has it."""
    sizes, tables = done.study.sizes, done.tables
    return ({"block": done.block} if done.block else {}) | {
        "by": done.study.by,
        "groups": dict(zip(done.study.groups, sizes, strict=True)),
        "animals": len(done.study.animals),
        "recordings": len(done.study.recordings),
        "relabellings": relabellings(sizes),
        "exact": is_exact(sizes),
        "smallest_p": smallest_p(sizes),
        "tests": {name: sum(row["p"] is not None for row in rows) for name, rows in tables.items()},
        "different": {name: [_told(row) for row in rows if row["differs"]] for name, rows in tables.items()},
        "warnings": done.warnings,
        "folder": str(done.out),
    }


def _told(row):
    """A difference in the few values that matter."""
    wanted = ("state", "name", "next_state", "next_name", "group_a", "group_b", "effect", "low", "high", "effect_unit")
    return {name: row[name] for name in (*wanted, "g", "p", "q") if name in row}
