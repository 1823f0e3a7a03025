"""Where the states of a fit begin: features of motion, k-means, and hidden Markov models by EM. numpy only."""

from svae.starting.actions import kmeans
from svae.starting.states import UNUSED, States, find_states, place_of_states, result, search

__all__ = ["UNUSED", "States", "find_states", "kmeans", "place_of_states", "result", "search"]
