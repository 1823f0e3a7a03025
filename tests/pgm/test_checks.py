"""The public conformance suite: it passes every graph, names what is wrong with broken blocks, and is used by us."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from svae import expfam
from svae.named import MODELS
from svae.pgm import Choice, Dynamics, GraphError, Markov, Normal, SemiMarkov, graph
from svae.pgm._block import whole
from svae.pgm.semi_markov import SemiMarkovGlobals, SemiMarkovPath
from svae.testing import check_block, check_pgm
from tests import graphs

GRAPHS = {
    **{name: functools.partial(graphs.made, name, 2, 3, concentration=1.0, stickiness=1.0) for name in MODELS},
    "durations": lambda: graph(z=SemiMarkov(3, longest=4), x=Dynamics(2, given="z")),
    "durations beside a chain": lambda: graph(a=SemiMarkov(2, longest=3), b=Markov(2), x=Normal(2, add=("a", "b"))),
    "inputs and switches": lambda: graph(z=Markov(3), x=Dynamics(2, given="z", inputs=2), w=Dynamics(1, inputs=2)),
    "recurrent": lambda: graph(z=Markov(3, after="x"), x=Dynamics(2, given="z")),
    "everything that leans": lambda: graph(
        m=Markov(2), z=Markov(3, given="m", after=("x", "m"), inputs=1), x=Dynamics(2, given="z", inputs=1)
    ),
    "two causes, two latents": lambda: graph(
        a=Markov(2), b=Markov(2, given="a"), x=Dynamics(2, given=("a", "b")), w=Normal(1, add=("b", "a"))
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_pass(name):
    check_pgm(GRAPHS[name]())


@pytest.mark.parametrize("block", [Choice(3), Markov(3, given="m"), Normal(2, add="z"), Dynamics(2, given=("a", "b"))])
def test_blocks_pass(block):
    check_block(block)


@dataclasses.dataclass(frozen=True)
class Forgetful(Markov):
    """A chain that leaves the first frame out of what it says back."""

    def back(self, tables, local, said, i):
        return super().back(tables, local, said, i).at[0].set(0)


@dataclasses.dataclass(frozen=True)
class Cheap(Normal):
    """A Normal that forgets its penalty."""

    def kl(self, tables, local, mask):
        return local.q.kl


@pytest.mark.parametrize(
    ("block", "words"), [(Forgetful(2, given="m"), "`back` to m"), (Cheap(2, given="z"), "`back`")]
)
def test_what_is_wrong_is_named(block, words):
    with pytest.raises(AssertionError, match=words):
        check_block(block)


# --- broken graphs ------------------------------------------------------------------------------------------------

x, z = Normal(2, given="z"), Markov(2)
BROKEN = {
    "a graph needs blocks": {},
    "'2x' cannot name a block": {"2x": Normal(2)},
    "'class' cannot name a block": {"class": Normal(2)},
    "'_x' cannot name a block": {"_x": Normal(2)},
    "x is 8, not a block": {"x": 8},
    r"write Normal\(...\)": {"x": Normal},
    "has a parent 'y' that does not exist; the blocks are z, x": {"z": z, "x": Normal(2, given="y")},
    "did you mean 'state'": {"state": z, "x": Normal(2, given="stats")},
    "x cannot be its own parent": {"x": Normal(2, given="x")},
    "z has the continuous parent x": {"x": Normal(2), "z": Markov(2, given="x")},
    "x has the continuous parent w": {"w": Normal(2), "x": Normal(2, given="w")},
    "x names a parent twice": {"z": z, "x": Normal(2, given=("z", "z"))},
    "a, b are each other's parents": {"a": Markov(2, given="b"), "b": Markov(2, given="a"), "x": Normal(2, given="a")},
    "z remembers its own last state already": {"z": Markov(2, after="z"), "x": x},
    "z has 2 continuous parents in after=, x, w": {"z": Markov(2, after=("x", "w")), "x": x, "w": Normal(1)},
    "z has a parent 'y' that does not exist": {"z": Markov(2, after="y"), "x": x},
    "no continuous block": {"z": z, "y": Choice(2, given="z")},
    "z has no child": {"z": z, "x": Normal(2)},
    "a, b have only each other for children": {"a": Markov(2, after="b"), "b": Markov(2, after="a"), "x": Normal(2)},
    "x has parents in both": {"z": z, "x": Normal(2, given="z", add="z")},
    "but x wants 2, w wants 3": {"x": Dynamics(2, inputs=2), "w": Dynamics(2, inputs=3)},
    "show='x' must be one of z": {"show": "x", "z": z, "x": x},
    "left out: there is no discrete block": {"show": "z", "x": Normal(2)},
}


@pytest.mark.parametrize("words", BROKEN)
def test_a_graph_that_cannot_be_inferred_is_refused_in_one_sentence(words):
    with pytest.raises(GraphError, match=words) as refused:
        graph(**BROKEN[words])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("block", [Choice, Markov, Normal, Dynamics])
def test_sizes_are_positive(block):
    with pytest.raises(GraphError, match="an integer of at least 1, not 0"):
        block(0)


def test_inputs_that_a_graph_needs_and_does_not_get_are_refused():
    driven, plain = graph(x=Dynamics(2, inputs=3)), graph(x=Dynamics(2))
    assert (driven.inputs, plain.inputs) == (3, 0)
    for own, inputs, words in (
        (driven, None, "takes 3 inputs at every frame, for x, and for 4 frames it was given none"),
        (driven, np.zeros((4, 2)), r"it was given an array of shape \(4, 2\)"),
        (plain, np.zeros((4, 2)), r"takes no inputs, and for 4 frames it was given an array of shape \(4, 2\)"),
    ):
        with pytest.raises(GraphError, match=words):
            own.check_inputs(inputs, 4)
    with pytest.raises(GraphError, match="takes 3 inputs"):
        driven.initialize([np.zeros((4, 2))], [None])
    with pytest.raises(GraphError, match="inputs of Dynamics is how many columns it takes"):
        Dynamics(2, inputs=-1)


@pytest.mark.parametrize("size", [-1, 2.5, "3", None, True])
def test_sizes_are_whole(size):
    with pytest.raises(GraphError, match="a number of states that is an integer of at least 1"):
        whole("Markov", "states", size)


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
def test_counts_are_positive(value):
    with pytest.raises(GraphError, match="the concentration of Markov must be a number above 0"):
        Markov(2, concentration=value)


def test_a_graph_answers_for_itself():
    made = graph(mood=Markov(3), z=Markov(4, given="mood"), x=Dynamics(2, given="z"), w=Normal(1))
    assert made.discrete == {"mood": 3, "z": 4} and made.continuous == {"x": 2, "w": 1}
    assert (made.shown, made.states, made.dimensions) == ("z", 4, 3)
    assert made.chained and made.dynamic and made.learned and not made.independent and made.sticky is None
    assert ("mood", "z", False) in made.arrows and ("z", "z", True) in made.arrows
    assert made.title == (
        "a graph of mood (Markov, 3 states), z (Markov, 4 states given mood), x (Dynamics, 2 dimensions given z) and "
        "w (Normal, 1 dimensions)"
    )
    assert graph(show="mood", **{n.name: n.block for n in made.nodes}).shown == "mood"
    assert graph(z=Choice(2), x=Normal(2, given="z")).independent
    assert graph(z=Markov(2), x=Normal(2, given="z")).sticky == "z"


def test_a_table_of_one_state_is_a_block_alone(x64):
    """One state says nothing: bound and q(x) are those of the graph without it."""
    alone, above = graph(x=Dynamics(2)), graph(z=Choice(1), x=Dynamics(2, given="z"))
    rng = np.random.default_rng(0)
    psi = expfam.Gaussian(jnp.broadcast_to(jnp.eye(2), (6, 2, 2)), jnp.asarray(rng.normal(size=(6, 2))))
    latents = [rng.normal(size=(20, 2))]
    found = [
        jax.jit(lambda m, psi, pgm=pgm: pgm.infer(m, psi, jnp.ones(6, bool)))(
            expfam.moments(pgm.initialize(latents, [np.ones((20, 1))])), psi
        )
        for pgm in (alone, above)
    ]
    np.testing.assert_allclose(found[0].kl, found[1].kl, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found[0].mean(), found[1].mean(), rtol=1e-9, atol=1e-12)


def test_a_simulation_goes_on_with_what_is_left_of_a_bout():
    """Bouts of three frames exactly: a start in the middle of one is followed by the rest of it, then by others."""
    block, never = SemiMarkov(3, longest=3), -1e9
    theta = SemiMarkovGlobals(jnp.zeros(3), jnp.zeros((3, 2)), jnp.broadcast_to(jnp.array([never, never, 0.0]), (3, 3)))
    start = SemiMarkovPath(jnp.array([1]), jnp.array([1]))  # one more frame of state 1
    path = jax.jit(lambda key: block.simulate(theta, (), (), 10, key=key, start=start))(jax.random.key(0))
    states = np.asarray(path.states)
    assert states[0] == 1 and [len(set(states[i : i + 3])) for i in (1, 4, 7)] == [1, 1, 1]
    assert np.all(np.diff(states[[0, 1, 4, 7]]) != 0)
    np.testing.assert_array_equal(path.remaining, [0, 2, 1, 0, 2, 1, 0, 2, 1, 0])


@pytest.mark.parametrize(
    ("size", "longest", "words"), [(1, 3, "two states or more"), (2, 0, "frames in its longest bout")]
)
def test_bouts_need_another_state_and_a_length(size, longest, words):
    with pytest.raises(GraphError, match=words):
        SemiMarkov(size, longest)
