"""Verbs that fit: fit, rerun."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from svae.cli._app import Json, command, verb
from svae.cli._before_fit import of_config, of_data
from svae.cli._machine import use_compilation_cache, use_few_heaps
from svae.cli._options import in_frames, limit_of, options_of
from svae.cli._print import say
from svae.cli._processes import Processes, together
from svae.cli._runs import frame_rate, new_folder, report_run, stem, summary
from svae.config import Config, ConfigError

BASELINES, SHARE = 60.0, 0.05  # seconds of --max-time that are kept for the baselines at most, and as a share of it


@verb
def fit(
    data: str | None = None,
    /,
    *,
    model: str | None = None,
    graph: Path | None = None,
    states: int | None = None,
    latent_dim: int | None = None,
    target_duration: str | None = None,
    out: Path | None = None,
    fps: float | None = None,
    dataset: str | None = None,
    labels: str | None = None,
    inputs: str | None = None,
    group: str | None = None,
    steps: int | None = None,
    restarts: int | None = None,
    seed: int | None = None,
    config: Path | None = None,
    settings: Annotated[list[str] | None, Parameter(name="--set")] = None,
    max_time: str | None = None,
    resume: bool = False,
    coordinator: str | None = None,
    processes: int | None = None,
    process_id: int | None = None,
    distributed: bool = False,
    json: Json = False,
):
    """Fit a model to recordings and write a run folder: model, states, latents, bouts, metrics, provenance.

    The fit stops early when the held-out bound no longer improves. Ctrl-C saves; --resume goes on exactly. At the end
    plain models (PCA with an AR-HMM and others) are fitted to the same split, to compare. How
    long it will take is forecast when it starts.

    Args:
        data: A file, a folder or a pattern such as "day1/*.csv"; with --resume it may be left out.
        model: The latent model, one of those that `svae models` lists; slds unless given.
        graph: A TOML file with a latent graph of your own, a table [latent.NAME] for each block, in place of --model.
        states: An upper bound on the number of states; 10 unless given.
        latent_dim: Dimensions of the continuous latent; the data say it unless given.
        target_duration: Mean duration of a state, such as 400ms, 0.4s or 12frames; the stickiness is found from it.
            Unless given, it is estimated from how slowly the data change.
        out: The run folder; runs/NAME-OF-DATA unless given.
        fps: Frames per second of the data, where they do not say it themselves.
        dataset: Which array of a container, or which columns of a table, to take.
        labels: Frames whose state is known: a file or a pattern of bouts, of BORIS, or of a line for each frame.
        inputs: What is known of every frame and drives it: a file or a pattern of a line for each frame, for each
            change, or for each recording. The latent model needs dynamics, such as lds or slds.
        group: A csv file with the animal of each recording; it becomes the run's groups.csv, and a graph with by= has
            transitions of its own for each.
        steps: Steps of the fit after the warm-up.
        restarts: Fits from different starts in one program; the best by held-out bound is kept.
        seed: Seed of everything random.
        config: A TOML file of options, such as the config.toml of another run.
        settings: name=value of any option of the configuration, such as --set hidden=[64,64]; may be repeated.
        max_time: The time for all of it, such as 30min or 2h: the fit ends as early as its answers need.
        resume: Go on with the run in --out from its newest checkpoint.
        coordinator: HOST:PORT of process 0, for a run of several processes; each gets the same command.
        processes: How many processes there are.
        process_id: Which of them this is; 0 writes the run folder.
        distributed: Find coordinator, processes and process_id from SLURM or Open MPI.
    """
    from svae.runs import watching

    use_few_heaps()
    limit = None if max_time is None else limit_of(max_time)
    named = {"model": model, "states": states, "latent_dim": latent_dim, "target_duration": target_duration}
    named |= {"steps": steps, "restarts": restarts, "seed": seed}
    given = {name: value for name, value in named.items() if value is not None}
    beside = {"labels": labels, "inputs": inputs, "group": group}
    beside = {name: file for name, file in beside.items() if file is not None}
    source = {"path": data, "fps": fps, "dataset": dataset} | beside
    with together(Processes(coordinator, processes, process_id, distributed), json) as first, watching(limit) as watch:
        if not first:
            return _assist(source, out)
        if resume:
            files = [*([graph] if graph else []), *(f"--{name}" for name in beside)]
            fixed = [*given, *(settings or []), *([config] if config else []), *files]
            run, recordings = waited(lambda: _resumed(source, out, fixed), watch)
        else:
            options = options_of(given, config, settings, graph)
            run, recordings = waited(lambda: _started(source, out, options), watch)
        watch.reserve = 0.0 if limit is None else min(BASELINES, limit * SHARE)
        train(run, recordings, watch, resume, json, f"svae fit --resume --out {run.path}")
        _compare(run, recordings, watch)
        report_run(summary(run), json)
        say(run.warnings()[len(run.provenance().get("notes") or []) :])
    return None


def waited(work: Callable[[], Any], watch: Any) -> Any:
    """What `work()` gives; a signal or the end of the time is answered while it runs."""
    from svae.runs import Left, RunError, done

    try:
        return done(work, watch)
    except Left:
        raise RunError("the time was over while the recordings were read: nothing was fitted; give it more") from None


def _compare(run, recordings, watch):
    """Baselines on the same split; the fit is done, so nothing that happens here can fail it."""
    import contextlib
    import sys

    from svae.runs import Left, RunError, done, saved, write_baselines

    watch.reserve, again = 0.0, f"svae baselines {run.path}"
    try:
        with contextlib.suppress(RunError):  # also where there is no model yet
            done(lambda: write_baselines(run, recordings), watch)
    except (KeyboardInterrupt, SystemExit):
        print(f"svae: {saved(run)}; the baselines are missing, compute them with  {again}", file=sys.stderr)
        raise
    except Left:
        print(f"svae: there was no time for the baselines; compute them with  {again}", file=sys.stderr)


def _assist(source, out):
    """What a process does that is not the first: it takes the same steps, and writes nothing."""
    from svae.data import load_source
    from svae.runs import Run, assist

    if source["path"] is None and out is None:
        raise ConfigError("every process needs the data, or with --resume the run folder: --out RUN")
    recordings = load_source(source) if source["path"] is not None else Run(out).load_data()
    use_compilation_cache()
    assist(recordings)


@verb
def rerun(run: Path, /, *, out: Path | None = None, json: Json = False):
    """Repeat a run with the same data, configuration and seed in a new folder, and say whether it ends the same.

    Args:
        run: The run folder to repeat.
        out: The new run folder; RUN-again unless given.
    """
    from svae.runs import Run, start, watching

    use_few_heaps()
    first = Run(run)
    out = out or new_folder(run.with_name(f"{run.resolve().name}-again"))
    with watching(None) as watch:
        recordings = waited(first.load_data, watch)
        use_compilation_cache()
        source = first.provenance()["source"]
        again = waited(lambda: start(out, recordings, first.config, source=source, command=command.get()), watch)
        train(again, recordings, watch, False, json, f"svae fit --resume --out {again.path}")
    report_run(summary(again) | _comparison(first, again), json)


def _started(source, out, options):
    """A new run folder and its recordings."""
    if source["path"] is None:
        raise ConfigError("fit needs the data: a file, a folder or a pattern, as in  svae fit walk.npy --out runs/walk")
    recordings = opened(source, options)
    run = begun(out or new_folder(Path("runs", stem(source["path"]))), recordings, source, options)
    say(recordings.notes)
    return run, recordings._replace(notes=())  # the run keeps them


def opened(source: dict[str, Any], options: dict[str, Any]) -> Any:
    """Recordings that can be fitted; a mistake in the options is told before they are read."""
    from svae.data import check, load_source
    from svae.model import pgm_of

    config = Config.make({name: value for name, value in options.items() if name != "target_duration"})
    if config.latent:
        pgm_of(config)
    recordings = load_source(source)
    return recordings._replace(notes=(*of_data(recordings), *check(recordings)))


def begun(out: Path, recordings: Any, source: dict[str, Any], options: dict[str, Any]) -> Any:
    """A new run folder; what the user left open is chosen here and written to its config.toml."""
    from svae.data.carried import require_states
    from svae.fitting.defaults import suited
    from svae.model import pgm_of
    from svae.runs import start

    options = in_frames(options, frame_rate(recordings))
    config = Config.make({**suited(options, recordings), **options})
    pgm = pgm_of(config)
    require_states(recordings, pgm.states if pgm.discrete else None)
    said = of_config(recordings, config)
    say(said)
    recordings = recordings._replace(notes=(*recordings.notes, *said))
    use_compilation_cache()
    return start(out, recordings, config, source=source, command=command.get())


def _resumed(source, out, given):
    from svae.data import load_source
    from svae.runs import Run

    if out is None:
        raise ConfigError("--resume needs the run folder: svae fit --resume --out RUN")
    if given:
        raise ConfigError(f"--resume goes on with the configuration of {out}; leave out {given[0]}")
    run = Run(out)
    again = (run.provenance().get("source") or {}) | {name: value for name, value in source.items() if value}
    recordings = run.load_data() if source["path"] is None else load_source(again)
    use_compilation_cache()
    return run, recordings


def train(run: Any, recordings: Any, watch: Any, resume: bool, json: bool, again: str) -> None:
    """Fit under the progress bar; who stops it learns what is saved and how to go on: `again`."""
    import sys

    from svae.progress import Plan, bar, quiet
    from svae.runs import saved, train

    def shown(steps, title):
        return quiet(steps, title) if json else bar(steps, title, next(plans))

    try:
        plan = (Plan() if resume or json else _forecast(run, recordings, watch))._replace(end=watch.end)
        plans = iter([plan, plan._replace(before=0.0, fit=0.0)])  # of the fit, and of the answers
        train(run, recordings, max_time=watch.left(), resume=resume, progress=shown)
    except (KeyboardInterrupt, SystemExit):
        print(f"svae: {saved(run)}; go on with  {again}", file=sys.stderr)
        raise
    if run.provenance()["status"] == "time over":
        print(f"svae: the time was over: {saved(run)}; go on with  {again}", file=sys.stderr)


def _forecast(run, recordings, watch):
    """Say how long the fit will take."""
    import sys

    from svae.cli import _cost
    from svae.progress import Plan
    from svae.runs import Left, done, forecast

    try:
        found = done(lambda: forecast(recordings, run.config), watch)
    except Left:  # the fit says that its time is over
        return Plan()
    print(f"svae: {_cost.words(found, run.config)}", file=sys.stderr)
    return Plan(found.before, found.answers + found.baselines, found.fit)


def _comparison(first, again):
    """Whether two runs have the same parameters, bit for bit."""
    import numpy as np

    from svae._sealed import read

    if not (first.path / "model").exists():
        return {"identical": None, "largest_difference": None, "first_status": first.provenance()["status"]}
    a, b = read(first.path / "model")[0], read(again.path / "model")[0]
    same = a.keys() == b.keys() and all(np.array_equal(a[name], b[name], equal_nan=True) for name in a)
    apart = max((float(np.max(np.abs(a[name] - b[name]), initial=0)) for name in a if name in b), default=None)
    return {"identical": same, "largest_difference": apart, "first_status": first.provenance()["status"]}
