"""Exponential families: densities, their natural parameters, and functions over trees of them."""

from svae.expfam._base import (
    AbstractConjugatePrior,
    AbstractExpFam,
    bregman_kl,
    centre,
    expected_stats,
    from_natural,
    in_domain,
    inner,
    kl,
    log_partition,
    map_families,
    moments,
    moments_at_mean,
    natural,
    natural_gradient,
    sample,
    step,
    uncentre,
)
from svae.expfam.categorical import Categorical
from svae.expfam.dirichlet import Dirichlet, DirichletMoments, DirichletNatural
from svae.expfam.gaussian import DiagonalGaussian, Gaussian
from svae.expfam.mniw import MNIW, ConditionalMoments, LinearGaussian, MNIWNatural
from svae.expfam.niw import NIW, NIWNatural
from svae.expfam.tilted_dirichlet import TiltedDirichlet, TiltedMoments

# The conformance suite walks these registries.
FAMILIES = {f.__name__: f for f in (Categorical, Gaussian, DiagonalGaussian, Dirichlet, TiltedDirichlet, NIW, MNIW)}
CONJUGATE_PRIORS = {f.__name__: f for f in (Dirichlet, TiltedDirichlet, NIW, MNIW)}

__all__ = [
    "CONJUGATE_PRIORS",
    "FAMILIES",
    "MNIW",
    "NIW",
    "AbstractConjugatePrior",
    "AbstractExpFam",
    "Categorical",
    "ConditionalMoments",
    "DiagonalGaussian",
    "Dirichlet",
    "DirichletMoments",
    "DirichletNatural",
    "Gaussian",
    "LinearGaussian",
    "MNIWNatural",
    "NIWNatural",
    "TiltedDirichlet",
    "TiltedMoments",
    "bregman_kl",
    "centre",
    "expected_stats",
    "from_natural",
    "in_domain",
    "inner",
    "kl",
    "log_partition",
    "map_families",
    "moments",
    "moments_at_mean",
    "natural",
    "natural_gradient",
    "sample",
    "step",
    "uncentre",
]
