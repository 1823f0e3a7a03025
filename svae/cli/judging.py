"""The verb that compares a run with simpler models: baselines."""

from pathlib import Path

from svae.cli._app import Json, verb
from svae.cli._machine import use_compilation_cache
from svae.cli._print import print_json, print_table


@verb
def baselines(run: Path, /, *, networks: bool = False, json: Json = False):
    """Compare a run with simpler models of the same recordings on the same split, and write RUN/baselines.json.

    The held-out log likelihood of PCA with an autoregressive HMM, a Gaussian HMM, a VAR(1) and a Gaussian over its
    scores, in nats per frame. `svae fit` does so too; this does it again.

    Args:
        run: The run folder.
        networks: Also fit an LDS SVAE and a VAE with the configuration of the run, which takes about as long as it did.
    """
    from svae.progress import bar, quiet
    from svae.runs import Run, ranking, verdict, words, write_baselines

    use_compilation_cache()
    found = Run(run)
    told = write_baselines(found, found.load_data(), networks=networks, progress=quiet if json else bar)
    if json:
        print_json({"run": str(run)} | told)
        return
    places = ranking(found)
    rows = [(p.name, p.held_out, words(p.against) or "–") for p in places]
    print_table(f"{run}, best first", ("model", "held out, nats per frame", "above the run, ± standard error"), rows)
    for sentence in filter(None, (verdict(places), told["note"])):
        print(sentence)
