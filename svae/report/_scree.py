"""The scree picture: how much of the variance the first principal components hold, and which number a fit uses."""

from typing import NamedTuple

import numpy as np

from svae.experiments._figures import BLUE, GREY, ORANGE, new_figure
from svae.fitting.defaults import usual_dimensions
from svae.fitting.scree import ENOUGH, ENOUGH_IN_WORDS, Scree, percent
from svae.report._material import Material

LEAST = 10  # components that are drawn, where there are so many
BEYOND = 1.6  # times the largest number that is marked: what more of them would add
BELOW, STEP = 7.0, 13.0  # % of the variance at which the words of the first mark stand, and how much higher the next
CLEAR = 9.0  # % of the variance between words and the curve
LETTER = 0.0118  # of the width of the picture
MANY = 30  # components, of which each gets a small dot
DARK = "#555555"
DASHED = (0, (4, 3))


class Mark(NamedTuple):
    """A number of components that has a name."""

    number: int
    words: str
    colour: str


def usual(material: Material) -> int | None:
    """The latent dimensions that a fit takes that is given none; None where the recordings are gone."""
    return None if material.seen is None else usual_dimensions(material.seen, material.config)


def scree_figure(found: Scree, D: int, usual: int | None):
    """The share by the number of components, with a word at each number that has a meaning."""
    marks = _marks(found, D, usual)
    largest = max((mark.number for mark in marks), default=1)
    shown = min(len(found.shares), max(LEAST, int(BEYOND * largest)))
    figure = new_figure(8.2, 3.0)
    axes = figure.subplots()
    axes.axhline(100 * ENOUGH, color="#c9cdd3", lw=1, ls=DASHED, zorder=0)
    numbers, shares = np.arange(1, shown + 1), 100 * np.array(found.shares[:shown])
    axes.plot(numbers, shares, "o-", color=GREY, lw=1.5, ms=5 if shown <= MANY else 3, zorder=2, clip_on=False)
    for row, mark in enumerate(marks):
        share, below = 100 * found.held(mark.number), BELOW + STEP * row
        above = share + CLEAR + STEP * (len(marks) - 1 - row)  # where there is no room below
        _mark(axes, mark, share, below if share > below + CLEAR else above)
    right = max([shown, *(mark.number / (1 - LETTER * len(mark.words)) for mark in marks)])
    axes.set(xlim=(0, 1.02 * right), ylim=(0, 104), yticks=[0, 25, 50, 75, 100 * ENOUGH, 100])
    axes.set(xlabel="number of principal components", ylabel="% of the variance")
    axes.xaxis.get_major_locator().set_params(integer=True)
    return figure


def _marks(found: Scree, D: int, usual: int | None) -> list[Mark]:
    """From few to many components; a number that has several meanings says all of them, in the colour of the first."""
    meanings = [(D, "this fit", BLUE)]
    meanings += [] if usual in (None, D) else [(usual, "svae's own choice", DARK)]
    meanings += [(found.enough, f"fewest that hold {ENOUGH_IN_WORDS}", ORANGE)]
    marks = []
    for number in sorted({n for n, *_ in meanings if 0 < n <= len(found.shares)}):
        own = [(words, colour) for n, words, colour in meanings if n == number]
        said = " and ".join(words for words, _ in own)
        marks.append(Mark(number, f"{number}: {said} ({percent(found.held(number))})", own[0][1]))
    return marks


def _mark(axes, mark: Mark, share: float, height: float):
    """A dot on the curve, and a line to its words, which stand right of it where no line to other words passes."""
    axes.plot([mark.number] * 2, [height, share], color=mark.colour, lw=1.2, zorder=1)
    axes.plot(mark.number, share, "o", color=mark.colour, ms=9, zorder=3, clip_on=False)
    axes.annotate(mark.words, (mark.number, height), (5, 0), textcoords="offset points", color=mark.colour, va="center")
