"""How much of the variance the first principal components hold: what a number of latent dimensions leaves out."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

ENOUGH = 0.9  # of the variance, which the smallest sufficient number of latent dimensions holds
KEPT = 100  # shares that are kept at least, where there are so many
ROUNDED = 1e-9  # a share that is below another by so little is not below it
TINY = 1e-12
ENOUGH_IN_WORDS = f"{100 * ENOUGH:.0f} %"


class Scree(NamedTuple):
    """The shares of the variance that the first 1, 2, ... components hold; nothing where a fit begins elsewhere."""

    shares: tuple[float, ...]  # of the leading components, each at least as large as the one before
    enough: int  # the smallest number of components that holds ENOUGH; 0 where none does
    why: str = ""  # there are none

    def held(self, D: int) -> float:
        """The share that D components hold: all where there are not so many."""
        return self.shares[min(D, len(self.shares)) - 1]


def unknown(why: str) -> Scree:
    """Nothing, and why."""
    return Scree((), 0, why)


def cumulated(variance: np.ndarray) -> np.ndarray:
    """Shares (P,) of the variance that the first 1, 2, ... of components of variance (P,) hold."""
    return np.cumsum(variance) / max(float(np.sum(variance)), TINY)


def enough_of(shares: Sequence[float] | np.ndarray, share: float = ENOUGH) -> int:
    """The smallest number of components that holds so much; 0 where none does, since nothing varies."""
    number = int(np.searchsorted(shares, share - ROUNDED)) + 1
    return number if number <= len(shares) else 0


def scree_of(shares: np.ndarray, D: int) -> Scree:
    """What is worth keeping of shares (P,) for a fit with D latent dimensions."""
    if not len(shares) or shares[-1] < 1 - ROUNDED:
        return unknown("nothing varies in these recordings")
    leading = np.round(shares[: max(KEPT, D)], 6).tolist()
    return Scree(tuple(leading), enough_of(shares))


def in_words(found: Scree, D: int, *, usual: int | None = None) -> str:
    """What as many components hold as there are latent dimensions, and how many hold 90 %.

    `usual` dimensions are what a fit takes that is given none; None where the data do not say it.
    """
    if found.why:
        return f"How much of the variance the latent dimensions hold is not known: {found.why}."
    fewer = len(found.shares) < D
    if fewer:
        said = f"There are {len(found.shares)} principal components, fewer than the {D} latent dimensions of the fit"
    elif D == 1:
        said = f"The first principal component, for the one latent dimension of the fit, holds {percent(found.held(1))}"
    else:
        said = f"The first {D} principal components, one for each latent dimension of the fit, hold "
        said += percent(found.held(D))
    said += "" if fewer else " of the variance"
    if found.enough == D:
        said += f"; fewer hold less than {ENOUGH_IN_WORDS}" if D > 1 else ""
    else:
        said += f"; the first {found.enough:,} hold" if found.enough > 1 else "; the first alone holds"
        said += f" {ENOUGH_IN_WORDS}"
    return said + ("." if usual in (None, D) else f". Where --latent-dim is left open, a fit takes {usual}.")


def percent(share: float) -> str:
    """A share in percent with the digits that say how far it is from none and from all: 99.97 % and not 100 %."""
    if share < 0.01:
        return f"{100 * share:.2g} %"
    left = 100 * (1 - share)
    if left < 5e-4:
        return "100 %"
    digits = 0 if left >= 2 else 1 if left >= 0.1 else 2 if left >= 0.01 else 3
    return f"{100 * share:.{digits}f} %"
