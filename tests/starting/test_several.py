"""Several chains on one latent, and a chain above another: first states and first words find the truth again."""

import jax
import jax.numpy as jnp
import numpy as np

from svae import expfam
from svae.data.scores import adjusted_rand_index
from svae.expfam import Gaussian
from svae.pgm import Dynamics, Markov, Normal, graph
from svae.starting import never, result, search_each
from svae.starting.blocks import groups_of
from svae.starting.several import habits, parted


def two_chains(T: int = 600):
    """Paths of 4 and 3 states, and a latent that both move."""
    rng = np.random.default_rng(0)
    paths = [np.repeat(rng.integers(K, size=T // 15 + 1), 15)[shift : T + shift] for K, shift in ((4, 0), (3, 7))]
    offsets, x, found = [rng.normal(size=(4, 4)), rng.normal(size=(3, 4))], np.zeros(4), []
    for states in zip(*paths, strict=True):
        x = 0.8 * x + 0.4 * sum(B[k] for B, k in zip(offsets, states, strict=True)) + 0.1 * rng.normal(size=4)
        found.append(x)
    return paths, np.array(found)


def test_states_of_all_chains_together_are_parted():
    (a, b), x = two_chains()
    order = np.random.default_rng(1).permutation(12)
    ((first, second),) = parted([x], [np.eye(12)[order[a * 3 + b]]], (4, 3), seed=0)
    assert adjusted_rand_index(a, first.argmax(1)) > 0.99 and adjusted_rand_index(b, second.argmax(1)) > 0.99


def test_mean_field_of_chains_that_share_a_latent_begins_together():
    """With the parameters of the truth it finds both chains, and a higher bound than from nothing."""
    (a, b), x = two_chains()
    pgm = graph(a=Markov(4), b=Markov(3), x=Dynamics(4, add=("a", "b")))
    q = pgm.initialize([x], [{"a": np.eye(4)[a], "b": np.eye(3)[b]}])
    x, mask = jnp.asarray(x, jnp.float32), jnp.ones(len(x), bool)
    psi = Gaussian(jnp.broadcast_to(1e3 * jnp.eye(4), (len(x), 4, 4)), 1e3 * x)
    infer = jax.jit(lambda start: pgm.infer(expfam.moments(q), psi, mask, start))
    found = infer(None)
    nothing = infer({"a": jnp.zeros((len(x), 4)), "b": jnp.zeros((len(x), 3))})
    right = {n: adjusted_rand_index(z, np.asarray(found.discrete[n].viterbi())) for n, z in (("a", a), ("b", b))}
    assert min(right.values()) > 0.9
    assert float(found.log_normalizer.sum()) > float(nothing.log_normalizer.sum())


def test_a_chain_above_another_begins_with_what_that_does():
    rng = np.random.default_rng(0)
    mood, cycles = np.repeat([0, 1, 0, 1, 0], 300), (np.array([1, 2, 0]), np.array([2, 0, 1]))
    z = [0]
    for m in mood[1:]:
        z.append(cycles[m][z[-1]] if rng.random() < 0.2 else z[-1])
    (found,) = habits([np.eye(3)[z]], 2, seed=0)
    assert adjusted_rand_index(mood, found.argmax(1)) > 0.8


def test_each_block_is_searched_for_on_what_it_acts_on():
    """Chains that share a latent together, one with a latent of its own alone, and a mood from what is below it."""
    rng, asked = np.random.default_rng(0), {"duration": 15.0, "seed": 0, "hurries": never}
    _, x = two_chains()
    face = np.repeat(rng.integers(2, size=41), 15)[:600]
    y = np.where(face[:, None] == 1, 2.0, -2.0) + 0.3 * rng.normal(size=(600, 1))
    pgm = graph(
        mood=Markov(2),
        a=Markov(4, given="mood"),
        b=Markov(3),
        face=Markov(2),
        x=Dynamics(4, add=("a", "b")),
        y=Normal(1, given="face"),
    )
    assert [(group.names, group.columns, group.dynamic) for group in groups_of(pgm)] == [
        (("a", "b"), [0, 1, 2, 3], True),
        (("face",), [4], False),
    ]
    shown, (each,) = result(search_each(pgm, [np.hstack([x, y])], None, asked))
    assert {name: w.shape for name, w in each.items()} == {n: (600, K) for n, K in pgm.discrete.items()}
    assert adjusted_rand_index(face, each["face"].argmax(1)) > 0.9
    assert shown.weights[0] is each["a"] and shown.starts.number == 1 and np.isnan(shown.starts.found_again).all()
    other = graph(z=Markov(1), face=Markov(2), x=Dynamics(4, given="z"), y=Normal(1, given="face"), show="face")
    alone, _ = result(search_each(other, [np.hstack([x, y])], None, asked))
    assert alone.starts.number > 1 and len(alone.starts.found_again) == 2
