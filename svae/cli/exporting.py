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
        files.append(_copy(source.path / "bouts.csv", out / "bouts.csv"))
    except OSError as error:
        raise RunError(f"{out} could not be written: {error.strerror or error}") from None
    report({"folder": str(out), "files": [str(file) for file in files], "count": len(files)}, str(run), json)


def columns(run: Any, name: str) -> dict[str, Any]:
    """One column per number of a frame: time_s, state, name, probability, latent_0, ..., error."""
    import numpy as np

    found, names = run.posterior(name), run.names
    K, D = found.probability.shape[1], found.mean.shape[1]
    return {
        "time_s": found.time,
        "state": found.state,
        "state_name": np.array([names.get(int(k), f"state {k}") for k in found.state]),
        **{f"probability_{k}": found.probability[:, k] for k in range(K)},
        **{f"latent_{d}": found.mean[:, d] for d in range(D)},
        **{f"latent_sd_{d}": found.sd[:, d] for d in range(D)},
        "reconstruction_error": found.error,
    }


def _copy(source, target):
    from svae._sealed import write_atomically

    write_atomically(target, source.read_bytes())
    return target


def _csv(run, name, stem) -> Path:
    from svae._sealed import write_atomically

    table = columns(run, name)
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(table)
    rows.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
    file = stem.with_name(f"{stem.name}.csv")
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
    return _copy(run.path / "posterior" / f"{stem.name}.nc", stem.with_name(f"{stem.name}.nc"))


def _nwb(run, name, stem) -> Path:
    from svae._sealed import replace_by
    from svae.cli._nwb import write

    file = stem.with_name(f"{stem.name}.nwb")
    bouts = [bout for bout in run.bouts() if bout.recording == name]
    created = run.provenance()["created"]
    replace_by(file, lambda temporary: write(temporary, name, created, run.posterior(name), bouts, run.names))
    return file


WRITERS: dict[str, Callable[[Any, str, Path], Path]] = {
    "csv": _csv,
    "parquet": _parquet,
    "netcdf": _netcdf,
    "nwb": _nwb,
}
