"""Where the states of a fit begin: features of motion, k-means, and hidden Markov models by EM. numpy only."""

from svae.starting.actions import kmeans
from svae.starting.blocks import search_each
from svae.starting.effort import SEARCHED, effort
from svae.starting.em import UNUSED
from svae.starting.labelled import begun
from svae.starting.null import Null, Pair, compared, unknown
from svae.starting.states import Starts, States, find_states, never, place_of_states, result, search

__all__ = [
    "SEARCHED",
    "UNUSED",
    "Null",
    "Pair",
    "Starts",
    "States",
    "begun",
    "compared",
    "effort",
    "find_states",
    "kmeans",
    "never",
    "place_of_states",
    "result",
    "search",
    "search_each",
    "unknown",
]
