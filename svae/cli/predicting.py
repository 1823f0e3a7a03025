"""Verbs that look ahead: forecast, sample."""

from pathlib import Path
from typing import Any

from svae.cli import _netcdf
from svae.cli._app import AS_IN_THE_RUN, AsGiven, Json, verb
from svae.cli._netcdf import Variable
from svae.cli._print import report, report_rows, say
from svae.cli._runs import frame_rate, open_both, open_model, random_key, stem
from svae.cli._values import duration, whole_frames

LOW, HIGH = 0.05, 0.95  # quantiles of the interval that is written beside the draws


@verb
def forecast(
    run: Path,
    data: str,
    /,
    *,
    horizon: str,
    start: str | None = None,
    samples: int = 200,
    out: Path | None = None,
    seed: int = 0,
    given: AsGiven = AS_IN_THE_RUN,
    json: Json = False,
):
    """Draw how recordings go on; only frames up to --start are seen. Where later frames are known it is scored.

    Inputs that end with the recordings stay as they are then.

    Args:
        run: A run folder or a saved model.
        data: A file, a folder or a pattern.
        horizon: How far ahead, such as 2s or 50frames.
        start: When the forecast begins, such as 12.5s or 300frames; at the end of each recording unless given.
        samples: How many futures to draw.
        out: The folder to write, one netCDF file per recording; RUN/forecasts/NAME-OF-DATA unless given.
        seed: Seed of the draws.
    """
    import svae

    model, recordings = open_both(run, data, given)
    rate = frame_rate(recordings)
    ahead = whole_frames(horizon, rate, "--horizon")
    seen = _until(recordings, start, rate)
    later = _inputs_ahead(model, recordings, seen, ahead)
    found = svae.forecast(model, seen, horizon=ahead, samples=samples, key=random_key(seed), inputs=later)
    out = out or run / "forecasts" / stem(data)
    rows = []
    for i, name in enumerate(recordings.names):
        known, times = len(seen.sequences[i]), _times_after(seen, i, ahead, rate)
        _netcdf.write(out / f"{name}.nc", name, _forecast_variables(found, i, times, rate))
        later = recordings.sequences[i][known : known + ahead]
        rows.append(
            {"recording": name, "start": float(times[0])} | _against(found.samples[i], found.means[i], model, later)
        )
    report_rows({"folder": str(out), "horizon_frames": ahead, "samples": samples}, rows, json)


@verb
def sample(
    run: Path,
    /,
    *,
    length: str = "100frames",
    samples: int = 1,
    out: Path | None = None,
    seed: int = 0,
    group: str | None = None,
    json: Json = False,
):
    """Draw new recordings from the model into one netCDF file.

    Args:
        run: A run folder or a saved model.
        length: How long each is, such as 2s or 100frames.
        samples: How many to draw.
        out: The file to write; RUN/samples.nc unless given.
        seed: Seed of the draws.
        group: Whose habits they have, where the model has habits for each group; a new one's unless given.
    """
    import numpy as np

    import svae
    from svae.runs import Run, is_run

    rate = Run(run).provenance().get("fps") if is_run(run) else None
    frames = whole_frames(length, rate, "--length")
    drawn = svae.generate(open_model(run), frames, samples=samples, key=random_key(seed), group=group)
    out = out or run / "samples.nc"
    written = {
        "time": _netcdf.clock(np.arange(frames) / (rate or 1.0), rate),
        "frames": _netcdf.frames(drawn.samples, ("sample", "time"), "draws of frames, observation noise included"),
        "mean": _netcdf.frames(drawn.means, ("sample", "time"), "the same without observation noise"),
        "latent": Variable(("sample", "time", "latent"), drawn.latents, "1", "draws of the latent"),
        "state": Variable(("sample", "time"), drawn.states, "1", "draws of the state"),
        **_of_blocks(drawn.blocks),
    }
    _netcdf.write(out, "samples", written)
    report({"file": str(out), "samples": samples, "frames": frames, "shape": str(drawn.samples.shape)}, str(run), json)


# --- parts --------------------------------------------------------------------------------------------------------


def _until(recordings, start, rate):
    """Recordings up to a time, that frame included."""
    import numpy as np

    from svae.data import DataError, seconds, stretches

    if start is None:
        return recordings
    when = duration(start, "--start").seconds(rate)
    ends = [int(np.searchsorted(seconds(recordings, i), when, side="right")) for i in range(len(recordings.names))]
    for i, (name, end) in enumerate(zip(recordings.names, ends, strict=True)):
        if end == 0 or when > seconds(recordings, i)[-1]:
            raise DataError(f"{name} has no frame at --start {start}: it ends at {seconds(recordings, i)[-1]:g}.")
    return stretches(recordings, [(i, 0, end) for i, end in enumerate(ends)])


def _inputs_ahead(model, recordings, seen, ahead):
    """The inputs of the frames to come: as the recordings have them, and where they end as in the last frame."""
    import numpy as np

    from svae.data import recordings as as_recordings
    from svae.data.driven import inputs_matched

    if model.driven is None:
        return None
    found, known = [], inputs_matched(as_recordings(recordings), model.layout.inputs).beside
    for y, one in zip(seen.sequences, known, strict=True):
        later = one.inputs[len(y) : len(y) + ahead]
        found.append(np.concatenate([later, np.repeat(one.inputs[-1:], ahead - len(later), 0)]))
    if any(len(one.inputs) < len(y) + ahead for y, one in zip(seen.sequences, known, strict=True)):
        say(["Inputs stay as they are in the last frame where the recordings end."])
    return found


def _times_after(seen, i, ahead, rate):
    import numpy as np

    from svae.data import seconds

    return seconds(seen, i)[-1] + np.arange(1, ahead + 1) / (rate or 1.0)


def _forecast_variables(found, i, times, rate) -> dict[str, Variable]:
    import numpy as np

    draws = found.samples[i]
    low, high = np.quantile(draws, [LOW, HIGH], axis=0)
    return {
        "time": _netcdf.clock(times, rate),
        "samples": _netcdf.frames(draws, ("sample", "time"), "draws of frames, observation noise included"),
        "mean": _netcdf.frames(found.means[i].mean(0), ("time",), "predictive mean"),
        "low": _netcdf.frames(low, ("time",), "5 % quantile of the draws"),
        "high": _netcdf.frames(high, ("time",), "95 % quantile of the draws"),
        "latent": Variable(("sample", "time", "latent"), found.latents[i], "1", "draws of the latent"),
        "state": Variable(("sample", "time"), found.states[i], "1", "draws of the state"),
        **_of_blocks({name: paths[i] for name, paths in found.blocks.items()}),
    }


def _of_blocks(blocks: dict[str, Any]) -> dict[str, Variable]:
    """The states of all discrete blocks but the first, which `state` has."""
    others = list(blocks)[1:]
    return {f"state_{b}": Variable(("sample", "time"), blocks[b], "1", f"draws of the state of {b}") for b in others}


def _against(draws, means, model, later) -> dict[str, Any]:
    """RMSE of the predictive mean and coverage of the 90 % interval where later frames are known."""
    import numpy as np

    if len(later) == 0:
        return {"known_frames": 0, "rmse": None, "coverage_90": None}
    truth = model.preprocess.apply(np.asarray(later))
    draws, means = draws[:, : len(truth)], means[:, : len(truth)]
    low, high = np.quantile(draws, [LOW, HIGH], axis=0)
    seen = np.isfinite(truth)
    inside = ((truth >= low) & (truth <= high))[seen]
    rmse = np.sqrt(np.mean((truth - means.mean(0))[seen] ** 2)) if seen.any() else None
    coverage = float(inside.mean()) if seen.any() else None
    return {"known_frames": len(truth), "rmse": None if rmse is None else float(rmse), "coverage_90": coverage}
