"""Verbs that ask a fitted model about recordings: apply, score, impute."""

from pathlib import Path

from svae.cli import _netcdf
from svae.cli._app import Json, verb
from svae.cli._print import report, report_rows
from svae.cli._runs import frame_rate, labels_of, open_data, open_model, random_key, stem


@verb
def apply(
    run: Path,
    data: str,
    /,
    *,
    out: Path | None = None,
    fps: float | None = None,
    dataset: str | None = None,
    json: Json = False,
):
    """Label new recordings: states, their probabilities, latents and bouts, one netCDF file each and bouts.csv.

    Args:
        run: A run folder or a saved model.
        data: A file, a folder or a pattern.
        out: The folder to write; RUN/applied/NAME-OF-DATA unless given.
        fps: Frames per second; as in the run unless the data say it.
        dataset: Which array of a container; as in the run unless given.
    """
    from svae.runs import apply

    recordings = open_data(run, data, fps, dataset)
    out = out or run / "applied" / stem(data)
    names = apply(open_model(run), recordings, out, labels_of(run))
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
    fps: float | None = None,
    dataset: str | None = None,
    json: Json = False,
):
    """How well the model predicts recordings: the held-out bound in nats per frame, higher is better.

    Args:
        run: A run folder or a saved model.
        data: A file, a folder or a pattern.
        samples: Draws of the latents that the bound is averaged over.
        importance_samples: Draws of a tighter bound by importance sampling; 0 = without.
        seed: Seed of the draws.
        fps: Frames per second; as in the run unless the data say it.
        dataset: Which array of a container; as in the run unless given.
    """
    import svae

    recordings, model = open_data(run, data, fps, dataset), open_model(run)
    found = svae.score(model, recordings, key=random_key(seed), samples=samples, importance_samples=importance_samples)
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
    out: Path | None = None,
    seed: int = 0,
    fps: float | None = None,
    dataset: str | None = None,
    json: Json = False,
):
    """Fill what is missing (NaN) with its predictive mean, and write how sure that is, one netCDF file per recording.

    Frames are those that the model sees: of keypoints, points about the body's own centre and heading.

    Args:
        run: A run folder or a saved model.
        data: A file, a folder or a pattern.
        samples: Draws that the mean is taken over.
        starts: Paths of states that a stretch without frames is started from.
        out: The folder to write; RUN/imputed/NAME-OF-DATA unless given.
        seed: Seed of the draws.
        fps: Frames per second; as in the run unless the data say it.
        dataset: Which array of a container; as in the run unless given.
    """
    import numpy as np

    import svae
    from svae.data import seconds

    recordings = open_data(run, data, fps, dataset)
    model = open_model(run)
    found = svae.impute(model, recordings, key=random_key(seed), samples=samples, starts=starts)
    prepared = "" if model.preprocess.kind == "none" else f", after the model's preprocessing ({model.preprocess.kind})"
    words = f"frames as observed, or filled in{prepared}"
    out, rate, rows = out or run / "imputed" / stem(data), frame_rate(recordings), []
    for i, name in enumerate(found.names):
        written = {
            "time": _netcdf.clock(seconds(recordings, i), rate),
            "frames": _netcdf.frames(found.frames[i], ("time",), words),
            "sd": _netcdf.frames(found.sd[i], ("time",), "predictive standard deviation; 0 where observed"),
        }
        _netcdf.write(out / f"{name}.nc", name, written)
        rows.append({"recording": name, "frames": len(found.frames[i]), "filled": int(np.sum(found.sd[i] > 0))})
    report_rows({"folder": str(out)}, rows, json)
