"""scree.json: how much of the variance the first principal components of a fit hold."""

import itertools
from pathlib import Path

from svae.fitting.scree import Scree, unknown
from svae.runs._folder import SCREE, RunError, read_json, write_json, writing


def keep_scree(folder: Path, scree: Scree) -> None:
    """Write what the first restart began at."""
    with writing(folder):
        write_json(folder / SCREE, {"shares": list(scree.shares), "enough": scree.enough, "why": scree.why})


def read_scree(folder: Path) -> Scree:
    """What scree.json says; `why` where there is nothing to say."""
    if not (folder / SCREE).exists():
        return unknown("the run is of an older version, or its warm-up has not ended")
    body = read_json(folder / SCREE)
    try:
        shares, enough, why = tuple(map(float, body["shares"])), int(body["enough"]), str(body["why"])
    except (KeyError, TypeError, ValueError):
        shares, enough, why = (), 0, ""
    if not (shares or why) or any(a > b for a, b in itertools.pairwise(shares)):
        raise RunError(f"{folder / SCREE} is damaged: it is not what was written; remove it")
    return Scree(shares, enough, why)
