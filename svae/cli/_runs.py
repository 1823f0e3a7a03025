"""What verbs share about recordings, runs and models."""

import collections
import statistics
from pathlib import Path
from typing import Any

from svae.cli._app import Given
from svae.cli._machine import use_compilation_cache
from svae.cli._print import report, say

WORSE = 2.0  # times the median error of the training recordings
IN_USE = 0.01  # of all frames that a state in use has at least


def frame_rate(recordings: Any) -> float | None:
    """Frames per second: as given, else from the times of the frames; None where neither is known."""
    import numpy as np

    if recordings.fps is not None:
        return recordings.fps
    steps = [np.median(np.diff(t)) for t in recordings.times if t is not None and len(t) > 1]
    return float(1 / np.median(steps)) if steps and np.median(steps) > 0 else None


def open_model(path: Path) -> Any:
    """The model of a run folder, or of a folder that `svae.save` wrote."""
    from svae.runs import Run, is_run
    from svae.store import load_model

    use_compilation_cache()
    if not is_run(path) and (path / "manifest.json").exists():
        return load_model(path)
    return Run(path).model()


def open_both(path: Path, data: str, given: Given) -> tuple[Any, Any]:
    """The model of `path` and recordings to ask it about; what is left open is as it was in its run.

    What was done to match them, and which are far from its training, is said on stderr.
    """
    from svae.data import load, load_groups, load_inputs, renamed
    from svae.data.grouped import said_of_new
    from svae.queries import far

    before = _source(path)
    found = load(data, fps=given.fps, dataset=given.dataset or before.get("dataset"))
    model, notes = open_model(path), list(found.notes)
    rate = before.get("fps") or model.layout.fps
    if rate and found.fps is None and not any(t is not None for t in found.times):
        found = found._replace(fps=rate)
        notes.append(f"The data do not say their frame rate; it is taken to be {rate:.4g}, as in training.")
    if given.match:
        found = renamed(found, matches(given.match))
    if given.inputs is not None:
        found = load_inputs(found, given.inputs)
        notes += [note for note in found.notes if note not in notes]
    found = found if given.group is None else load_groups(found, given.group)
    notes += said_of_new(found, model.pgm.by, model.layout.groups)
    say([*notes, *far(model, found)])
    return model, found


def matches(pairs: list[str]) -> dict[str, str]:
    """--match MODEL=DATA: the name in the model of each name in the data."""
    from svae.config import ConfigError

    found = {}
    for pair in pairs:
        model, equals, data = (part.strip() for part in pair.partition("="))
        if not (model and equals and data) or data in found:
            raise ConfigError(f"--match needs MODEL=DATA such as nose=snout, once for each name, not {pair!r}")
        found[data] = model
    return found


def _source(path: Path) -> dict[str, Any]:
    """fps and dataset of the data that a run was fitted to; nothing for a model without a run."""
    from svae.runs import Run, is_run

    if not is_run(path):
        return {}
    provenance = Run(path).provenance()
    return {"fps": provenance.get("fps"), "dataset": (provenance.get("source") or {}).get("dataset")}


def usual_bound(path: Path) -> float | None:
    """The held-out bound of a run, nats per frame; None for a model without a run."""
    from svae.runs import Run, is_run

    return Run(path).held_out() if is_run(path) else None


def unlike(path: Path, out: Path, names: Any) -> list[str]:
    """Recordings, labelled into `out`, whose frames are reconstructed much worse than those of the run."""
    import numpy as np

    from svae.data import safe_names
    from svae.runs import Run, RunError, is_run
    from svae.runs._posterior import read_posterior

    if not is_run(path):
        return []
    run, found = Run(path), []
    try:
        usual = np.median([np.nanmedian(run.posterior(name).error) for name in run.recordings()[:20]])
    except (RunError, ValueError):  # a run that is going on has no answers yet
        return []
    for name, file in zip(names, safe_names(names), strict=True):
        error = read_posterior(out / "posterior" / f"{file}.nc").error
        ratio = float(np.nanmedian(error) / usual) if usual > 0 and np.isfinite(error).any() else 1.0
        if ratio > WORSE:
            found.append(
                f"{name}: its frames are reconstructed {ratio:.2g} times worse than in training; trust its states less."
            )
    return found


def random_key(seed: int) -> Any:
    """The key of everything random in one command."""
    import jax

    from svae.config import ConfigError

    if not 0 <= seed < 2**32:
        raise ConfigError(f"--seed must be at least 0 and below 2**32, not {seed}")
    return jax.random.key(seed)


def labels_of(path: Path) -> Any:
    """The names and merges that people have given to the states of a run; None for a model without a run."""
    from svae.runs import Run, is_run

    return Run(path).labels() if is_run(path) else None


def stem(data: str) -> str:
    """A short name for what a path or a pattern points to."""
    from svae.data import safe_names

    path = Path(data)
    return safe_names([path.stem.rstrip("*._- ") or path.parent.name or "data"])[0]


def new_folder(wanted: Path) -> Path:
    """The folder, or the first of folder-2, folder-3, ... that does not exist."""
    number, found = 2, wanted
    while found.exists():
        number, found = number + 1, wanted.with_name(f"{wanted.name}-{number}")
    return found


def report_run(found: dict[str, Any], json: bool) -> None:
    """A summary as JSON, or as a table without bouts, but with a reason, where there are no states."""
    if not (json or found["states"]):
        of_states = ("states_in_use", "bouts", "median_bout", "target_duration")
        found = {name: value for name, value in found.items() if not name.startswith(of_states)}
        found |= {"states": f"none, since {found['model']} is a model without states"}
    report(found, found["run"], json)


def states_of(run: Any) -> int | None:
    """How many states there are at most, of several blocks those of the shown one; None where there are none."""
    from svae.config import OWN
    from svae.named import tables_of

    config = run.config
    if config.model == OWN and not config.latent:  # a graph that only its model knows
        found = run.quality()
        return None if found is None or len(found.frames) < 2 else len(found.frames)
    graph = config.tables() if config.latent else tables_of(config.model, config.to_dict())
    if not isinstance(graph, dict):  # of an installed package
        return graph.states if graph.discrete else None
    known = [table["states"] for table in graph.values() if "states" in table]
    return next(iter(run.blocks.values()), None) or max(known, default=None)


def summary(run: Any) -> dict[str, Any]:
    """How a run stands, in a few values."""
    provenance, lines, config = run.provenance(), run.metrics(), run.config
    last = lines[-1] if lines else {}
    return {
        "run": str(run.path),
        "status": provenance["status"],
        "model": config.model,
        "states": states_of(run),
        "latent_dim": config.latent_dim,
        "recordings": len(provenance["data"]),
        "frames": sum(entry["frames"] for entry in provenance["data"]),
        "frames_per_second": provenance.get("fps"),
        "steps": last.get("step", 0),
        "bound": last.get("bound"),
        "held_out": run.held_out(),
        "states_in_use": last.get("states_in_use"),
        "seconds": last.get("seconds"),
        **_bouts(run.each()[0]),
        **_blocks(run),
        **_trust(run),
        "warnings": run.warnings(),
    }


def _bouts(run):
    if not (run.path / "bouts.csv").exists():
        return {}
    found = run.bouts()
    lengths = [bout.stop - bout.start for bout in found]
    unit = found[0].unit if found else "s"
    used, total = collections.Counter(), sum(lengths)
    for bout, length in zip(found, lengths, strict=True):
        used[bout.state] += length
    return {
        "states_in_use": sum(time >= IN_USE * total for time in used.values()),
        "bouts": len(lengths),
        f"median_bout_{unit}": statistics.median(lengths) if lengths else None,
        f"target_duration_{unit}": _target(run, unit),
    }


def _blocks(run):
    """The same of every discrete block, where there are several: as a list for programs and a line for people."""
    parts = run.each()
    if len(parts) < 2:
        return {}
    rows = [{"block": part.block, "states": part.blocks[part.block]} | _bouts(part) for part in parts]
    told = ", ".join(f"{row['block']} {row['states_in_use']} of {row['states']} states in use" for row in rows)
    return {"discrete_blocks": told, "blocks": rows}


def _target(run, unit):
    """The mean duration of a bout that was asked for, on the clock of the run."""
    frames, rate = run.config.target_duration, run.provenance().get("fps")
    return frames if frames is None or unit == "frames" or not rate else frames / rate


def _trust(run):
    """How far restarts agree, and what plain models reach on the same split; nothing where it is not known."""
    restarts, found = run.restarts(), run.baselines()
    agree = {} if restarts is None else {"restart_agreement": restarts.get("mean_ari")}
    return agree | ({} if found is None else compared(run, found))


def compared(run: Any, found: dict[str, Any]) -> dict[str, Any]:
    """Baselines, the best first, as a list for programs and as lines for people."""
    from svae.runs import ranking, verdict, words

    places = ranking(run)
    others = [place for place in places if not place.ours]
    told = ", ".join(f"{p.name} {p.held_out:.2f}{_in_brackets(words(p.against))}" for p in others)
    rows = [_place(place) for place in others]
    return {"held_out_of_others": told or found.get("note") or None, "rank": verdict(places) or None, "baselines": rows}


def _in_brackets(words: str) -> str:
    return f" ({words})" if words else ""


def _place(place: Any) -> dict[str, Any]:
    """One model, for programs."""
    mean, error = (None, None) if place.against is None else place.against
    return {"name": place.name, "held_out": place.held_out, "above_run": mean, "standard_error": error}
