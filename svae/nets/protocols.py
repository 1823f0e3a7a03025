"""What a network or a likelihood of one's own must offer; nothing has to be derived from, but a likelihood may be.

| part | must have | may have |
|---|---|---|
| recognition | `__call__(y, mask)` | `linear`, `trunk`, `head` as `Recognition` has them: then it begins at PCA |
| observation | `log_prob`, `mean`, `simulate`, `draw`, `kl` | `likelihood`, `linear`: units, noise and a start at PCA |
| likelihood | `log_prob`, `mean`, `sample` | `title`, `low`, `high` and the other facts of `AbstractLikelihood` |
"""

from abc import abstractmethod
from typing import Any, ClassVar, Protocol, runtime_checkable

import equinox as eqx
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from svae.expfam import Gaussian


@runtime_checkable
class RecognizeProtocol(Protocol):
    """r(y; φ) of one sequence."""

    def __call__(self, y: Float[Array, "T *event"], mask: Bool[Array, " T"]) -> Gaussian:
        """Potentials J (T, D, D), positive semidefinite, and h (T, D); both 0 at padding and at frames not seen.

        y has NaN where an entry is missing; replace it before an operation. mask is False at padding.
        """
        ...


@runtime_checkable
class ObserveProtocol(Protocol):
    """p(y | x, γ) of one sequence, with q(γ)."""

    def log_prob(self, x: Float[Array, "T D"], y: Float[Array, "T *event"]) -> Float[Array, " T"]:
        """log p(y_t | x_t), the sum over the entries of y_t that are not NaN."""
        ...

    def mean(self, x: Float[Array, "T D"]) -> Float[Array, "T *event"]:
        """E[y_t | x_t]."""
        ...

    def simulate(self, x: Float[Array, "T D"], *, key: PRNGKeyArray) -> Float[Array, "T *event"]:
        """y_t ~ p(y_t | x_t)."""
        ...

    def draw(self, *, key: PRNGKeyArray) -> Any:
        """γ̂ ~ q(γ), as an observation; a point estimate gives itself."""
        ...

    def kl(self) -> Float[Array, ""]:
        """KL(q(γ) ‖ p(γ)); 0 of a point estimate."""
        ...


class AbstractLikelihood(eqx.Module):
    """p(y | location), entry by entry, and what the rest of the package must know of it."""

    title: ClassVar[str] = "own"  # in words, as in "Gaussian noise"
    low: ClassVar[float] = -float("inf")  # the range of an entry: data outside of it are refused
    high: ClassVar[float] = float("inf")
    discrete: ClassVar[bool] = False  # whole numbers: its density is a probability
    standardized: ClassVar[bool] = True  # data are divided by their scale; False for counts, shares and angles
    additive: ClassVar[bool] = False  # y = location + noise: networks may begin at PCA, forecasts carry residuals on

    @abstractmethod
    def log_prob(self, y: Float[Array, " P"], location: Float[Array, " P"], features: Array) -> Float[Array, ""]:
        """The sum of log p over the entries of one frame that are not NaN."""

    @abstractmethod
    def mean(self, location: Float[Array, "*event"]) -> Float[Array, "*event"]:
        """E[y | location]."""

    @abstractmethod
    def sample(self, location: Float[Array, "*event"], features: Array, *, key: PRNGKeyArray) -> Array:
        """y ~ p(y | location)."""


def likelihood_of(observe: Any) -> Any:
    """The likelihood of an observation; one that has none has the facts of `AbstractLikelihood`.

    Args:
        observe: An observation network.

    Returns:
        An `AbstractLikelihood`, or its class.
    """
    found = getattr(observe, "likelihood", AbstractLikelihood)
    known = all(hasattr(found, fact) for fact in AbstractLikelihood.__annotations__)
    return found if known else AbstractLikelihood
