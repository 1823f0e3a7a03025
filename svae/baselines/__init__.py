"""Plain models of the same recordings, on the same split and in the same unit: what a fit has to beat."""

from svae.baselines._baselines import KINDS, Baselines, baselines

__all__ = ["KINDS", "Baselines", "baselines"]
