"""Latent graphical models: blocks that compose, and the graphs that have a name."""

from svae.pgm._block import AbstractBlock, GraphError
from svae.pgm._description import drawn
from svae.pgm._graph import Graph
from svae.pgm._making import graph
from svae.pgm._old_names import name_now
from svae.pgm._posterior import Posterior, keys_of
from svae.pgm._registry import BLOCKS, from_tables, named, to_tables
from svae.pgm.choice import Choice
from svae.pgm.dynamics import Dynamics
from svae.pgm.markov import Markov
from svae.pgm.normal import Normal
from svae.pgm.semi_markov import SemiMarkov

__all__ = [
    "BLOCKS",
    "AbstractBlock",
    "Choice",
    "Dynamics",
    "Graph",
    "GraphError",
    "Markov",
    "Normal",
    "Posterior",
    "SemiMarkov",
    "drawn",
    "from_tables",
    "graph",
    "keys_of",
    "name_now",
    "named",
    "to_tables",
]
