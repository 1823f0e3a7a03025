"""Graphs that have a name, at sizes of tests."""

from svae.named import Sizes
from svae.pgm import Graph, named

SIX = ("vae", "gaussian", "gmm", "hmm", "lds", "slds")


def made(name: str, latent_dim: int, states: int, *, concentration: float, stickiness: float) -> Graph:
    """A graph by its name; bouts that have durations last 8 frames at most."""
    return named(name, Sizes(states, latent_dim, concentration, stickiness, target_duration=2.0))
