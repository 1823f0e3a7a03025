"""The verb export: the answers of a run in other programs' formats."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from svae.cli._app import Json, verb
from svae.cli._print import report


@verb
def export(
    run: Path, /, *, to: Literal["csv", "parquet", "netcdf", "nwb"], out: Path | None = None, json: Json = False
):
    """Write the states, probabilities, latents and bouts of a run as tables, netCDF or NWB, one file per recording.

    Args:
        run: A run folder.
        to: The format; parquet and nwb need the extra svae[io].
        out: The folder to write; RUN/export-FORMAT unless given.
    """
    from svae.data import safe_names
    from svae.runs import Run, RunError

    source = Run(run)
    out = out or run / f"export-{to}"
    write, files = WRITERS[to], []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, safe in zip(source.recordings(), safe_names(source.recordings()), strict=True):
            files.append(write(source, name, out / safe))
        files.append(_bouts(source, out / "bouts.csv"))
    except OSError as error:
        raise RunError(f"{out} could not be written: {error.strerror or error}") from None
    report({"folder": str(out), "files": [str(file) for file in files], "count": len(files)}, str(run), json)


def columns(run: Any, name: str) -> dict[str, Any]:
    """One column per number of a frame: time_s, state, name, probability, latent_0, ..., error.

    Of several discrete blocks the shown one has these names; those of every other one end with its name.
    """
    found, D = run.posterior(name), run.posterior(name).mean.shape[1]
    states = [_of_states(part, name, f"_{part.block}" if i else "") for i, part in enumerate(run.each())]
    return {
        "frame" if _counts_frames(run) else "time_s": found.time,
        **{column: values for part in states for column, values in part.items()},
        **{f"latent_{d}": found.mean[:, d] for d in range(D)},
        **{f"latent_sd_{d}": found.sd[:, d] for d in range(D)},
        "reconstruction_error": found.error,
    }


def _of_states(run, name, end) -> dict[str, Any]:
    """The columns of one block."""
    import numpy as np

    found, names = run.posterior(name), run.names
    return {
        f"state{end}": found.state,
        f"state_name{end}": np.array([_name(k, names) for k in found.state]),
        **{f"probability{end}_{k}": found.probability[:, k] for k in range(found.probability.shape[1])},
    }


def _csv(run, name, stem) -> Path:
    table = columns(run, name)
    rows = zip(*(column.tolist() for column in table.values()), strict=True)
    return _table(stem.with_name(f"{stem.name}.csv"), table, rows)


def _bouts(run, file) -> Path:
    """bouts.csv with a last column for the names."""
    from svae.runs._posterior import block_of, edges_of, head_of

    parts = [(part.names, part.bouts()) for part in run.each()]
    rows = (
        (b.recording, b.state, *edges_of(b), f"{b.probability:.4f}", *block_of(b), _name(b.state, names))
        for names, found in parts
        for b in found
    )
    return _table(file, (*head_of([b for _, found in parts for b in found]), "state_name"), rows)


def _counts_frames(run) -> bool:
    """Whether times of the run are numbers of frames."""
    return any(bout.unit == "frames" for bout in run.bouts())


def _name(state, names) -> str:
    return names.get(int(state), f"state {state}")


def _table(file, head, rows) -> Path:
    from svae._sealed import write_atomically

    text = io.StringIO(newline="")
    written = csv.writer(text)
    written.writerow(head)
    written.writerows(rows)
    write_atomically(file, text.getvalue().encode())
    return file


def _parquet(run, name, stem) -> Path:
    from svae._sealed import replace_by
    from svae.data.readers.optional import need

    pyarrow, parquet = need("pyarrow", "a parquet file"), need("pyarrow.parquet", "a parquet file")
    table = pyarrow.table(columns(run, name))
    file = stem.with_name(f"{stem.name}.parquet")
    replace_by(file, lambda temporary: parquet.write_table(table, temporary))
    return file


def _netcdf(run, name, stem) -> Path:
    """The file of the run with states as people count them, and their names as CF has flags."""
    from svae._sealed import replace_by

    file = stem.with_name(f"{stem.name}.nc")
    replace_by(file, lambda temporary: _counted(temporary, run, name))
    return file


def _counted(file, run, name):
    import numpy as np
    from scipy.io import netcdf_file

    file.write_bytes(run.answers(name).read_bytes())
    with netcdf_file(str(file), "a") as target:
        for i, part in enumerate(run.each()):
            end, found, names = f"_{part.block}" if i else "", part.posterior(name), part.names
            state = target.variables[f"state{end}"]
            state[:], target.variables[f"state_probability{end}"][:] = found.state, found.probability
            state.flag_values = np.arange(found.probability.shape[1], dtype=np.int32)
            state.flag_meanings = " ".join("_".join(_name(int(k), names).split()) for k in state.flag_values).encode()


def _nwb(run, name, stem) -> Path:
    from svae._sealed import replace_by
    from svae.cli._nwb import Part, write

    file = stem.with_name(f"{stem.name}.nwb")
    parts = [Part(p.block, p.posterior(name), _bouts_of(p, name), p.names) for p in run.each()]
    created = run.provenance()["created"]
    replace_by(file, lambda temporary: write(temporary, name, created, parts))
    return file


def _bouts_of(run, name) -> list:
    return [bout for bout in run.bouts() if bout.recording == name]


WRITERS: dict[str, Callable[[Any, str, Path], Path]] = {
    "csv": _csv,
    "parquet": _parquet,
    "netcdf": _netcdf,
    "nwb": _nwb,
}
