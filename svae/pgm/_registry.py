"""The graphs that have a name, one line each; config, command line and conformance tests walk over them."""

from collections.abc import Callable

from svae.pgm._graph import Graph, graph
from svae.pgm.choice import Choice
from svae.pgm.dynamics import Dynamics
from svae.pgm.markov import Markov
from svae.pgm.normal import Normal

_GRAPHS = {  # name -> graph of D dimensions, z a Choice and a Markov chain with the states and counts asked for
    "vae": lambda D, choice, chain: graph(x=Normal(D, learned=False)),
    "gaussian": lambda D, choice, chain: graph(x=Normal(D)),
    "gmm": lambda D, choice, chain: graph(z=choice, x=Normal(D, given="z")),
    "hmm": lambda D, choice, chain: graph(z=chain, x=Normal(D, given="z")),
    "lds": lambda D, choice, chain: graph(x=Dynamics(D)),
    "slds": lambda D, choice, chain: graph(z=chain, x=Dynamics(D, given="z")),
}


def _named(make: Callable) -> Callable:
    def pgm(latent_dim: int, states: int, *, concentration: float, stickiness: float) -> Graph:
        choice = Choice(states, concentration=concentration)
        return make(latent_dim, choice, Markov(states, concentration=concentration, stickiness=stickiness))

    return pgm


# name -> make(latent_dim, states, *, concentration, stickiness)
PGMS = {name: _named(make) for name, make in _GRAPHS.items()}
