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
    def moments_at_mean(self) -> Any:
        """The moments if theta were known: the point that `moments` is spread around."""

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
    """Apply `function` family by family over trees of the first tree's shape (later leaves may be any subtree).

    Args:
        function: What is done with a family, and with what lies at its place in the other trees.
        trees: The first is a tree of families.

    Returns:
        A tree with the results in place of the families.
    """
    families, structure = jax.tree.flatten(trees[0], is_leaf=is_family)
    others = [structure.flatten_up_to(tree) for tree in trees[1:]]
    return jax.tree.unflatten(structure, [function(*row) for row in zip(families, *others, strict=True)])


def families(tree: PyTree) -> list[AbstractExpFam]:
    return [leaf for leaf in jax.tree.leaves(tree, is_leaf=is_family) if is_family(leaf)]


def natural(tree: PyTree) -> PyTree:
    """Natural parameters eta of every family.

    Args:
        tree: A tree of families.

    Returns:
        A tree of named tuples.
    """
    return map_families(lambda family: family.natural(), tree)


def from_natural(like: PyTree, eta: PyTree) -> PyTree:
    """Families with the types of `like` and the natural parameters `eta`.

    Args:
        like: A tree of families.
        eta: Their natural parameters, as `natural` gives them.

    Returns:
        A tree of families.
    """
    return map_families(lambda family, e: type(family).from_natural(e), like, eta)


def log_partition(tree: PyTree) -> Float[Array, ""]:
    """log Z(eta), summed over the families of a tree.

    Args:
        tree: A tree of families.

    Returns:
        A number.
    """
    return sum((jnp.sum(f.log_partition()) for f in families(tree)), jnp.zeros(()))


def expected_stats(tree: PyTree) -> PyTree:
    """E t(theta) = grad log Z(eta), shaped like the natural parameters (Prop. B.2).

    Args:
        tree: A tree of families.

    Returns:
        A tree of their expected statistics.
    """
    return jax.grad(lambda eta: log_partition(from_natural(tree, eta)))(natural(tree))


def inner(a: PyTree, b: PyTree) -> Float[Array, ""]:
    """<a, b>: the sum of the products of all numbers of two trees.

    Args:
        a: A tree of arrays.
        b: A tree of the same shape.

    Returns:
        A number.
    """
    return sum((jnp.sum(x * y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)), jnp.zeros(()))


def bregman_kl(q: PyTree, prior: PyTree) -> Float[Array, ""]:
    """KL(q || prior) = <eta_q - eta_0, E_q t> - log Z_q + log Z_0, for any tree of families (Prop. B.5).

    Args:
        q: A tree of families.
        prior: A tree of the same shape.

    Returns:
        The divergence, a number.
    """
    difference = jax.tree.map(jnp.subtract, natural(q), natural(prior))
    return inner(difference, expected_stats(q)) - log_partition(q) + log_partition(prior)


def moments(tree: PyTree) -> PyTree:
    """Expected statistics of every family, in the stable coordinates that message passing takes.

    Args:
        tree: A tree of conjugate priors.

    Returns:
        A tree of named tuples.
    """
    return map_families(lambda family: family.moments(), tree)


def moments_at_mean(tree: PyTree) -> PyTree:
    """Moments of every family if its parameters were known to be at their mean, in the coordinates of `moments`.

    Args:
        tree: A tree of conjugate priors.

    Returns:
        A tree of named tuples.
    """
    return map_families(lambda family: family.moments_at_mean(), tree)


def kl(q: PyTree, prior: PyTree) -> Float[Array, ""]:
    """KL(q(theta) || p(theta)) of a tree of conjugate priors, by the families' stable closed forms.

    Args:
        q: A tree of conjugate priors.
        prior: A tree of the same shape.

    Returns:
        The divergence, a number.
    """
    terms = map_families(lambda f, p: jnp.sum(f.kl(p)), q, prior)
    return sum(jax.tree.leaves(terms), jnp.zeros(()))


def natural_gradient(q: PyTree, prior: PyTree, d_moments: PyTree) -> PyTree:
    """prior - q + d evidence / d E t(theta) of every family (Prop. 4.2), in natural coordinates centred at q.

    Args:
        q: A tree of conjugate priors.
        prior: A tree of the same shape.
        d_moments: The gradient of the evidence in `moments(q)`.

    Returns:
        A tree of directions, for `step`.
    """
    return map_families(lambda f, p, d: f.natural_gradient(p, d), q, prior, d_moments)


def step(q: PyTree, direction: PyTree, rho: Float[Array, ""]) -> PyTree:
    """q after a natural step of size rho.

    Args:
        q: A tree of conjugate priors.
        direction: What `natural_gradient` gives.
        rho: The size of the step, in (0, 1].

    Returns:
        A tree of families.
    """
    return map_families(lambda f, d: f.step(d, rho), q, direction)


def uncentre(q: PyTree, direction: PyTree) -> PyTree:
    """`direction` in plain natural parameters, from coordinates that are centred at q.

    Args:
        q: A tree of conjugate priors.
        direction: What `natural_gradient` gives.

    Returns:
        A tree shaped like the natural parameters.
    """
    return map_families(lambda f, d: f.uncentre(d), q, direction)


def centre(q: PyTree, direction: PyTree) -> PyTree:
    """`direction` in the coordinates that are centred at q: the inverse of `uncentre`.

    Args:
        q: A tree of conjugate priors.
        direction: A step from it, in natural parameters.

    Returns:
        A tree shaped like the natural parameters.
    """
    return map_families(lambda f, d: f.centre(d), q, direction)


def in_domain(tree: PyTree) -> Bool[Array, ""]:
    """Whether every family has parameters that are allowed: positive counts, positive definite scales.

    Args:
        tree: A tree of families.

    Returns:
        One truth value.
    """
    checks = [jnp.all(f.in_domain()) for f in families(tree)]
    return jnp.all(jnp.stack(checks)) if checks else jnp.array(True)


def sample(tree: PyTree, *, key: PRNGKeyArray) -> PyTree:
    """theta ~ q(theta), every family with a key of its own.

    Args:
        tree: A tree of families.
        key: The random key.

    Returns:
        A tree of draws; those of a Dirichlet are logarithms of probabilities.
    """
    keys = iter(jax.random.split(key, max(len(families(tree)), 1)))
    return map_families(lambda family: family.sample(key=next(keys)), tree)
