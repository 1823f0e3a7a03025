"""What every exponential family offers, and functions over trees of them.

A density is `exp(<eta, t(theta)> - log Z(eta))` with respect to the family's base measure (App. B of the paper).
A family *stores* the parameters that keep their digits in float32; its natural parameters `eta` are one method away.
See docs/decisions/0004-centred-natural-coordinates.md.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree


class AbstractExpFam(eqx.Module):
    """One distribution, or a batch of them along leading axes."""

    @abstractmethod
    def natural(self) -> Any:
        """Natural parameters, a NamedTuple whose fields are named after the statistic that each multiplies."""

    @classmethod
    @abstractmethod
    def from_natural(cls, eta: Any) -> "AbstractExpFam": ...

    @abstractmethod
    def log_partition(self) -> Float[Array, "..."]: ...

    @abstractmethod
    def in_domain(self) -> Bool[Array, "..."]:
        """Whether the density is proper (positive definite scales, positive counts), element by element."""

    @abstractmethod
    def sample(self, *, key: PRNGKeyArray) -> Any: ...


class AbstractConjugatePrior(AbstractExpFam):
    """A family that can be `q(theta)`: message passing takes its `moments`, and natural steps move it."""

    @abstractmethod
    def moments(self) -> Any:
        """Expected statistics E t(theta), in the stable coordinates that message passing takes."""

    @abstractmethod
    def natural_gradient(self, prior: Any, d_moments: Any) -> Any:
        """`prior - q + d evidence / d E t(theta)`, in natural coordinates centred at q (Prop. 4.2)."""

    @abstractmethod
    def step(self, direction: Any, rho: Float[Array, ""]) -> "AbstractConjugatePrior":
        """The family at natural parameters `q + rho * direction`, the direction in coordinates centred at q."""

    @abstractmethod
    def uncentre(self, direction: Any) -> Any:
        """The same direction in plain natural coordinates."""

    @abstractmethod
    def centre(self, direction: Any) -> Any:
        """A plain natural direction in coordinates centred at q; inverse of `uncentre`."""

    @abstractmethod
    def kl(self, prior: Any) -> Float[Array, "..."]:
        """KL(q || prior), from standard parameters so that nothing cancels."""


def is_family(node: Any) -> bool:
    return isinstance(node, AbstractExpFam)


def map_families(function: Callable, *trees: PyTree) -> PyTree:
    """Apply `function` family by family over trees of the first tree's shape (later leaves may be any subtree)."""
    families, structure = jax.tree.flatten(trees[0], is_leaf=is_family)
    others = [structure.flatten_up_to(tree) for tree in trees[1:]]
    return jax.tree.unflatten(structure, [function(*row) for row in zip(families, *others, strict=True)])


def families(tree: PyTree) -> list[AbstractExpFam]:
    return [leaf for leaf in jax.tree.leaves(tree, is_leaf=is_family) if is_family(leaf)]


def natural(tree: PyTree) -> PyTree:
    return map_families(lambda family: family.natural(), tree)


def from_natural(like: PyTree, eta: PyTree) -> PyTree:
    return map_families(lambda family, e: type(family).from_natural(e), like, eta)


def log_partition(tree: PyTree) -> Float[Array, ""]:
    return sum((jnp.sum(f.log_partition()) for f in families(tree)), jnp.zeros(()))


def expected_stats(tree: PyTree) -> PyTree:
    """E t(theta) = grad log Z(eta), shaped like the natural parameters (Prop. B.2)."""
    return jax.grad(lambda eta: log_partition(from_natural(tree, eta)))(natural(tree))


def inner(a: PyTree, b: PyTree) -> Float[Array, ""]:
    return sum((jnp.sum(x * y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)), jnp.zeros(()))


def bregman_kl(q: PyTree, prior: PyTree) -> Float[Array, ""]:
    """KL(q || prior) = <eta_q - eta_0, E_q t> - log Z_q + log Z_0, for any tree of families (Prop. B.5)."""
    difference = jax.tree.map(jnp.subtract, natural(q), natural(prior))
    return inner(difference, expected_stats(q)) - log_partition(q) + log_partition(prior)


def moments(tree: PyTree) -> PyTree:
    return map_families(lambda family: family.moments(), tree)


def kl(q: PyTree, prior: PyTree) -> Float[Array, ""]:
    """KL(q(theta) || p(theta)) of a tree of conjugate priors, by the families' stable closed forms."""
    terms = map_families(lambda f, p: jnp.sum(f.kl(p)), q, prior)
    return sum(jax.tree.leaves(terms), jnp.zeros(()))


def natural_gradient(q: PyTree, prior: PyTree, d_moments: PyTree) -> PyTree:
    return map_families(lambda f, p, d: f.natural_gradient(p, d), q, prior, d_moments)


def step(q: PyTree, direction: PyTree, rho: Float[Array, ""]) -> PyTree:
    return map_families(lambda f, d: f.step(d, rho), q, direction)


def uncentre(q: PyTree, direction: PyTree) -> PyTree:
    return map_families(lambda f, d: f.uncentre(d), q, direction)


def centre(q: PyTree, direction: PyTree) -> PyTree:
    return map_families(lambda f, d: f.centre(d), q, direction)


def in_domain(tree: PyTree) -> Bool[Array, ""]:
    checks = [jnp.all(f.in_domain()) for f in families(tree)]
    return jnp.all(jnp.stack(checks)) if checks else jnp.array(True)


def sample(tree: PyTree, *, key: PRNGKeyArray) -> PyTree:
    """theta ~ q(theta), every family with a key of its own."""
    keys = iter(jax.random.split(key, max(len(families(tree)), 1)))
    return map_families(lambda family: family.sample(key=next(keys)), tree)
