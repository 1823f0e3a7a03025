"""The verb check: what is in data before a fit, and what a fit of them will take."""

import itertools
import math
import sys
from pathlib import Path
from typing import Any

from svae.cli import _cost
from svae.cli._app import Json, verb
from svae.cli._before_fit import of_config, of_data
from svae.cli._machine import use_compilation_cache
from svae.cli._print import print_json, print_table
from svae.cli._runs import frame_rate, open_model
from svae.config import Config

FAR = 8.0  # robust standard deviations from the median that make an outlier
SAMPLED = 4000  # frames that median and spread are taken from
UNEVEN = 0.5  # a step of time that differs by this share from the usual one
BINS = 100  # of time in the figure
SHOWN, LONGEST = 5, 14  # entries of a frame that are drawn, and letters of a name


@verb
def check(
    data: str,
    /,
    *,
    model: str = Config.model,
    states: int | None = None,
    latent_dim: int | None = None,
    steps: int = 1000,
    fps: float | None = None,
    dataset: str | None = None,
    run: Path | None = None,
    figure: Path = Path("check.png"),
    json: Json = False,
):
    """Check data before a fit: missing entries, outliers, sampling, and a forecast of memory and time.

    Args:
        data: A file, a folder or a pattern.
        model: The latent model that the forecast is for, one of those that `svae models` lists.
        states: Its number of states; 10 unless given.
        latent_dim: Its latent dimensions; the data say it unless given.
        steps: Steps of its fit.
        fps: Frames per second of data that do not say it themselves.
        dataset: Which array of a container, or which columns of a table, to take.
        run: A run folder or a saved model; says how far the data are from its training.
        figure: The figure to write, in the format of its ending; needs the extra svae[figures]. Points far from the
            rest of the body get one of their own beside it, such as check-points.png.
    """
    import svae.data
    from svae.fitting.defaults import components, suited, usual_dimensions
    from svae.fitting.prepare import said_of_wild
    from svae.fitting.scree import in_words

    use_compilation_cache()
    recordings = svae.data.load(data, fps=fps, dataset=dataset)
    notes = [*of_data(recordings), *svae.data.check(recordings)]
    chosen = {"model": model, "states": states, "steps": steps}
    chosen |= {} if latent_dim is None else {"latent_dim": latent_dim}
    config = Config.make({**suited(chosen, recordings), **chosen})
    notes += of_config(recordings, config)
    notes += said_of_wild(recordings, before := svae.data.find_preprocess(recordings, config))
    seen = svae.data.preprocessed(recordings, before)
    scree, usual = components(seen, config.latent_dim), usual_dimensions(seen, config)
    held = in_words(scree, config.latent_dim, usual=usual)
    notes += [] if run is None else _against(run, recordings)
    scale = _scale(recordings)
    found = [_look(recordings, i, scale) for i in range(len(recordings.names))]
    forecast = _forecast(recordings, config, notes)
    drawn = _try_to_draw(figure, lambda: _draw(recordings, found, scale))
    points = _try_to_draw(_beside(figure), lambda: _points(recordings, before))
    timed = frame_rate(recordings) is not None
    rows = [_row(name, y, f, timed) for name, y, f in zip(recordings.names, recordings.sequences, found, strict=True)]
    if json:
        about = {
            "frames_per_second": frame_rate(recordings),
            "notes": notes,
            "forecast": None if forecast is None else forecast._asdict(),
            "components": scree._asdict() | {"latent_dim": config.latent_dim, "in_words": held},
            "figure": drawn,
            "figure_of_points": points,
        }
        print_json({"recordings": rows} | about)
        return
    print_table(data, list(rows[0]), [list(row.values()) for row in rows])
    if forecast is not None:
        print(f"A fit of {model}: {_cost.words(forecast, config)}, and about {forecast.memory_gb:.1f} GB of memory.")
    for sentence in [held, *notes]:
        print(sentence)
    print(f"figure: {' and '.join(filter(None, [drawn, points]))}" if drawn else "no figure", file=sys.stderr)


def _against(run, recordings) -> list[str]:
    """How far the recordings are from what a model was fitted to."""
    from svae.queries import far

    return far(open_model(run), recordings)


def _forecast(recordings, config, notes):
    """The forecast of a fit with this configuration; None, and one more note, where no fit is possible."""
    from svae.data import DataError
    from svae.fitting.prepare import FitError
    from svae.runs import forecast

    try:
        return forecast(recordings, config)
    except (DataError, FitError) as error:
        notes.append(f"no forecast, these recordings cannot be fitted: {error}")
        return None


def _scale(recordings):
    """Median and robust spread of every entry (P,); 0 where an entry does not vary."""
    import warnings

    import numpy as np

    from svae.data import sample_frames

    frames = sample_frames(recordings, SAMPLED, seed=0).astype(np.float64)
    rows = frames.reshape(len(frames), -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an entry that is never seen is NaN, and no outlier
        low, median, high = np.nanpercentile(rows, [25, 50, 75], axis=0)
        spread = np.where(high > low, (high - low) / 1.349, np.nanstd(rows, 0))
    return median, spread


def _look(recordings, i, scale) -> dict[str, Any]:
    """Counts over one recording, block by block, and its sampling."""
    import numpy as np

    from svae.data import blocks, seconds

    y, (median, spread) = recordings.sequences[i], scale
    usable = np.where(spread > 0, spread, np.inf)
    missing, empty, far = [], 0, 0
    for _, frames in blocks(y):
        rows = np.asarray(frames, np.float64).reshape(len(frames), -1)
        absent = np.isnan(rows)
        missing.append(absent.mean(1))
        empty += int(absent.all(1).sum())
        far += int(np.sum(np.abs(rows - median) > FAR * usable))
    steps = np.diff(seconds(recordings, i))
    usual = float(np.median(steps)) if len(steps) else 1.0
    return {
        "missing": np.concatenate(missing),
        "empty": empty,
        "outliers": far,
        "uneven": int(np.sum(np.abs(steps - usual) > UNEVEN * abs(usual))),
        "longest_gap": float(steps.max()) if len(steps) else None,
    }


def _row(name, y, found, timed) -> dict[str, Any]:
    entries = int(y.size)
    return {
        "recording": name,
        "frames": len(y),
        "frame": "x".join(map(str, y.shape[1:])),
        "missing_%": round(100 * float(found["missing"].mean()), 3),
        "empty_frames": found["empty"],
        "outliers": found["outliers"],
        "outliers_%": round(100 * found["outliers"] / entries, 4),
        "uneven_steps": found["uneven"],
        "longest_gap_s" if timed else "longest_gap_frames": found["longest_gap"],
    }


def _beside(figure: Path) -> Path:
    """Where the picture of wild points goes."""
    return figure.with_name(f"{figure.stem}-points{figure.suffix}")


def _points(recordings, before):
    """Points far from the rest of the body, before and after; None where there are none."""
    from svae.report._bodies import bodies_in
    from svae.report._wild import wild, wild_figure

    body = bodies_in(recordings, before, frame_rate(recordings))
    found = None if body is None else wild(before, body)
    return wild_figure(body, found, recordings.names, frame_rate(recordings)) if found and found.frames else None


def _try_to_draw(file, draw) -> str | None:
    """The figure's path; without matplotlib, a place to write or anything to draw None, with a sentence or without."""
    import warnings

    from svae.config import ConfigError
    from svae.experiments._figures import style, write_atomically

    try:
        with style(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")  # letters that the font has not
            if (drawn := draw()) is None:
                return None
            ending = file.suffix.removeprefix(".") or "png"
            write_atomically(file, lambda stream: drawn.savefig(stream, format=ending, dpi=150))
    except (ConfigError, OSError, ValueError) as error:
        print(f"svae: no figure: {error}", file=sys.stderr)
        return None
    return str(file)


def _binned(share):
    """Means over BINS stretches of time."""
    import numpy as np

    edges = np.linspace(0, len(share), BINS + 1).astype(int)
    return np.array(
        [share[a : max(b, a + 1)].mean() if a < len(share) else share[-1] for a, b in itertools.pairwise(edges)]
    )


def _draw(recordings, found, scale):
    """Left what is missing, in the middle some entries of the first recording, right the values of all."""
    import numpy as np

    from svae.data import sample_frames, seconds
    from svae.experiments._figures import BLUE, GREY, new_figure

    figure = new_figure(11.0, 3.6)
    left, middle, right = figure.subplots(1, 3)
    share = np.stack([_binned(f["missing"]) for f in found[:60]])
    most = max(1.0, 100 * float(share.max()))
    picture = left.imshow(100 * share, aspect="auto", cmap="Greys", vmin=0, vmax=most, interpolation="nearest")
    if share.any():
        figure.colorbar(picture, ax=left)
    left.set(title="missing entries, %" if share.any() else "no entry is missing", xlabel="time, % of the recording")
    rows = range(0, len(share), 1 + len(share) // 10)
    left.set_yticks(rows, [_short(recordings.names[i]) for i in rows], fontsize=9)
    y = np.asarray(recordings.sequences[0][:2000])
    names, y = _entries(recordings, y.shape[1:]), y.reshape(len(y), -1)
    shown = np.unique(np.linspace(0, y.shape[1] - 1, SHOWN).astype(int))
    median, spread = scale
    z = (y[:, shown] - median[shown]) / np.where(spread[shown] > 0, spread[shown], 1)
    middle.plot(seconds(recordings, 0)[: len(y)], z + 6 * np.arange(len(shown)), color=BLUE, linewidth=0.8)
    middle.set(title=_short(recordings.names[0]), xlabel="frames" if frame_rate(recordings) is None else "seconds")
    middle.set_yticks(6 * np.arange(len(shown)), [_short(names[i]) for i in shown], fontsize=9)
    rows = sample_frames(recordings, SAMPLED, seed=0)
    values = ((rows.reshape(len(rows), -1) - median) / np.where(spread > 0, spread, np.inf)).ravel()
    right.hist(np.clip(values[np.isfinite(values)], -12, 12), bins=97, log=True, color=BLUE)
    for edge in (-FAR, FAR):
        right.axvline(edge, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    right.set(title="all values", ylabel="how many")
    right.set_xlabel(f"spreads from the median\nbeyond ±{FAR:g} are outliers")
    return figure


def _entries(recordings, event) -> list[str]:
    """A name for each entry of a frame: of its column, of its point and coordinate, or its number."""
    from svae.data import layout_of

    names = layout_of(recordings).names
    if len(event) == 1 and len(names) == event[0]:
        return list(names)
    if len(event) == 2 and len(names) == event[0]:
        return [f"{name} {'xyz'[c] if event[1] <= 3 else c}" for name in names for c in range(event[1])]
    return [f"entry {i}" for i in range(math.prod(event))]


def _short(name: str) -> str:
    """A name that is not too long, and not taken for a formula."""
    return (name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…").replace("$", r"\$")
