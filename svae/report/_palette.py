"""One colour for each state, the same in every figure, page and movie."""

import numpy as np
from jaxtyping import Float

# Each is as far as can be (OKLab) from all before it for the normal eye, for protanopes and for deuteranopes at once,
# beginning with six of Okabe and Ito; none is too light for paper or too dark for a black screen.
COLOURS = (
    "#0072b2 #e69f00 #009e73 #d55e00 #cc79a7 #56b4e9 #6d1831 #31f3b6 #0c0cb6 #6118ff #8679ff #aa186d #864900 #cedb55 "
    "#610079 #86c286 #b6ceff #ce00aa #ff3d6d #aa4949 #006179 #00cec2 #ce49db #3d31ce #793d49 #189200 #613d00 #553155 "
    "#553d92 #ff86ff #2486db #00aac2"
)
LIGHTER = 0.5  # of the way to white, for each further round of the table


def palette(states: int, before: int = 0) -> Float[np.ndarray, "K 3"]:
    """Colours in 0..1 of states 0..K-1; the colour of a state does not depend on how many there are.

    The states of other blocks have taken the first `before` colours.
    """
    table = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in COLOURS.split()])
    place = before + np.arange(states)
    rounds = place // len(table)
    return 1 - (1 - table[place % len(table)]) * LIGHTER ** rounds[:, None]


def label(state: int, names: dict[int, str]) -> str:
    """The name that people gave to a state, or its number."""
    return names.get(state, f"state {state}")


def short_label(state: int, names: dict[int, str]) -> str:
    """The same where room is scarce."""
    name = names.get(state, str(state))
    return name if len(name) <= 12 else f"{name[:11]}…"


def ink(colours: Float[np.ndarray, "... 3"]) -> Float[np.ndarray, "... 3"]:
    """The same hues dark enough to be read as letters on white."""
    light = colours @ np.array([0.3, 0.59, 0.11])
    return colours * np.minimum(1.0, 0.45 / np.maximum(light, 1e-9))[..., None]


def css(colour: np.ndarray) -> str:
    """#rrggbb."""
    return "#" + "".join(f"{round(255 * float(c)):02x}" for c in colour)
