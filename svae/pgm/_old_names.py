"""Where the parameters of folders of format 1 are now: their latent models had tables without blocks."""

import re

PLACES = {
    "weights": "z.weights",
    "init": "z.init",
    "transitions": "z.transitions",
    "first": "x.first",
    "dynamics": "x.dynamics",
    "x": "x.normal",
}
OLD = re.compile(rf"(^|\.)(pgm\.prior|q)\.({'|'.join(PLACES)})\.")


def name_now(name: str) -> str:
    """q.dynamics.M -> q.x.dynamics.M; other names stay.

    Args:
        name: The name of an array in a folder of an earlier version.

    Returns:
        Its name in this version.
    """
    return OLD.sub(lambda found: f"{found[1]}{found[2]}.{PLACES[found[3]]}.", name)
