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
    from svae.runs import Run, write_baselines

    use_compilation_cache()
    found = Run(run)
    told = write_baselines(found, found.load_data(), networks=networks, progress=quiet if json else bar)
    if json:
        print_json({"run": str(run)} | told)
        return
    rows = [(f"this run ({found.config.model})", told["held_out"]), *told["baselines"].items()]
    print_table(str(run), ("model", "held out, nats per frame"), rows)
    if told["note"]:
        print(told["note"])
