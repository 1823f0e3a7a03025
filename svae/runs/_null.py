"""null.json: whether there are states and dynamics at all, beside recordings that have none; and what it says."""

from pathlib import Path
from typing import Any

from svae.runs._folder import NULL, RunError, read_json, write_json, writing
from svae.runs._stability import plain
from svae.starting import Null, Pair, unknown

PAIRS = ("gain", "agreement", "dynamics")


def keep_null(folder: Path, null: Null) -> None:
    """Write what the first search found."""
    with writing(folder):
        write_json(folder / NULL, as_dict(null))


def as_dict(null: Null) -> dict[str, Any]:
    """The entries of null.json."""
    pairs = {name: _body(getattr(null, name)) for name in PAIRS}
    return {"frames": null.frames, "states": null.states, **pairs, "why": null.why}


def _body(pair: Pair | None) -> dict[str, Any] | None:
    return None if pair is None else {"found": plain([pair.found])[0], "without": plain(pair.without)}


def read_null(folder: Path) -> Null:
    """What null.json says; `why` where there is nothing to say."""
    if not (folder / NULL).exists():
        return unknown("the run is of an older version, or its search for states has not ended")
    body = read_json(folder / NULL)
    try:
        pairs = (_pair(body[name]) for name in PAIRS)
        return Null(int(body["frames"]), int(body["states"]), *pairs, str(body["why"]))
    except (KeyError, TypeError, ValueError):
        raise RunError(f"{folder / NULL} is damaged: it is not what was written; remove it") from None


def _pair(body: dict[str, Any] | None) -> Pair | None:
    """None also where a number was not finite."""
    if body is None or body["found"] is None or None in body["without"] or not body["without"]:
        return None
    return Pair(float(body["found"]), tuple(map(float, body["without"])))


def in_words(null: Null) -> list[str]:
    """A sentence for states and one for dynamics, or one that says why nobody knows."""
    said = []
    if null.gain is not None:
        usual = sum(null.gain.without) / len(null.gain.without)
        said.append(
            f"A recording with the same spectrum but without states would gain {nats(usual)} nats a frame from "
            f"{null.states} states; this one gains {nats(null.gain.found)}."
        )
    if null.dynamics is not None:
        said.append(
            f"The frame before tells {nats(null.dynamics.found)} nats of a frame by one linear map; in random order it "
            f"would tell {nats(null.dynamics.without[0])}."
        )
    why = null.why or "a number was not finite"
    return said or [f"Whether recordings without states would do as well is not known: {why}."]


def doubts(null: Null) -> list[str]:
    """A sentence where there is no more than in recordings without states, or without dynamics."""
    said = []
    if null.gain is not None and not null.gain.above:
        said.append(
            f"{null.states} states gain {nats(null.gain.found)} nats a frame, and up to {nats(max(null.gain.without))} "
            "in recordings with the same spectrum and without states: the states may be pieces of one continuous "
            "movement. Compare with `--model lds`, which has none, by the held-out bound."
        )
    if null.dynamics is not None and not null.dynamics.above:
        said.append(
            "The frame before tells no more of a frame than one taken at random: frames do not depend on each other. "
            "Compare with `--model gmm` or `--model vae` by the held-out bound."
        )
    return said


def nats(value: float) -> str:
    """Two decimals, and a minus that is one."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")  # no −0.00
