"""Verbs that ask a fitted model about recordings: apply, score, impute."""

from pathlib import Path
from typing import Any, Literal

from svae.cli import _netcdf
from svae.cli._app import AS_IN_THE_RUN, AsGiven, Json, verb
from svae.cli._print import report, report_rows, say
from svae.cli._runs import frame_rate, labels_of, open_both, random_key, stem, unlike, usual_bound


@verb
def apply(
    run: Path,
    data: str,
    /,
    *,
    out: Path | None = None,
    given: AsGiven = AS_IN_THE_RUN,
    json: Json = False,
):
    """Label new recordings: states, their probabilities, latents and bouts, one netCDF file each and bouts.csv.

    Args:
        run: A run folder or a saved model.
        data: A file, a folder or a pattern.
        out: The folder to write; RUN/applied/NAME-OF-DATA unless given.
    """
    from svae.runs import apply

    model, recordings = open_both(run, data, given)
    out = out or run / "applied" / stem(data)
    names = apply(model, recordings, out, labels_of(run))
    say(unlike(run, out, names))
    report(
        {"folder": str(out), "recordings": list(names), "count": len(names), "frames": recordings.frames}, data, json
    )


@verb
def score(
    run: Path,
    data: str,
    /,
    *,
    samples: int = 8,
    importance_samples: int = 0,
    seed: int = 0,
    given: AsGiven = AS_IN_THE_RUN,
    json: Json = False,
):
    """How well the model predicts recordings: the held-out bound in nats per frame, higher is better.

    Args:
        run: A run folder or a saved model.
        data: A file, a folder or a pattern.
        samples: Draws of the latents that the bound is averaged over.
        importance_samples: Draws of a tighter bound by importance sampling; 0 = without.
        seed: Seed of the draws.
    """
    import svae
    from svae.queries import low_bounds

    model, recordings = open_both(run, data, given)
    found = svae.score(model, recordings, key=random_key(seed), samples=samples, importance_samples=importance_samples)
    say(low_bounds(model, recordings.names, found.recordings, usual_bound(run)))
    each = [{"recording": n, "bound": b} for n, b in zip(recordings.names, found.recordings, strict=True)]
    report(found._asdict() | {"recordings": each, "frames": recordings.frames}, data, json)


@verb
def impute(
    run: Path,
    data: str,
    /,
    *,
    samples: int = 32,
    starts: int = 8,
    to: Literal["netcdf", "csv"] = "netcdf",
    out: Path | None = None,
    seed: int = 0,
    given: AsGiven = AS_IN_THE_RUN,
    json: Json = False,
):
    """Fill what is missing (NaN) with its predictive mean, and write how sure that is, one file per recording.

    With --to csv the numbers are those of the file: keypoints are put back where they were filmed, a csv file keeps its
    rows, columns and headers, and only what was missing changes; a filled keypoint gets the likelihood 1. filled.csv
    lists what was filled in, with its standard deviation. netCDF holds the frames that the model sees: of keypoints,
    points about the body's own centre and heading.

    Args:
        run: A run folder or a saved model.
        data: A file, a folder or a pattern.
        samples: Draws that the mean is taken over.
        starts: Paths of states that a stretch without frames is started from.
        to: The format; csv has the coordinates and the layout of the file that was given.
        out: The folder to write; RUN/imputed/NAME-OF-DATA unless given.
        seed: Seed of the draws.
    """
    import numpy as np

    import svae
    from svae.data import seconds

    model, recordings = open_both(run, data, given)
    found = svae.impute(model, recordings, key=random_key(seed), samples=samples, starts=starts)
    out = out or run / "imputed" / stem(data)
    if to == "csv":
        report_rows({"folder": str(out)}, _as_csv(out, data, recordings, model, found), json)
        return
    prepared = "" if model.preprocess.kind == "none" else f", after the model's preprocessing ({model.preprocess.kind})"
    words = f"frames as observed, or filled in{prepared}"
    rate, rows = frame_rate(recordings), []
    for i, name in enumerate(found.names):
        written = {
            "time": _netcdf.clock(seconds(recordings, i), rate),
            "frames": _netcdf.frames(found.frames[i], ("time",), words),
            "sd": _netcdf.frames(found.sd[i], ("time",), "predictive standard deviation; 0 where observed"),
        }
        _netcdf.write(out / f"{name}.nc", name, written)
        rows.append({"recording": name, "frames": len(found.frames[i]), "filled": int(np.sum(found.sd[i] > 0))})
    report_rows({"folder": str(out)}, rows, json)


def _as_csv(out, data, recordings, model, found) -> list[dict[str, Any]]:
    """Write the files; a row for each recording."""
    import numpy as np

    from svae.cli import _imputed_csv
    from svae.cli._unaligned import filled

    made = [
        filled(model.preprocess, np.asarray(y[:], float), frames, sd)
        for y, frames, sd in zip(recordings.sequences, found.frames, found.sd, strict=True)
    ]
    _imputed_csv.write(out, data, recordings, made)
    return [
        {"recording": n, "frames": len(one.frames), "filled": int(one.new.sum()), "frames_placed_between": one.between}
        for n, one in zip(recordings.names, made, strict=True)
    ]
